"""Stencils and extents beyond the nine rows: two dimensions, in-plane boxes, float32, extents that nothing divides.

The compiler chooses the schedule; the shifted schedule, one load an access, is timed beside it. Where no tile divides
the extents, so are a sweep in one pass and one with strips, whatever is chosen.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import pytest

from repro.odd_extents import SHAPES, STRIPS, named
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
        for name in ("star-7", "star-25", "star-13", "star-19", "box-27")
        for shape in (SHAPES if name in ("star-7", "star-25") else [(513,) * 3])
    },
}
VARIANTS = ("dsl", "shifted", "one-pass", "strips", "copy")


def shapes(case: str) -> Question:
    """The chosen schedule, the shifted one, one pass and strips, and a copy of the same bytes."""
    from stencil_dsl import Schedule

    asked = CASES[case]
    f = getattr(importlib.import_module(f"repro.{asked.module}"), asked.function)
    shifted = Schedule(tile=(1, 128) if len(asked.shape) == 2 else (1, 2, 64))
    schedules = {"dsl": None, "shifted": shifted, **named(case)}
    return sweep_question(f"shape-{case}", f, asked.shape, schedules, dtype=asked.dtype)


def contestants() -> list[object]:
    """Case and variant. Without a device one odd extent of each kernel says all that compiling can say."""
    found = []
    for name, of in CASES.items():
        for variant in VARIANTS:
            if variant in ("one-pass", "strips") and name not in STRIPS:
                continue
            odd = of.dtype == "float64" and of.module == "stencils"
            twice = variant in ("shifted", "one-pass") or (odd and name not in ("star-7-513", "star-25-513"))
            marks = (pytest.mark.timed_only,) if twice else ()
            found.append(pytest.param(name, variant, id=f"{name}-{variant}", marks=marks))
    return found


@pytest.mark.parametrize(("case", "variant"), contestants())
@asks(shapes)
def test_shape(case, variant, result):
    result.check()
