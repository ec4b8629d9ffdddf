"""Shuffle schedules worth timing; there is no model of them, so they are few."""

from __future__ import annotations

from collections.abc import Iterator

from stencil_dsl.schedule.expr import Graph
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.schedule.shuffle_function import WARP

BLOCKS = ((1, 2, None), (1, 4, None), (4, 2, 4), (4, 4, 2), (8, 2, 2), (8, 4, 2))
"""(warps, rows, occupancy): rows of one warp, or long rows in blocks that share more loads along y."""


def shuffle_candidates(graph: Graph, dtype: str, shape: tuple[int, ...], order: str = "fast") -> Iterator[Schedule]:
    """Wide loads by one lane, short and long rows; legal for the rank but not yet for the stencil's reach."""
    if graph.ndim == 1:
        return
    pair = PAIR_BYTES // ITEMSIZE[dtype]
    seen = set()
    for warps, rows, occupancy in BLOCKS:
        lanes = WARP * warps
        if lanes * pair > 2 * shape[-1]:
            continue
        schedule = Schedule(
            kind="shuffle",
            tile=(1,) * (graph.ndim - 1) + (lanes,),
            warps=warps,
            occupancy=occupancy,
            order=order,  # type: ignore[arg-type]
            rows=rows if graph.ndim == 3 else 1,
            pair=pair,
        )
        if schedule not in seen:
            seen.add(schedule)
            yield schedule
