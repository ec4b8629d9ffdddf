"""The nine rows of the table: the DSL's kernels beside a device copy of the same bytes.

Without a device each kernel is compiled and its values are checked in the interpreter; with ``--gpu``
its values are checked on the device at the real size, and the row is timed.
"""

from __future__ import annotations

import pytest

from repro.rows import ROWS, SIZES
from repro.tuning import STORE
from stencil_dsl.testing import Question, asks, sweep_question

VARIANTS = ("dsl", "copy")


def sweep(stencil: str, size: int) -> Question:
    """One sweep of a row over a cube."""
    from repro import stencils

    row = ROWS[stencil]
    return sweep_question(f"{row.id}-{size}", getattr(stencils, row.function), (size,) * 3, {"dsl": None}, store=STORE)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stencil", ROWS)
@asks(sweep)
def test_row(stencil, size, variant, result):
    result.check()
