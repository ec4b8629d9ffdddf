"""Waves on a periodic square: leapfrog in time, fourth order in space.

    u_tt = u_xx + u_yy,  u(x, y, 0) = sin(2 pi x) sin(2 pi y)

The standing wave cos(sqrt(8) pi t) sin(2 pi x) sin(2 pi y) is the exact solution. The older level is overwritten by the
newer one, so that two arrays hold the whole simulation.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Periodic, System, TimeLoop

FREQUENCY = np.sqrt(8.0) * np.pi


@stencil
def wave(u, older, c2, i, j):
    near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
    far = u[i - 2, j] + u[i + 2, j] + u[i, j - 2] + u[i, j + 2]
    laplacian = (16.0 * near - far - 60.0 * u[i, j]) / 12.0
    return 2.0 * u[i, j] - older[i, j] + c2 * laplacian


def square(cells: int, device: str | None = None, **options) -> TimeLoop:
    system = System([wave], {"u": "wave", "older": "u"})
    return TimeLoop(system, (cells, cells), {"u": Periodic()}, device=device, **options)


def start(cells: int, dt: float, device: str | None = None) -> TimeLoop:
    """A loop whose fields are the exact solution at the times 0 and -dt."""
    x = np.arange(cells) / cells
    shape = np.sin(2 * np.pi * x)[:, None] * np.sin(2 * np.pi * x)
    loop = square(cells, device)
    loop.set("u", shape)
    loop.set("older", np.cos(FREQUENCY * dt) * shape)
    return loop


def solve(cells: int, time: float = 0.25, device: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Numerical and exact solution. The step shrinks with the square of the spacing, so that space is what errs."""
    dt = time / round(0.5 * time * cells**2)
    loop = start(cells, dt, device)
    exact = np.cos(FREQUENCY * time) * loop.to_numpy("u")
    loop.run(round(time / dt), c2=(dt * cells) ** 2)
    return loop.to_numpy("u"), exact


def energy(loop: TimeLoop, dt: float) -> float:
    """What leapfrog conserves: kinetic energy between two levels, and the product of their gradients."""
    u, older = loop.to_numpy("u"), loop.to_numpy("older")

    def laplacian(f: np.ndarray) -> np.ndarray:
        near = sum(np.roll(f, s, a) for s in (-1, 1) for a in (0, 1))
        far = sum(np.roll(f, s, a) for s in (-2, 2) for a in (0, 1))
        return (16.0 * near - far - 60.0 * f) / 12.0 * len(f) ** 2

    return float((((u - older) / dt) ** 2 - u * laplacian(older)).mean())


def picture(axes) -> None:
    cells, dt = 48, 0.01
    loop = square(cells)
    x = np.arange(cells) / cells - 0.5
    drop = np.exp(-100 * (x[:, None] ** 2 + x**2))
    loop.set("u", drop)
    loop.set("older", drop)
    loop.run(25, c2=(dt * cells) ** 2)
    axes.imshow(loop.to_numpy("u"), extent=(0, 1, 0, 1), cmap="RdBu")
    axes.set(title=f"a drop, t = {25 * dt}")


if __name__ == "__main__":
    for cells in (8, 16, 32):
        u, exact = solve(cells)
        print(f"{cells:2d}^2 cells: largest error {abs(u - exact).max():.2e}")
