"""A kernel that writes NaN outside the interior is found."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl.testing.bench import check_values
from stencil_dsl.testing.question import Prepared, Question


class Host:
    xp = np

    def synchronize(self):
        pass

    def launch(self, enqueue):
        enqueue(None)

    def download(self, values):
        return np.asarray(values)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("stray", "found"), [(None, ""), (np.nan, "1 values outside"), (7.0, "1 values outside")])
def test_stray_values(stray, found, dtype):
    whole = np.zeros(20, dtype)
    inner = whole[4:16]

    def enqueue(stream):
        inner[...] = 1.0
        if stray is not None:
            whole[2] = stray

    asked = Question("q", (12,), (), reference=lambda lo, shape: [np.ones(shape, dtype)], dtype=dtype)
    outcome = check_values(Host(), asked, Prepared(enqueue, [inner], [whole]))
    assert outcome["ok"] == (not found) and found in outcome["why"]


def test_cells_that_are_not_written_are_found():
    whole = np.zeros(20)
    inner = whole[4:16]

    def enqueue(stream):
        inner[:-2] = 1.0

    asked = Question("q", (12,), (), reference=lambda lo, shape: [np.ones(shape)])
    outcome = check_values(Host(), asked, Prepared(enqueue, [inner], [whole]))
    assert not outcome["ok"] and "2 of 12 values are NaN" in outcome["why"]
