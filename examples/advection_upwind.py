"""Transport to the right along a periodic line by the upwind scheme.

    u_t + u_x = 0

The stencil reads to the left only, so only that side has ghost cells. With a step as long as the wind takes for a cell
it is exact; with shorter ones it is of first order and smears.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Periodic, TimeLoop


@stencil
def upwind(u, c, i):
    return u[i] - c * (u[i] - u[i - 1])


def profile(x: np.ndarray) -> np.ndarray:
    return np.exp(np.sin(2 * np.pi * x))


def averages(cells: int, shift: float = 0.0) -> np.ndarray:
    """The profile in the middle of the cells, moved to the right."""
    return profile((np.arange(cells) + 0.5) / cells - shift)


def line(cells: int, device: str | None = None, **options) -> TimeLoop:
    loop = TimeLoop(upwind, (cells,), {"u": Periodic()}, device=device, **options)
    loop.set("u", averages(cells))
    return loop


def solve(cells: int, steps: int, courant: float, device: str | None = None) -> tuple[TimeLoop, np.ndarray]:
    """The loop after so many steps and what it should hold."""
    loop = line(cells, device)
    loop.run(steps, c=courant)
    return loop, averages(cells, steps * courant / cells)


def picture(axes) -> None:
    for cells in (32, 64, 128):
        loop, exact = solve(cells, cells, 0.5)
        x = (np.arange(cells) + 0.5) / cells
        axes.plot(x, loop.to_numpy("u"), label=f"{cells} cells")
    axes.plot(x, exact, "k:", label="exact")
    axes.set(xlabel="x", ylabel="u")
    axes.legend()


if __name__ == "__main__":
    for cells in (32, 64, 128):
        loop, exact = solve(cells, cells // 2, 0.5)
        lost = loop.total("u") - averages(cells).sum()
        print(
            f"{cells:3d} cells: largest error {abs(loop.to_numpy('u') - exact).max():.2e}, change of the sum {lost:.0e}"
        )
