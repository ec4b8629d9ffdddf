"""Random legal schedules, and interiors that do not fit them: one cell, less than a tile, a tile and a bit."""

from __future__ import annotations

from typing import Any

from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.testing.choose import Choose, chance

KINDS = ("shifted", "streaming", "streaming", "shuffle")
SHIFTED_TILES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((8,), (16,), (64,), (1,)),
    2: ((1, 16), (4, 8), (2, 32), (1, 1)),
    3: ((1, 1, 16), (4, 8, 8), (1, 4, 8), (2, 2, 16), (1, 1, 1)),
}
STREAMING_TILES: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((1, 8), (1, 16), (1, 4)),
    3: ((1, 1, 8), (1, 1, 16), (1, 4, 4), (1, 2, 8)),
}
"""Small tiles: the interpreter runs block by block, and a small interior shall have several of them."""

DEVICE_SHIFTED: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((128,), (256,)),
    2: ((1, 128), (4, 64)),
    3: ((1, 1, 128), (1, 4, 32), (4, 8, 8), (2, 2, 64)),
}
DEVICE_STREAMING: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((1, 64), (1, 128)),
    3: ((1, 1, 64), (1, 1, 128), (1, 4, 32), (1, 2, 64)),
}
"""Tiles with at least as many cells as a block of four warps has threads, or half of that."""


def random_schedule(
    choose: Choose, ndim: int, dtype: str, order: str, kind: str | None = None, device: bool = False
) -> Schedule:
    """A schedule that is legal for padded arrays.

    Args:
        kind: "shifted", "streaming" or "shuffle"; None chooses.
        device: tiles of the size that real kernels have.
    """
    if ndim == 1:
        kind = "shifted"
    kind = kind or choose.one_of(("shifted", "streaming", "streaming") if device else KINDS)
    options: dict[str, Any] = {
        "kind": kind,
        "order": order,
        "block_order": choose.one_of(("z", "y")),
        "latency": choose.one_of((None, None, 1, 10)),
    }
    if device:
        options["occupancy"] = choose.one_of((None, 1, 2))
    if kind == "shifted":
        tiles = DEVICE_SHIFTED if device else SHIFTED_TILES
        options["tile"] = choose.one_of(tiles[ndim])
        options["static_shape"] = chance(choose, 60)
        # Memory behind an array holds the rest of a plane's tile, not whole planes.
        flat = options["tile"][0] == 1 or ndim < 3
        options["loads"] = choose.one_of(("auto", "unchecked", "checked") if flat else ("auto", "checked"))
        return Schedule(**options)
    tiles = DEVICE_STREAMING if device else STREAMING_TILES
    options |= {
        "tile": choose.one_of(tiles[ndim]),
        "rows": choose.integer(1, 4) if ndim == 3 else 1,
        "chunk": choose.one_of((2, 4, 7, 64, 1, 3)),
        "pair": choose.one_of((1, PAIR_BYTES // ITEMSIZE[dtype])),
        "unroll": choose.integer(1, 3),
        "carry": choose.one_of(("reload", "queue")),
        "split_tail": chance(choose, 60),
        "ahead": chance(choose, 30),
        "head_loop": chance(choose, 60),
        "loads_first": chance(choose, 30),
        "sums": choose.one_of(("rows", "inward", "outward", "groups")),
    }
    if kind == "shuffle":
        options |= {"tile": (1,) * (ndim - 1) + (32,), "warps": 1, "ahead": False, "carry": "reload"}
    return Schedule(**options)


def random_interior(choose: Choose, schedule: Schedule) -> tuple[int, ...]:
    """Extents that meet every edge case of a schedule, and are small."""
    ndim = len(schedule.tile)
    shape = []
    for axis, extent in enumerate(schedule.tile):
        wide = extent
        if schedule.kind != "shifted":
            if axis == ndim - 1:
                wide = extent * schedule.pair
            elif axis == 0:
                # Enough planes for several chunks, or for one chunk that is not full.
                shape.append(choose.integer(1, 3 * min(schedule.chunk, 4) + 1))
                continue
            else:
                wide = extent * schedule.rows
        around = (1, wide - 1, wide, wide + 1, 2 * wide, 2 * wide + 1, wide + wide // 2)
        shape.append(max(1, choose.one_of(around)))
    return tuple(shape)
