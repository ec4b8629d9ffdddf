"""Neighbours along the contiguous axis from other lanes (`kind="shuffle"`, a tile library) beside what the tables use.

Every blocking of the shuffle schedule is timed, as there is no model of them; the fastest of a stencil stands for it.
"""

from __future__ import annotations

import importlib

import pytest

from repro.rows import ROWS
from repro.tuning import STORE
from stencil_dsl.testing import Question, asks, sweep_question

CUBE = (512,) * 3
#: Name -> (module, function, shape, steps of a sweep).
CASES = {
    **{row.id: ("stencils", row.function, CUBE, 1) for row in ROWS.values() if row.id != "cns"},
    "plane-5": ("more_stencils", "plane_5", (16384,) * 2, 1),
    "star-7-steps-2": ("stencils", "star_7", CUBE, 2),
}
BLOCKS = ("1x2", "1x4", "4x2", "4x4", "8x2", "8x4")
"""Warps of a row by rows of a block; in two dimensions blocks have one row, and the first of a width is taken."""


def lanes(case: str) -> Question:
    """The schedule of the tables, shuffles, and a copy of the compulsory bytes."""
    from repro.test_steps import listed
    from stencil_dsl.schedule.shuffle_candidates import shuffle_blockings
    from stencil_dsl.testing.sweeps import definition_of

    module, function, shape, steps = CASES[case]
    f = getattr(importlib.import_module(f"repro.{module}"), function)
    dsl = listed("star-7", steps) if steps > 1 else listed(case, 1)
    found = shuffle_blockings(definition_of(f, "float64", steps).graph, "float64", shape)
    schedules = {f"shuffle-{s.warps}x{s.rows}": s for s in found}
    return sweep_question(f"lanes-{case}", f, shape, {"dsl": dsl, **schedules}, store=STORE, steps=steps)


def contestants() -> list[object]:
    """Case and variant; without a device one blocking of the narrow stencils says all that compiling can say."""
    found = []
    for case, (_, _, shape, _) in CASES.items():
        blocks = BLOCKS if len(shape) == 3 else ("1x1", "4x1", "8x1")
        for variant in ("dsl", *(f"shuffle-{b}" for b in blocks), "copy"):
            always = (case, variant) in {("star-7", "shuffle-4x2"), ("plane-5", "shuffle-4x1"), ("star-7", "copy")}
            marks = () if always else (pytest.mark.timed_only,)
            found.append(pytest.param(case, variant, marks=marks, id=f"{case}-{variant}"))
    return found


@pytest.mark.parametrize(("case", "variant"), contestants())
@asks(lanes)
def test_lanes(case, variant, result):
    result.check()
