"""Schedules that differ from a good one in a single choice: the steps of a local search."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from typing import Any

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule import streaming
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.schedule.strips import cuts, main_part
from stencil_dsl.schedule.target import Target

FITTED = 3
"""Chunk lengths that are tried beside a given one."""

LEAST_CHUNK = 8
NARROWEST = 8
"""Threads along a row below which a warp reads less than whole lines."""


def fitted_chunks(problem: Problem, schedule: Schedule, target: Target, count: int = FITTED) -> list[int]:
    """Chunk lengths near a schedule's own with which the blocks fill whole waves of the GPU, the best first.

    A last wave that is nearly empty costs nearly as much as a full one; a short chunk repeats more of the planes that
    its neighbours read. Lengths from a half to twice the schedule's own are weighed by both.
    """
    o = streaming.outline(problem, schedule)
    g = o.geometry
    reach = max((s.hi - s.lo for s in o.plan.sums), default=0)
    per_chunk = prod(o.grid) // g.chunks
    held = target.sms * (schedule.occupancy or 4)
    costs: dict[int, float] = {}
    for chunks in range(max(1, g.nx // (2 * schedule.chunk)), 2 * ceil(g.nx / schedule.chunk) + 1):
        length = ceil(g.nx / chunks)
        if length < min(LEAST_CHUNK, g.nx) or ceil(g.nx / length) != chunks:
            continue
        waves = per_chunk * chunks / held
        costs[length] = ceil(waves) / waves * (1 + 0.5 * reach / length)
    return sorted(costs, key=lambda length: costs[length])[:count]


def _tiles(schedule: Schedule) -> Iterator[tuple[int, ...]]:
    """The same number of cells, in rows half and twice as long."""
    if len(schedule.tile) == 3:
        _, y, z = schedule.tile
        if y > 1:
            yield (1, y // 2, 2 * z)
        if z > NARROWEST:
            yield (1, 2 * y, z // 2)


def _changes(schedule: Schedule, itemsize: int) -> Iterator[dict[str, Any]]:
    yield from ({name: not getattr(schedule, name)} for name in ("ahead", "head_loop", "split_tail"))
    yield from ({"sums": sums} for sums in ("rows", "inward", "outward", "groups") if sums != schedule.sums)
    yield {"unroll": 1 if schedule.unroll > 1 else 2}
    yield {"latency": None if schedule.latency else 1}
    yield {"block_order": "y" if schedule.block_order == "z" else "z"}
    if schedule.occupancy is not None:
        yield from ({"occupancy": n} for n in (schedule.occupancy - 1, schedule.occupancy + 1) if n >= 1)
    if len(schedule.tile) == 3:
        yield from ({"rows": n} for n in (schedule.rows - 1, schedule.rows + 1) if n >= 1)
    yield from ({"tile": tile} for tile in _tiles(schedule))
    yield {"pair": PAIR_BYTES // itemsize if schedule.pair == 1 else 1}


def neighbours(problem: Problem, schedule: Schedule, target: Target) -> list[Schedule]:
    """Schedules one step away from a streaming schedule that are legal for a problem; none for other kinds.

    The problem's shape is known.
    """
    if schedule.kind != "streaming":
        return []
    lengths = fitted_chunks(*main_part(problem, schedule), target)
    steps: list[dict[str, Any]] = [{"chunk": length} for length in lengths]
    assert problem.shape is not None
    steps += [{"strips": axes} for axes in cuts(problem.shape, schedule)]
    found = []
    for change in [*steps, *_changes(schedule, problem.itemsize)]:
        try:
            near = schedule.with_(**change)
            streaming.outline(*main_part(problem, near))
        except ScheduleError:
            continue
        if near != schedule and near not in found:
            found.append(near)
    return found
