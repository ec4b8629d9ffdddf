"""Shallow water on a periodic square: finite volumes with Rusanov's flux, two stages (SSP-RK2) a step.

    h_t + m_x + n_y = 0
    m_t + (m^2 / h + g h^2 / 2)_x + (m n / h)_y = 0
    n_t + (m n / h)_x + (n^2 / h + g h^2 / 2)_y = 0

The fluxes through all four faces of a cell, the sum of the stage and the update are one kernel. Whatever leaves a cell
enters its neighbour, so the sums of all three fields stay what they are.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Integrate, Periodic, TimeLoop

G = 9.81


def flux(h, normal, tangential):
    """Flux of depth and of both components of momentum, and the speed of the fastest wave."""
    speed = normal / h
    return normal, normal * speed + 0.5 * G * h * h, tangential * speed, abs(speed) + (G * h) ** 0.5


def through(left, right):
    """Rusanov's flux through the face between two states (depth, normal and tangential momentum)."""
    a, b = flux(left[0], left[1], left[2]), flux(right[0], right[1], right[2])
    fastest = max(a[3], b[3])
    return (
        0.5 * (a[0] + b[0] - fastest * (right[0] - left[0])),
        0.5 * (a[1] + b[1] - fastest * (right[1] - left[1])),
        0.5 * (a[2] + b[2] - fastest * (right[2] - left[2])),
    )


@stencil
def rates(h, m, n, r, i, j):
    centre = h[i, j], m[i, j], n[i, j]
    west = through((h[i - 1, j], m[i - 1, j], n[i - 1, j]), centre)
    east = through(centre, (h[i + 1, j], m[i + 1, j], n[i + 1, j]))
    turned = h[i, j], n[i, j], m[i, j]
    south = through((h[i, j - 1], n[i, j - 1], m[i, j - 1]), turned)
    north = through(turned, (h[i, j + 1], n[i, j + 1], m[i, j + 1]))
    return (
        r * (west[0] - east[0] + south[0] - north[0]),
        r * (west[1] - east[1] + south[2] - north[2]),
        r * (west[2] - east[2] + south[1] - north[1]),
    )


def basin(cells: int, device: str | None = None, **options) -> TimeLoop:
    """Water at rest, one metre deep, with a hump in the middle; the square measures 100 m."""
    what = Integrate([rates], ["h", "m", "n"], "ssp-rk2")
    rules = {name: Periodic() for name in "hmn"}
    loop = TimeLoop(what, (cells, cells), rules, device=device, **options)
    x = (np.arange(cells) + 0.5) / cells - 0.5
    loop.set("h", 1.0 + 0.3 * np.exp(-60.0 * (x[:, None] ** 2 + x**2)))
    return loop


def run(loop: TimeLoop, steps: int) -> None:
    """Steps that a wave needs more than two of to cross a cell."""
    spacing = 100.0 / loop.shape[0]
    loop.run(steps, dt=0.4 * spacing / np.sqrt(G * 1.3) / 2, r=1.0 / spacing)


def picture(axes) -> None:
    loop = basin(64, "cpu", engine="reference")
    run(loop, 60)
    axes.imshow(loop.to_numpy("h"), extent=(0, 100, 0, 100), cmap="Blues")
    axes.set(title="depth, the hump after 60 steps")


if __name__ == "__main__":
    loop = basin(16)
    before = [loop.total(name) for name in "hmn"]
    run(loop, 10)
    changes = ", ".join(f"{name} {loop.total(name) - b:.1e}" for name, b in zip("hmn", before, strict=True))
    print(f"depth {loop.minimum('h'):.4f} to {loop.maximum('h'):.4f}; change of the sums: {changes}")
