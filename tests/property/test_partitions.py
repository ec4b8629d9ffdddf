"""Strips beside what whole blocks cover: a partition of the interior, with the values of one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stencil_dsl.schedule.schedule import AXES
from stencil_dsl.schedule.strips import block, cut, left_over
from stencil_dsl.testing.random_cases import Case, check_case, expected, make_arguments, same_bits
from stencil_dsl.testing.strategies import cases, interiors, schedules

FEWER = settings(max_examples=settings().max_examples // 2)


@st.composite
def striped(draw: Any, order: Any, kind: str | None = None, **options: Any) -> Case:
    """A case of two or three dimensions whose schedule cuts strips off, where its extents leave any."""
    case = draw(cases(order, kind, **options))
    ndim = len(case.shape)
    assume(ndim > 1)
    axes = draw(st.sampled_from(["z", "y", "yz", "xz", "xyz"] if ndim == 3 else ["z", "x", "xz"]))
    schedule = case.schedule.with_(static_shape=True, strips=axes)
    assume(any(left_over(case.shape, schedule)))
    return replace(case, schedule=schedule)


@given(st.data(), st.sampled_from([2, 3]))
def test_boxes_are_a_partition(data: st.DataObject, ndim: int) -> None:
    schedule = data.draw(schedules(ndim)).with_(static_shape=True)
    schedule = schedule.with_(strips=data.draw(st.sampled_from(["z", "x", "xz"] + ["y", "yz", "xyz"] * (ndim == 3))))
    shape = data.draw(interiors(schedule))
    covered = np.zeros(shape, int)
    boxes = cut(shape, schedule)
    for box in boxes:
        covered[tuple(slice(*ends) for ends in box)] += 1
    assert (covered == 1).all()
    for axis, (name, n, cells, (lo, hi)) in enumerate(zip(AXES[ndim], shape, block(schedule), boxes[0], strict=True)):
        whole = n if name not in schedule.strips or n < cells else n // cells * cells
        assert (lo, hi) == (0, whole), axis


@pytest.mark.parametrize("kind", ["shifted", "streaming", "shuffle"])
@FEWER
@given(st.data())
def test_source_order_is_exact(kind: str, data: st.DataObject) -> None:
    """The bits of the reference, which are those of one pass."""
    assert check_case(data.draw(striped("source", kind)), exact=True) == ""


@FEWER
@given(striped("fast"))
def test_fast_order_is_within_its_bound(case: Case) -> None:
    assert check_case(case, exact=False) == ""


@FEWER
@given(striped("source", pointwise=True))
def test_update_in_place(case: Case) -> None:
    assert check_case(replace(case, inplace=True), exact=True) == ""


@FEWER
@given(striped("source", "shifted"))
def test_arrays_without_padding(case: Case) -> None:
    schedule = case.schedule.with_(loads="auto" if case.schedule.loads == "unchecked" else case.schedule.loads)
    case = replace(case, schedule=schedule, extra=0, own_halo=False)
    kernel = case.kernel()
    a = make_arguments(case, kernel)
    outs = [np.full(case.shape, 7.0, case.dtype) for _ in a.outs]
    kernel(*a.values, *outs, **a.scalars)
    for out, want in zip(outs, expected(case, kernel, a), strict=True):
        assert same_bits(out, want).all()
