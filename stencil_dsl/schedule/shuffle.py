"""The shuffle schedule: streaming whose neighbours along the contiguous axis come from the other lanes of a warp.

Every row of a plane is loaded once, wide and aligned; a device function of a tile library evaluates the plane for all
rows of a block and gets z-neighbours by shuffles between lanes. Needs a toolkit that links tile libraries.
"""

from __future__ import annotations

import json

from stencil_dsl.dialects.simt import LibraryOp
from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.builder import TileBuilder
from stencil_dsl.schedule.plan import Plan
from stencil_dsl.schedule.problem import Lowered, Problem
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shifted import kernel_block, wrap_module
from stencil_dsl.schedule.shuffle_body import ShuffleBody, lane_reach
from stencil_dsl.schedule.shuffle_function import WARP
from stencil_dsl.schedule.streaming import outline
from stencil_dsl.tilelib.library import Code, TileLibrary


def check(problem: Problem, schedule: Schedule) -> None:
    """Refuse what only this schedule cannot do; raises ScheduleError naming the field of the schedule."""
    lanes = schedule.tile[-1]
    if lanes % (WARP * schedule.warps):
        raise ScheduleError(
            f"kind='shuffle': tile {schedule.tile} has {lanes} lanes along z for {schedule.warps} warps; use a multiple"
            f" of {WARP * schedule.warps}, or fewer warps"
        )
    if problem.ndim == 3 and schedule.tile[1] != 1:
        raise ScheduleError(f"kind='shuffle': a row is one cell wide along y, got tile {schedule.tile}; use rows=")
    if schedule.ahead or schedule.carry == "queue":
        raise ScheduleError("kind='shuffle' loads every plane when it is needed; use ahead=False and carry='reload'")


def check_reach(problem: Problem, schedule: Schedule, plan: Plan) -> None:
    """Refuse what only this schedule cannot do, neighbours more than a warp away included; raises ScheduleError."""
    check(problem, schedule)
    for field, name in enumerate(problem.fields):
        left, right = lane_reach(plan, field, schedule.pair)
        if left + right > WARP:
            raise ScheduleError(
                f"kind='shuffle': {name!r} is read up to {left} and {right} lanes away along z; a warp has {WARP} lanes"
                f" for both sides, so use a larger pair than {schedule.pair}, or kind='streaming'"
            )


def lower(problem: Problem, schedule: Schedule) -> Lowered:
    """Lower to level 3 and a tile library (`Lowered.libraries`).

    Raises:
        ScheduleError: where the schedule is not legal, or neighbours lie more than a warp away.
    """
    o = outline(problem, schedule)
    check_reach(problem, schedule, o.plan)
    g = o.geometry
    block = kernel_block(problem, list(o.params), 1)
    lane = (1,) * (problem.ndim - 1) + (g.tz,)
    kernel = TileBuilder(block, problem.element, lane, schedule.order == "fast")
    body = ShuffleBody(problem, schedule, o.plan, g, kernel, o.axes)
    body.build()
    exports, texts = zip(*body.functions.values(), strict=True)
    library = TileLibrary(body.library, exports, tuple(Code("nvvm", t) for t in texts))
    module = wrap_module(problem, block, schedule, list(o.params), o.grid)
    description = json.dumps({k: v for k, v in library.to_json().items() if k != "name"})
    kernel_op = module.body.block.first_op
    assert kernel_op is not None
    module.body.block.insert_op_before(LibraryOp(library.name, description), kernel_op)
    owned = (g.planes(0), g.rows, g.tz * g.pair)
    return Lowered(
        module,
        problem.name,
        o.params,
        o.grid,
        o.axes,
        owned if problem.ndim == 3 else (owned[0], owned[2]),
        libraries=(library,),
    )
