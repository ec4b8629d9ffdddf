"""Maxwell's equations along a line (Yee): electric field in points, magnetic field between them.

    e_t = h_x,  h_t = e_x,  e = 0 at both walls

With a step as long as light takes from point to point the scheme is exact: a pulse moves one point a step, and a
conducting wall turns it round with the opposite sign. Both fields are updated in place, since nothing reads their old
values any more.

Cell i of the arrays is point i, and i + 1/2 for h. The first point lies in one wall: with h mirrored there, e stays 0.
The other wall is the ghost cell behind the last one.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.frontend import Staggered, half
from stencil_dsl.solve import Dirichlet, Symmetric, System, TimeLoop


@stencil
def e_next(e, h: Staggered[0], c, i):
    return e[i] + c * (h[i + half] - h[i - half])


@stencil
def h_next(h: Staggered[0], e_next, c, i):
    return h[i + half] + c * (e_next[i + 1] - e_next[i])


def pulse(x: np.ndarray) -> np.ndarray:
    return np.exp(-(((x - 16.0) / 4.0) ** 2)) * (x > 0)


def cavity(cells: int, device: str | None = None, **options) -> TimeLoop:
    """A pulse that moves to the right between two walls, `cells` steps apart."""
    system = System([e_next, h_next], {"e": "e_next", "h": "h_next"})
    rules = {"e": {"z+": Dirichlet(0.0)}, "h": {"z-": Symmetric()}}
    loop = TimeLoop(system, (cells,), rules, device=device, **options)
    x = np.arange(cells)
    loop.set("e", pulse(x))
    loop.set("h", -pulse(x))  # half a step later, half a cell further
    return loop


def exact(cells: int, steps: int) -> np.ndarray:
    """The pulse on the unfolded line, with an image of the opposite sign for every wall."""
    x = np.arange(cells)
    period = 2 * cells
    return sum(pulse(x - steps + m * period) - pulse(-x - steps + m * period) for m in range(steps // period + 2))


def picture(axes) -> None:
    loop = cavity(96)
    for steps in (0, 40, 76, 110):
        loop.run(until=steps, c=1.0)
        axes.plot(loop.to_numpy("e"), label=f"step {steps}")
    axes.set(xlabel="point", ylabel="e")
    axes.legend()


if __name__ == "__main__":
    loop = cavity(64)
    for steps in (10, 64, 128, 200):
        loop.run(until=steps, c=1.0)
        print(f"step {steps:3d}: largest error {abs(loop.to_numpy('e') - exact(64, steps)).max():.1e}")
