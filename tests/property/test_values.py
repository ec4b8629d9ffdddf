"""Every stencil under every schedule has the values of the NumPy reference, and writes nothing else.

`check_case` fills all memory with poison first: a cell that is not written, a write outside the interior and a value
that was made from what lies outside the halo are all found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf

import stencil_dsl
from repro import stencils
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.testing.random_cases import (
    Case,
    bounds,
    check_case,
    check_results,
    expected,
    make_arguments,
    same_bits,
)
from stencil_dsl.testing.strategies import cases


@pytest.mark.parametrize("kind", ["shifted", "streaming", "shuffle"])
@given(st.data())
def test_source_order_is_exact(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases("source", kind))
    assert check_case(case, exact=True) == ""


@pytest.mark.parametrize("kind", ["shifted", "streaming", "shuffle"])
@given(st.data())
def test_fast_order_is_within_its_bound(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases("fast", kind))
    assert check_case(case, exact=False) == ""


@pytest.mark.parametrize("kind", ["streaming", "shuffle"])
@given(st.data())
def test_no_computed_tile_changes_places_in_a_loop(kind: str, data: st.DataObject) -> None:
    """Tile assemblers up to 13.5 get those wrong (probes/test_miscompiled_queue.py), which only a device shows."""
    case = data.draw(cases("fast", kind) | cases("source", kind))
    for op in case.kernel(static=True).lowered.module.walk():
        if isinstance(op, scf.ForOp):
            places, end = op.body.block.args[1:], op.body.block.last_op
            moved = [p for p, value in zip(places, end.operands, strict=True) if value in places and value is not p]
            # A queue of raw loads may, where nothing is taken out of its tiles.
            assert not moved or (case.schedule.carry == "queue" and case.schedule.pair == 1)


@pytest.mark.parametrize("kind", ["shifted", "streaming"])
@given(st.data())
def test_periodic_rows_need_no_ghost_cells(kind: str, data: st.DataObject) -> None:
    """Those at the ends of rows hold the poison here."""
    case = data.draw(cases("source", kind) | cases("fast", kind)).on_rings()
    assert check_case(case, exact=case.schedule.order == "source") == ""


@pytest.mark.parametrize("sums", ["rows", "inward", "outward", "groups"])
@pytest.mark.parametrize("rows", [2, 3])
def test_rows_of_two_blocks_have_the_same_bits(sums: str, rows: int) -> None:
    """The interpreter refuses two stores of different values to one cell."""
    schedule = Schedule("streaming", tile=(1, 1, 32), pair=2, rows=rows, chunk=4, order="fast", sums=sums)  # type: ignore[arg-type]
    kernel = stencil_dsl.compile(stencils.star_13, shape=(6, 7, 64), schedule=schedule)
    assert kernel.validate(device="cpu")


@settings(max_examples=settings().max_examples // 2)
@given(cases("source", library=True))
def test_library_functions_are_those_of_the_reference(case: Case) -> None:
    assert check_case(case, exact=True) == ""


@given(cases("fast"))
def test_bound_is_tight_enough_to_mean_something(case: Case) -> None:
    """The allowed difference is a few hundred roundings of the partial sums, not a number that admits anything."""
    kernel = case.kernel()
    a = make_arguments(case, kernel)
    unit = np.finfo(case.dtype).eps / 2
    operations = len(list(kernel.definition.stencil.walk()))
    for limit, want in zip(bounds(case, kernel, a), expected(case, kernel, a), strict=True):
        assert np.isfinite(limit).all()
        assert (limit >= unit * np.abs(want)).all()
        if operations < 30:
            assert limit.max() < 1e5 * unit * max(1.0, float(np.abs(want).max())) ** 2


@given(cases("source", pointwise=True) | cases("fast", pointwise=True))
def test_update_in_place(case: Case) -> None:
    """An output may be a field that is read at the cell itself only; its halo stays as it is."""
    assert check_case(replace(case, inplace=True), exact=case.schedule.order == "source") == ""


@given(cases("source", "shifted"), st.sampled_from(["own", "cut", "strided"]))
def test_arrays_without_padding(case: Case, form: str) -> None:
    """A caller's own arrays, with no element behind the halo, give what padded ones give."""
    schedule = case.schedule.with_(loads="auto" if case.schedule.loads == "unchecked" else case.schedule.loads)
    case = Case(case.stencil, case.dtype, schedule, case.shape, case.seed, case.data)
    kernel = case.kernel()
    a = make_arguments(case, kernel)
    fields = [_without_padding(v, form) for v in a.values]
    outs = [np.full(case.shape, 7.0, case.dtype) for _ in a.outs]
    kernel(*fields, *outs, **a.scalars)
    for out, want in zip(outs, expected(case, kernel, a), strict=True):
        assert same_bits(out, want).all()


def _without_padding(values: np.ndarray, form: str) -> np.ndarray:
    """The values as an allocation of their own, or inside one with other strides."""
    if form == "own":
        return values.copy()
    margin = [(1, 2)] * (values.ndim - 1) + [(3, 5) if form == "strided" else (0, 0)]
    around = np.pad(values, margin, constant_values=np.nan)
    return around[tuple(slice(lo, lo + n) for (lo, _), n in zip(margin, values.shape, strict=True))]


@pytest.mark.parametrize("order", ["source", "fast"])
@settings(max_examples=settings().max_examples // 4)
@given(case=cases("fast"))
def test_chosen_schedule(order: Literal["source", "fast"], case: Case) -> None:
    """Without a schedule one is chosen, whose values are right for padded arrays and for plain ones."""
    kernel = stencil_dsl.compile(case.stencil.stencil(), dtype=case.dtype, order=order)
    a = make_arguments(case, kernel)
    kernel(*a.fields, *a.outs, **a.scalars)
    assert check_results(case, kernel, a, exact=order == "source") == ""
    outs = [np.full(case.shape, 7.0, case.dtype) for _ in a.outs]
    kernel(*a.values, *outs, **a.scalars)
    for out, want, limit in zip(outs, expected(case, kernel, a), bounds(case, kernel, a), strict=True):
        if order == "source":
            assert same_bits(out, want).all()
        else:
            assert (np.abs(out.astype("f8") - want.astype("f8")) <= limit).all()


@given(cases("source", "shifted"))
def test_one_dynamic_kernel_serves_several_shapes(case: Case) -> None:
    schedule = case.schedule.with_(static_shape=False)
    kernel = Case(case.stencil, case.dtype, schedule, case.shape, 0).kernel()
    for shape in (case.shape, tuple(n + 1 for n in case.shape), (1,) * len(case.shape)):
        other = Case(case.stencil, case.dtype, schedule, shape, case.seed, case.data, case.extra)
        a = make_arguments(other, kernel)
        kernel(*a.fields, *a.outs, **a.scalars)
        assert check_results(other, kernel, a, exact=True) == ""


def test_schedule_json_round_trip() -> None:
    schedule = Schedule("streaming", tile=(1, 2, 8), rows=3, chunk=7, pair=2, unroll=2, carry="queue", order="fast")
    assert Schedule.from_json(schedule.to_json()) == schedule
