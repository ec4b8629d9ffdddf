"""Brick layout and vector scatter: our own generator after the papers' description of *Trans*.

One warp computes one brick. A vector is 32 cells of one plane: the fold, 4 x 8 in a brick of 8^3, 1 x 32 in one
of 4 x 4 x 32. Every vector of the brick and of its surroundings is loaded once; shifted vectors come from
shuffles; and each plane's values are scattered to the sums of all output planes they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.baselines.base import Baseline, Launch, Shape, ceil_div, symbol
from repro.baselines.bricks import BrickGrid
from repro.baselines.model import model
from repro.baselines.trans_body import Scatter

BRICKS: tuple[Shape, ...] = ((8, 8, 8), (4, 4, 32))


def configs(row: str) -> list[dict[str, Any]]:
    """What is searched: b = brick extents (x, y, z), w = bricks a block, o = blocks an SM (0: no limit)."""
    found = [{"b": "x".join(map(str, brick)), "w": w, "o": 16 // w} for w in (1, 4) for brick in BRICKS]
    return [*found, *({"b": "x".join(map(str, brick)), "w": 1, "o": 0} for brick in BRICKS)]


def generate(row: str, shape: Shape, config: Mapping[str, Any] | None = None) -> Baseline:
    """The brick kernels of a row: one an output.

    Raises:
        ValueError: for bricks that a warp's vectors do not fill, or thinner than the row's radius.
    """
    config = dict(config or configs(row)[0])
    bx, by, bz = (int(n) for n in str(config["b"]).split("x"))
    m = model(row)
    if 32 % bz or by % (32 // bz):
        raise ValueError(f"a brick's rows must fold into vectors of 32 cells, {config['b']} does not")
    if any(r > b for r, b in zip(m.radius, (bx, by, bz), strict=True)) or 2 * m.radius[2] > bz:
        raise ValueError(f"bricks of {config['b']} are too small for radius {m.radius}")
    grid = BrickGrid(shape, (bx, by, bz))
    warps = int(config["w"])
    count = grid.interior.size
    texts, launches = [], []
    for k, output in enumerate(m.outputs):
        part = m.only((k,))
        name = symbol(f"trans_{row}" + (f"_{output}" if len(m.outputs) > 1 else ""))
        texts.append(Scatter(part, name, (bx, by, bz), warps, int(config["o"]), count).text())
        launches.append(
            Launch(name, (ceil_div(count, warps), 1, 1), (32, warps, 1), (*part.fields, output, "bricks", "near"))
        )
    return Baseline(row, "trans", config, shape, "\n".join(texts), tuple(launches), bricks=(bx, by, bz))
