"""Heat on a periodic square that is stored as bricks of 8 x 8 cells.

The field is converted to bricks, the kernel runs on all bricks at once (they are an axis of their own, along which the
stencil reads nothing), ghost cells come from the neighbouring bricks, and at the end the field is converted back.
"""

from __future__ import annotations

import numpy as np

import stencil_dsl
from stencil_dsl import stencil
from stencil_dsl.solve.bricks import Bricks

COURANT = 0.2


@stencil
def heat(u, brick, i, j):
    around = u[brick, i - 1, j] + u[brick, i + 1, j] + u[brick, i, j - 1] + u[brick, i, j + 1]
    return u[brick, i, j] + COURANT * (around - 4.0 * u[brick, i, j])


def start(cells: int) -> np.ndarray:
    x = np.arange(cells) / cells
    return np.cos(2 * np.pi * x)[:, None] * np.cos(4 * np.pi * x)


def decay(cells: int) -> float:
    """What a step leaves of the field `start`, on the grid."""
    sines = [np.sin(np.pi * k / cells) ** 2 for k in (1, 2)]
    return float(1.0 - 4.0 * COURANT * sum(sines))


def solve(cells: int, steps: int, brick: int = 8, device: str | None = None) -> np.ndarray:
    kernel = stencil_dsl.compile(heat)
    rows = stencil_dsl.asarray(start(cells), kernel.halo[1:], device=device)
    now, after = Bricks.of(rows, (brick, brick), 1), Bricks.of(rows, (brick, brick), 1)
    for _ in range(steps):
        now.fill()
        kernel(now.padded, after.padded)
        now, after = after, now
    now.to_rows(rows)
    return rows.to_numpy()


def picture(axes) -> None:
    bricks = Bricks.of(stencil_dsl.asarray(start(32), device="cpu"), (8, 8))
    axes.imshow(bricks.cells.reshape(bricks.count, 64), aspect="auto", cmap="magma")
    axes.set(title="the field in memory", xlabel="cell of a brick", ylabel="brick")


if __name__ == "__main__":
    error = abs(solve(32, 10) - decay(32) ** 10 * start(32)).max()
    print(f"largest error after 10 steps {error:.1e}")
