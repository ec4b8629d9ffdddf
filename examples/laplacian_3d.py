"""Laplacians of second, fourth and eighth order on a periodic cube, applied once.

On f = sin(2 pi x) + cos(4 pi y) sin(2 pi z) the exact result is known, and halving the spacing divides the error by 4,
16 and 256.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import stencil_dsl
from stencil_dsl import stencil
from stencil_dsl.frontend import Field
from stencil_dsl.frontend.stencil import Stencil

WEIGHTS = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}
"""Second derivative along one axis, centre first, in units of the spacing."""


def laplacian(order: int) -> Stencil:
    """The star of that order; `h2` is the inverse square of the spacing."""
    centre, *others = WEIGHTS[order]

    def ring(u, r, i, j, k):
        return u[i - r, j, k] + u[i + r, j, k] + u[i, j - r, k] + u[i, j + r, k] + u[i, j, k - r] + u[i, j, k + r]

    @stencil
    def laplace(u: Field, h2, i, j, k):
        return h2 * (3.0 * centre * u[i, j, k] + sum(w * ring(u, r, i, j, k) for r, w in enumerate(others, 1)))

    return laplace


def function(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x) + np.cos(4 * np.pi * y) * np.sin(2 * np.pi * z)


def exact(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    tau2 = 4 * np.pi**2
    return -tau2 * np.sin(2 * np.pi * x) - 5 * tau2 * np.cos(4 * np.pi * y) * np.sin(2 * np.pi * z)


def on_grid(f: Callable, cells: int, around: int = 0) -> np.ndarray:
    x = np.arange(-around, cells + around) / cells
    return f(x[:, None, None], x[:, None], x)


def solve(order: int, cells: int, device: str | None = None) -> float:
    """Largest error of one Laplacian."""
    kernel = stencil_dsl.compile(laplacian(order))
    u = stencil_dsl.asarray(on_grid(function, cells, order // 2), kernel.halo, device=device, includes_halo=True)
    out = stencil_dsl.empty((cells,) * 3, kernel.halo, device=device)
    kernel(u, out, h2=float(cells**2))
    return float(abs(out.to_numpy() - on_grid(exact, cells)).max())


def picture(axes) -> None:
    cells = (8, 12, 16)
    for order in WEIGHTS:
        axes.loglog(cells, [solve(order, n) for n in cells], "o-", label=f"order {order}")
    axes.set(xlabel="cells along an axis", ylabel="largest error")
    axes.legend()


if __name__ == "__main__":
    for order in WEIGHTS:
        errors = [solve(order, n) for n in (10, 20)]
        print(f"order {order}: errors {errors[0]:.2e} {errors[1]:.2e}, a factor of {errors[0] / errors[1]:.0f}")
