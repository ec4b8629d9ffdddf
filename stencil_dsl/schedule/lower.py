"""Lower a problem under any schedule."""

from __future__ import annotations

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule import shifted, shuffle, streaming
from stencil_dsl.schedule.problem import Lowered, Problem
from stencil_dsl.schedule.schedule import Schedule

_LOWERINGS = {"shifted": shifted.lower, "streaming": streaming.lower, "shuffle": shuffle.lower}


def lower(problem: Problem, schedule: Schedule) -> Lowered:
    """The level-3 module of a stencil under a schedule.

    Raises:
        ScheduleError: where the schedule is not legal for the problem.
    """
    if schedule.strips:
        raise ScheduleError(
            f"strips {schedule.strips!r} are kernels of their own and this is one; cut the interior with `strips.parts`"
        )
    lowered = _LOWERINGS[schedule.kind](problem, schedule)
    lowered.module.verify()
    return lowered
