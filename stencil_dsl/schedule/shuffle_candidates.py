"""Shuffle schedules worth considering: the blockings of the lanes table, and all that the model chooses from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from stencil_dsl.schedule.expr import Graph
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.schedule.shuffle_function import WARP

BLOCKS = ((1, 2, None), (1, 4, None), (4, 2, 4), (4, 4, 2), (8, 2, 2), (8, 4, 2))
"""(warps, rows, occupancy): rows of one warp, or long rows in blocks that share more loads along y."""

ROWS = (1, 2, 3, 4, 6)
OCCUPANCIES: dict[int, tuple[int | None, ...]] = {1: (None, 3, 4, 5), 2: (3, 4, 5), 4: (2, 3, 4, 5), 8: (1, 2, 3)}
"""By warps. The assembler takes blocks of one and two warps for ones of four: 3 leaves 168 registers, 4 128, 5 96."""

CHUNK, CHUNKS = 64, (32, 128)
"""Planes of a block; others are tried where these are promising."""


def _schedule(graph: Graph, warps: int, rows: int, occupancy: int | None, pair: int, order: str) -> Schedule:
    return Schedule(
        kind="shuffle",
        tile=(1,) * (graph.ndim - 1) + (WARP * warps,),
        warps=warps,
        occupancy=occupancy,
        order=order,  # type: ignore[arg-type]
        rows=rows if graph.ndim == 3 else 1,
        chunk=CHUNK,
        pair=pair,
    )


def shuffle_blockings(graph: Graph, dtype: str, shape: tuple[int, ...], order: str = "fast") -> Iterator[Schedule]:
    """Wide loads by one lane, short and long rows; legal for the rank but not yet for the stencil's reach."""
    if graph.ndim == 1:
        return
    pair = PAIR_BYTES // ITEMSIZE[dtype]
    seen = set()
    for warps, rows, occupancy in BLOCKS:
        schedule = _schedule(graph, warps, rows, occupancy, pair, order)
        if WARP * warps * pair <= 2 * shape[-1] and schedule not in seen:
            seen.add(schedule)
            yield schedule


def shuffle_candidates(graph: Graph, dtype: str, shape: tuple[int, ...], order: str = "fast") -> Iterator[Schedule]:
    """All blockings that the model chooses from, in one length of chunk; legal for the rank as above."""
    if graph.ndim == 1:
        return
    wide = PAIR_BYTES // ITEMSIZE[dtype]
    # One element a lane leaves room for many outputs. More than one load a lane is joined in shared memory.
    pairs = sorted({1, wide})
    for pair, warps, rows in product(pairs, OCCUPANCIES, ROWS if graph.ndim == 3 else (1,)):
        if WARP * warps * pair > 2 * shape[-1] or (graph.ndim == 3 and rows > 2 * shape[-2]):
            continue
        for occupancy in OCCUPANCIES[warps]:
            yield _schedule(graph, warps, rows, occupancy, pair, order)
