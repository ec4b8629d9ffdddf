"""Two substances that react and diffuse (Gray and Scott): spots and stripes grow from a seed.

    u_t = Du lap u - u v^2 + F (1 - u)
    v_t = Dv lap v + u v^2 - (F + k) v

One stencil gives both new fields, so that both are read once a step.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Periodic, System, TimeLoop

DU, DV, FEED, KILL = 0.16, 0.08, 0.035, 0.065


def laplacian(f, i, j):
    return f[i - 1, j] + f[i + 1, j] + f[i, j - 1] + f[i, j + 1] - 4.0 * f[i, j]


@stencil
def react(u, v, dt, i, j):
    uvv = u[i, j] * v[i, j] * v[i, j]
    du = DU * laplacian(u, i, j) - uvv + FEED * (1.0 - u[i, j])
    dv = DV * laplacian(v, i, j) + uvv - (FEED + KILL) * v[i, j]
    return u[i, j] + dt * du, v[i, j] + dt * dv


def seed(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """A square of the second substance in the middle of the first, with a little noise."""
    u, v = np.ones((cells, cells)), np.zeros((cells, cells))
    middle = slice(cells // 2 - cells // 8, cells // 2 + cells // 8)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    noise = np.random.default_rng(0).uniform(-0.02, 0.02, (2, cells, cells))
    return u + noise[0], v + noise[1]


def reactor(cells: int, device: str | None = None, **options) -> TimeLoop:
    system = System([react], {"u": "react_0", "v": "react_1"})
    return TimeLoop(system, (cells, cells), {"u": Periodic(), "v": Periodic()}, device=device, **options)


def solve(cells: int, steps: int, device: str | None = None, **options) -> tuple[np.ndarray, np.ndarray]:
    """Both substances after so many steps of length 1."""
    loop = reactor(cells, device, **options)
    for name, values in zip("uv", seed(cells), strict=True):
        loop.set(name, values)
    loop.guard(100)
    loop.run(steps, dt=1.0)
    return loop.to_numpy("u"), loop.to_numpy("v")


def picture(axes) -> None:
    axes.imshow(solve(96, 2500, "cpu", engine="reference")[1], cmap="magma")
    axes.set(title="v after 2500 steps")


if __name__ == "__main__":
    _, v = solve(64, 200)
    print(f"second substance after 200 steps: {v.min():.3f} to {v.max():.3f}, mean {v.mean():.4f}")
