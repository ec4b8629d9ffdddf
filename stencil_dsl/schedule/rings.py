"""Rows that close to a ring: what a schedule must be for a kernel that reads periodic rows without ghost cells."""

from __future__ import annotations

from collections.abc import Iterable

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.expr import Node
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import Schedule


def ring_fields(problem: Problem, nodes: Iterable[Node]) -> list[int]:
    """Fields that are read beyond the ends of periodic rows."""
    return sorted({a.field for a in nodes if a.offset[-1] and problem.wraps(a.field)})


def check_rings(problem: Problem, schedule: Schedule, nodes: Iterable[Node]) -> None:
    """Refuse schedules that cannot read periodic rows.

    Raises:
        ScheduleError: for rows whose length is not compiled in, is no multiple of a pair, or is less than the reach of
            the stencil; and for shuffles, whose lanes have no neighbours beyond a warp but ghost cells.
    """
    wrapped = ring_fields(problem, nodes)
    if not wrapped:
        return
    name = problem.fields[wrapped[0]]
    if schedule.kind == "shuffle":
        raise ScheduleError(f"field {name!r} has periodic rows, which kind='shuffle' cannot read; use 'streaming'")
    if problem.shape is None:
        raise ScheduleError(f"field {name!r} has periodic rows, whose length must be known; use static_shape=True")
    n = problem.shape[-1]
    if n % schedule.pair:
        raise ScheduleError(
            f"field {name!r} has periodic rows of {n} cells, which pairs of {schedule.pair} do not divide; use pair=1"
        )
    reach = max(-(-abs(a.offset[-1]) // schedule.pair) * schedule.pair for a in nodes if a.field in wrapped)
    if reach > n:
        raise ScheduleError(f"field {name!r} has periodic rows of {n} cells and is read {reach} cells away")


def suits_rings(schedule: Schedule, cells: int) -> bool:
    """Whether a schedule reads periodic rows of so many cells as fast as others.

    Where single elements are read, the compiler deals them out along the first axis of a tile that is longer than 1,
    rows elsewhere along the last one; what it loads then goes through shared memory to the threads that want it.
    """
    if schedule.kind == "shuffle" or not schedule.static_shape or cells % schedule.pair or "z" in schedule.strips:
        return False
    single = schedule.kind == "shifted" or schedule.pair == 1
    return not single or all(n == 1 for n in schedule.tile[:-1])
