"""Input values as a function of coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stencil_dsl.testing import ConstantField, RandomField
from stencil_dsl.testing.bench import boxes


@given(st.tuples(*[st.integers(-20, 500)] * 3), st.tuples(*[st.integers(1, 9)] * 3))
def test_a_box_is_a_part_of_any_larger_box(lo, shape):
    field = RandomField(3)
    box = field(lo, shape, np)
    around = field(tuple(a - 2 for a in lo), tuple(n + 5 for n in shape), np)
    np.testing.assert_array_equal(box, around[tuple(slice(2, 2 + n) for n in shape)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_have_both_signs_and_are_never_zero(dtype):
    values = RandomField(0, dtype)((-4, -4, -4), (40, 40, 40), np)
    assert values.dtype == dtype
    assert np.abs(values).min() > 0.09 and np.abs(values).max() <= 1.0
    assert 0.45 < (values < 0).mean() < 0.55
    assert np.abs(values).mean() == pytest.approx(0.55, abs=0.01)


def test_neighbours_and_fields_are_unrelated():
    a, b = (RandomField(seed)((0, 0, 0), (32, 32, 32), np) for seed in (0, 1))
    assert len(np.unique(a)) == a.size
    for other in (b, np.roll(a, 1, 0), np.roll(a, 1, 1), np.roll(a, 1, 2)):
        assert abs(np.corrcoef(a.ravel(), other.ravel())[0, 1]) < 0.03


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_any_rank(rank):
    assert RandomField(0)((-1,) * rank, (5,) * rank, np).shape == (5,) * rank
    assert (ConstantField(2.5)((0,) * rank, (3,) * rank, np) == 2.5).all()


def test_small_outputs_are_compared_whole():
    assert boxes((7, 9, 33)) == [((0, 0, 0), (7, 9, 33))]


@pytest.mark.parametrize("shape", [(256, 256, 256), (37, 530, 131), (3, 2000, 700), (2000, 2000)])
def test_boxes_of_large_outputs_reach_every_corner_and_stay_inside(shape):
    found = boxes(shape)
    assert len(found) > 4 and len(set(found)) == len(found)
    for lo, extents in found:
        assert all(a >= 0 and a + e <= n for a, e, n in zip(lo, extents, shape, strict=True))
    for corner in np.ndindex(*[2] * len(shape)):
        cell = tuple(c * (n - 1) for c, n in zip(corner, shape, strict=True))
        assert any(all(a <= x < a + e for a, e, x in zip(lo, extents, cell, strict=True)) for lo, extents in found), (
            cell
        )
