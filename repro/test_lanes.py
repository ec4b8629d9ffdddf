"""Neighbours along the contiguous axis from other lanes (`kind="shuffle"`, a tile library) beside what the tables use.

The blockings of the table are what the model of shuffles is fitted to (`python -m repro.ranking lanes`); `shuffle-
model` is the one that it predicts fastest, often longer chunks or more rows than those. With `--ncu` the counters of
it and of the tables' schedule are read, not of every blocking: each takes a process of three to four seconds.

CNS has five outputs, 40 open sums and 48 shuffled values a row. One element a lane in one row is what 255 registers
hold: two rows spill 70 times a trip, pairs 26 times, so it has blockings of its own, of one row in three widths.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from repro.rows import ROWS
from repro.tuning import STORE
from stencil_dsl.testing import Question, asks, sweep_question

if TYPE_CHECKING:
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.schedule.schedule import Schedule

CUBE = (512,) * 3
#: Name -> (module, function, shape, steps of a sweep).
CASES = {
    **{row.id: ("stencils", row.function, CUBE, 1) for row in ROWS.values()},
    "plane-5": ("more_stencils", "plane_5", (16384,) * 2, 1),
    "star-7-steps-2": ("stencils", "star_7", CUBE, 2),
}
BLOCKS = ("1x2", "1x4", "4x2", "4x4", "8x2", "8x4")
"""Warps of a row by rows of a block; in two dimensions blocks have one row, and the first of a width is taken."""
ONE_ROW = ("1x1", "4x1", "8x1")
CNS_OCCUPANCIES = {1: None, 4: 2, 8: 1}
"""By warps: hints that leave all 255 registers."""


def blocks_of(case: str) -> tuple[str, ...]:
    """Names of the blockings that a case has."""
    return ONE_ROW if case == "cns" or len(CASES[case][2]) == 2 else BLOCKS


def blockings(case: str, definition: Definition, shape: tuple[int, ...]) -> list[Schedule]:
    """The schedules that `blocks_of` names, in its order."""
    from stencil_dsl.schedule.schedule import Schedule
    from stencil_dsl.schedule.shuffle_candidates import CHUNK, shuffle_blockings

    if case != "cns":
        return list(shuffle_blockings(definition.graph, "float64", shape))
    one = Schedule("shuffle", tile=(1, 1, 32), warps=1, chunk=CHUNK, order="fast")
    return [one.with_(tile=(1, 1, 32 * w), warps=w, occupancy=o) for w, o in CNS_OCCUPANCIES.items()]


def lanes(case: str) -> Question:
    """The schedule of the tables, shuffles, and a copy of the compulsory bytes."""
    from repro.test_steps import listed
    from stencil_dsl.runtime.select import rank_lanes
    from stencil_dsl.runtime.specialize import padded_form
    from stencil_dsl.schedule.target import H200
    from stencil_dsl.testing.sweeps import definition_of

    module, function, shape, steps = CASES[case]
    f = getattr(importlib.import_module(f"repro.{module}"), function)
    definition = definition_of(f, "float64", steps)
    schedules: dict[str, Schedule | None] = {"dsl": listed("star-7", steps) if steps > 1 else listed(case, 1)}
    schedules |= {f"shuffle-{s.warps}x{s.rows}": s for s in blockings(case, definition, shape)}
    # Of the GPU that the model was fitted on, so that kernels can be made where another one is, or none.
    schedules["shuffle-model"] = rank_lanes(definition, padded_form(definition, shape), "fast", H200)[0].schedule
    profiled = ("dsl", "shuffle-model")
    return sweep_question(f"lanes-{case}", f, shape, schedules, store=STORE, steps=steps, profiled=profiled)


def contestants() -> list[object]:
    """Case and variant; without a device one blocking of the narrow stencils says all that compiling can say."""
    found = []
    compiled = {("star-7", "shuffle-4x2"), ("plane-5", "shuffle-4x1"), ("cns", "shuffle-4x1"), ("star-7", "copy")}
    for case in CASES:
        for variant in ("dsl", *(f"shuffle-{b}" for b in blocks_of(case)), "shuffle-model", "copy"):
            marks = () if (case, variant) in compiled else (pytest.mark.timed_only,)
            found.append(pytest.param(case, variant, marks=marks, id=f"{case}-{variant}"))
    return found


@pytest.mark.parametrize(("case", "variant"), contestants())
@asks(lanes)
def test_lanes(case, variant, result):
    result.check()
