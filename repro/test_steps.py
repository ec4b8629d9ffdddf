"""Several applications of a stencil in one sweep (`temporal_steps`), by time a step.

k applications of a linear stencil are one wider stencil; whether its arithmetic costs less than the k - 1 passes over
memory that it saves is what the table says. Values are compared with k single steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from repro.tuning import STORE
from stencil_dsl.testing import Question, asks, sweep_question

if TYPE_CHECKING:
    from stencil_dsl.schedule.schedule import Schedule

CUBE, SQUARE = (512,) * 3, (16384,) * 2
#: Row -> (module, function, shape).
STENCILS = {
    "star-7": ("stencils", "star_7", CUBE),
    "star-13": ("stencils", "star_13", CUBE),
    "plane-5": ("more_stencils", "plane_5", SQUARE),
    "plane-9": ("more_stencils", "plane_9", SQUARE),
}
STEPS = (1, 2, 3, 4)


def steps_of(stencil: str) -> tuple[int, ...]:
    """Numbers of steps that the table has for a stencil."""
    return STEPS


def listed(stencil: str, steps: int) -> Schedule | None:
    """The schedule that won a search on an H200, or that compiles; None where the compiler chooses."""
    from stencil_dsl import Schedule

    if stencil.startswith("plane"):
        one = Schedule(kind="streaming", order="fast", tile=(1, 128), pair=2)
        return one.with_(chunk=32, occupancy=4) if steps == 1 else one.with_(chunk=128, ahead=True, occupancy=8)
    if stencil == "star-7" and steps in (2, 3):
        one = Schedule(kind="streaming", order="fast", tile=(1, 1, 128), pair=2, unroll=2, occupancy=3)
        return one.with_(rows=4, chunk=64) if steps == 2 else one.with_(rows=3, chunk=32)
    if (stencil, steps) == ("star-13", 4):
        # A stencil of radius 8: pairs of cells and several rows, as chosen otherwise, keep tileiras busy beyond its
        # time limit of five minutes.
        one = Schedule(kind="streaming", order="fast", tile=(1, 1, 128), pair=1, rows=1, unroll=1)
        return one.with_(chunk=64, occupancy=1)
    return None


def steps(stencil: str, steps: int) -> Question:
    """One sweep of k steps beside a copy of the bytes that one sweep must move."""
    import importlib

    module, function, shape = STENCILS[stencil]
    f = getattr(importlib.import_module(f"repro.{module}"), function)
    schedule = listed(stencil, steps)
    return sweep_question(f"{stencil}-steps-{steps}", f, shape, {"dsl": schedule}, store=STORE, steps=steps)


def contestants() -> list[object]:
    """Stencil and steps. More than two of a sweep take long to compile: without a device they are left out."""
    return [
        pytest.param(name, k, id=f"{name}-steps-{k}", marks=(pytest.mark.timed_only,) if k > 2 else ())
        for name in STENCILS
        for k in steps_of(name)
    ]


@pytest.mark.parametrize("variant", ["dsl", "copy"])
@pytest.mark.parametrize(("stencil", "steps"), contestants())
@asks(steps)
def test_steps(stencil, steps, variant, result):
    result.check()
