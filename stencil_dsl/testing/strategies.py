"""Hypothesis strategies: random stencils, schedules and whole cases.

>>> from hypothesis import given
>>> from stencil_dsl.testing.strategies import cases
>>> @given(cases("source"))
... def test_bits(case):
...     assert not check_case(case, exact=True)
"""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import strategies as st

from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.testing.choose import Drawn
from stencil_dsl.testing.random_cases import Case, random_case
from stencil_dsl.testing.random_schedules import random_interior, random_schedule
from stencil_dsl.testing.random_stencils import RandomStencil, random_stencil


@st.composite
def stencils(draw: Any, fast: bool = False, **options: Any) -> RandomStencil:
    """Stencils as source text; see `random_stencil` for the options."""
    return random_stencil(Drawn(draw), fast=fast, **options)


@st.composite
def schedules(draw: Any, ndim: int, dtype: str = "float64", order: str = "source", kind: str | None = None) -> Schedule:
    """Schedules that are legal for padded arrays."""
    return random_schedule(Drawn(draw), ndim, dtype, order, kind)


@st.composite
def interiors(draw: Any, schedule: Schedule) -> tuple[int, ...]:
    """Extents from one cell to a little more than two tiles."""
    return random_interior(Drawn(draw), schedule)


@st.composite
def cases(draw: Any, order: Literal["source", "fast"], kind: str | None = None, **stencil_options: Any) -> Case:
    """A stencil, a schedule that is legal for it, an interior and data."""
    return random_case(Drawn(draw), order, kind, **stencil_options)
