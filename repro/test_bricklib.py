"""The nine rows of the table: the DSL's kernels beside the baselines and a device copy of the same bytes.

Without a device each kernel is compiled and its values are checked in the interpreter, those of the baselines' default
configurations on the CPU; with ``--gpu`` values are checked on the device at the real size, and the row is timed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from repro import opponents
from repro.rows import ROWS, SIZES
from repro.tuning import STORE
from stencil_dsl.testing import Question, asks, sweep_question

CONTROL = "dsl-again"
"""The DSL's kernel once more: an A/A control, which must come out a tie."""


def sweep(stencil: str, size: int) -> Question:
    """One sweep of a row over a cube."""
    from repro import stencils

    row = ROWS[stencil]
    question = sweep_question(
        f"{row.id}-{size}", getattr(stencils, row.function), (size,) * 3, {"dsl": None}, store=STORE
    )
    dsl, copy = question.variants
    return replace(question, variants=(dsl, replace(dsl, id=CONTROL), *opponents.made(stencil, size), copy))  # type: ignore[type-var]


def contestants() -> list[object]:
    """Row, size and variant; what only a device tells apart is marked `timed_only`."""
    found = []
    for stencil in ROWS:
        without_device = {"dsl", "copy", *opponents.defaults(stencil)}
        for size in SIZES:
            for variant in ("dsl", CONTROL, *opponents.ids(stencil, size), "copy"):
                small = variant in without_device and (size == SIZES[-1] or variant in ("dsl", "copy"))
                marks = () if small else (pytest.mark.timed_only,)
                found.append(pytest.param(stencil, size, variant, marks=marks, id=f"{stencil}-{size}-{variant}"))
    return found


@pytest.mark.parametrize(("stencil", "size", "variant"), contestants())
@asks(sweep)
def test_row(stencil, size, variant, result):
    if opponents.absent(result.record()):
        pytest.skip(result.failure)
    result.check()
