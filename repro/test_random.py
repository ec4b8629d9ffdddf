"""Eight random expressions: the DSL with what it chooses, array and brick kernels of the same tree, and a copy."""

from __future__ import annotations

import pytest

from repro.random_draws import DRAWS
from stencil_dsl.testing import Question, asks, sweep_question

SHAPE = (256, 256, 256)
#: Ids of the hand-written kernels; of each kind the first stands for it where nothing is timed.
OTHERS = (
    *("arr-b8x8x8", "arr-b32x4x4", "arr-b64x4x1"),
    *("trans-b8x8x8-loop", "trans-b4x4x32-loop", "trans-b8x8x8"),
)
DEFAULTS = ("arr-b8x8x8", "trans-b8x8x8-loop")


def expression(case: str) -> Question:
    """One sweep of a random expression."""
    from repro.random_draws import draw
    from repro.random_kernels import DrawVariant

    others = [DrawVariant(case, SHAPE, name) for name in OTHERS]
    return sweep_question(f"random-{case}", draw(case).stencil(), SHAPE, {"dsl": None}, others=others)


def contestants() -> list[object]:
    """Case and variant; large expressions take long to compile and interpret and are left out without a device."""
    found = []
    for case in DRAWS:
        for variant in ("dsl", *OTHERS, "copy"):
            large = DRAWS[case][2] > 24 and variant == "dsl"
            marks = (pytest.mark.timed_only,) if large or variant in set(OTHERS) - set(DEFAULTS) else ()
            found.append(pytest.param(case, variant, marks=marks, id=f"{case}-{variant}"))
    return found


@pytest.mark.parametrize(("case", "variant"), contestants())
@asks(expression)
def test_random(case, variant, result):
    result.check()
