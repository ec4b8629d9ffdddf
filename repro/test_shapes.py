"""Stencils and extents beyond the nine rows: two dimensions, in-plane boxes, float32, extents that nothing divides.

The compiler chooses the schedule; the shifted schedule, one load an access, is timed beside it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import pytest

from stencil_dsl.testing import Question, asks, sweep_question


@dataclass(frozen=True)
class Case:
    """A stencil, its interior and element type."""

    function: str
    shape: tuple[int, ...]
    dtype: str = "float64"
    module: str = "stencils"


CASES = {
    "box-81-2d": Case("box_81", (16384, 16384), module="more_stencils"),
    "in-plane-49": Case("in_plane_49", (512,) * 3, module="more_stencils"),
    "two-fields-125": Case("two_fields_125", (512,) * 3, module="more_stencils"),
    **{
        f"{name}-f32": Case(name.replace("-", "_"), (640,) * 3, "float32")
        for name in ("star-7", "star-25", "box-27", "iso3dfd")
    },
    **{
        f"{name}-{'x'.join(map(str, shape)) if len(set(shape)) > 1 else shape[0]}": Case(name.replace("-", "_"), shape)
        for name in ("star-7", "star-25")
        for shape in ((300,) * 3, (500,) * 3, (513,) * 3, (1000, 700, 450))
    },
}
VARIANTS = ("dsl", "shifted", "copy")


def shapes(case: str) -> Question:
    """The chosen schedule, the shifted one, and a copy of the same bytes."""
    from stencil_dsl import Schedule

    asked = CASES[case]
    f = getattr(importlib.import_module(f"repro.{asked.module}"), asked.function)
    shifted = Schedule(tile=(1, 128) if len(asked.shape) == 2 else (1, 2, 64))
    schedules = {"dsl": None, "shifted": shifted}
    return sweep_question(f"shape-{case}", f, asked.shape, schedules, dtype=asked.dtype)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES)
@asks(shapes)
def test_shape(case, variant, result):
    result.check()
