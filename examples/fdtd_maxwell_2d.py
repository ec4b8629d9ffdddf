"""Maxwell's equations in a square cavity (Yee, transverse magnetic): three fields on staggered places.

    e_t = hy_x - hx_y,  hx_t = -e_y,  hy_t = e_x,  e = 0 on the walls

e lives in points, hx half a point further along the second axis, hy along the first. A standing wave keeps its shape,
and its frequency on the grid is known: sin^2(w dt / 2) = c^2 (sin^2(kx / 2) + sin^2(ky / 2)). The kernels for hx and
hy both read e, so the model fuses them into one.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.frontend import Staggered, half
from stencil_dsl.solve import Dirichlet, Symmetric, System, TimeLoop

COURANT = 0.6


@stencil
def e_next(e, hx: Staggered[1], hy: Staggered[0], c, i, j):
    curl = hy[i + half, j] - hy[i - half, j] - (hx[i, j + half] - hx[i, j - half])
    return e[i, j] + c * curl


@stencil
def hx_next(hx: Staggered[1], e_next, c, i, j):
    return hx[i, j + half] - c * (e_next[i, j + 1] - e_next[i, j])


@stencil
def hy_next(hy: Staggered[0], e_next, c, i, j):
    return hy[i + half, j] + c * (e_next[i + 1, j] - e_next[i, j])


RULES = {
    "e": {"x+": Dirichlet(0.0), "z+": Dirichlet(0.0)},
    "hx": {"z-": Symmetric()},
    "hy": {"x-": Symmetric()},
}


def cavity(cells: int, device: str | None = None, **options) -> TimeLoop:
    system = System([e_next, hx_next, hy_next], {"e": "e_next", "hx": "hx_next", "hy": "hy_next"})
    return TimeLoop(system, (cells, cells), RULES, device=device, **options)


def standing_wave(
    cells: int, modes: tuple[int, int] = (1, 2), device: str | None = None, **options
) -> tuple[TimeLoop, np.ndarray]:
    """A loop with one mode at time 0 (and the magnetic field half a step later), and the mode's shape."""
    loop = cavity(cells, device, **options)
    i = np.arange(cells + 1)
    full = np.sin(np.pi * modes[0] * i / cells)[:, None] * np.sin(np.pi * modes[1] * i / cells)
    loop.set("e", full[:-1, :-1])
    loop.set("hx", -COURANT / 2 * np.diff(full, axis=1)[:-1])
    loop.set("hy", COURANT / 2 * np.diff(full, axis=0)[:, :-1])
    return loop, full[:-1, :-1]


def phase(cells: int, modes: tuple[int, int] = (1, 2)) -> float:
    """What the wave's phase grows by in a step, on the grid."""
    sines = [np.sin(np.pi * m / (2 * cells)) ** 2 for m in modes]
    return float(2 * np.arcsin(COURANT * np.sqrt(sum(sines))))


def picture(axes) -> None:
    loop = cavity(64, "cpu", engine="reference")
    loop.source("e", (20, 24), lambda n: np.exp(-(((n - 20) / 7) ** 2)))
    loop.run(90, c=COURANT)
    axes.imshow(loop.to_numpy("e"), cmap="RdBu", vmin=-0.1, vmax=0.1)
    axes.set(title="a flash between conducting walls")


if __name__ == "__main__":
    loop, shape = standing_wave(24)
    for steps in (1, 10, 40):
        loop.run(until=steps, c=COURANT)
        error = abs(loop.to_numpy("e") - np.cos(phase(24) * steps) * shape).max()
        print(f"step {steps:2d}: largest error against the wave on the grid {error:.1e}")
