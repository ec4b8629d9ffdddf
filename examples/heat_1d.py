"""Heat in a rod whose ends are kept cold: explicit Euler, compared with the decaying sine that solves it.

    u_t = u_xx on (0, 1),  u = 0 at both ends,  u(x, 0) = sin(pi x)

Values live in the middle of cells and the ends on cell faces, hence `Dirichlet(0.0, at="face")`.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Dirichlet, TimeLoop

TIME = 0.05
COURANT = 0.25
"""dt / dx^2; the method is stable up to 0.5."""


@stencil
def heat(u, c, i):
    return u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1])


def rod(cells: int, device: str | None = None, **options) -> TimeLoop:
    return TimeLoop(heat, (cells,), {"u": Dirichlet(0.0, at="face")}, device=device, **options)


def solve(cells: int, device: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle of the cells, numerical and exact solution at the end."""
    dt = COURANT / cells**2
    steps = round(TIME / dt)
    x = (np.arange(cells) + 0.5) / cells
    loop = rod(cells, device)
    loop.set("u", np.sin(np.pi * x))
    loop.run(steps, c=COURANT)
    return x, loop.to_numpy("u"), np.exp(-(np.pi**2) * steps * dt) * np.sin(np.pi * x)


def picture(axes) -> None:
    """Numerical and exact solution, for the documentation."""
    x, u, exact = solve(32)
    axes.plot(x, np.sin(np.pi * x), ":", label="start")
    axes.plot(x, exact, label=f"exact, t = {TIME}")
    axes.plot(x, u, ".", label="computed")
    axes.set(xlabel="x", ylabel="u")
    axes.legend()


if __name__ == "__main__":
    for cells in (16, 32, 64):
        _, u, exact = solve(cells)
        print(f"{cells:3d} cells: largest error {abs(u - exact).max():.2e}")
