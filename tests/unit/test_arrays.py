"""Where padded arrays put their cells, and what may be read around them."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl import PaddedArray, StencilError, asarray, empty, zeros
from stencil_dsl.errors import GpuUnavailableError, ScheduleError
from stencil_dsl.runtime.devices import gpu_available
from stencil_dsl.schedule.layout import (
    ITEMSIZE,
    LINE_BYTES,
    SLACK_ELEMENTS,
    SLACK_ROWS,
    Layout,
    normalize_halo,
)

SHAPES = [((300,), 4), ((5, 37), 1), ((3, 4, 131), ((0, 2), (1, 0), (3, 1))), ((1, 1, 1), 0), ((2, 3, 16), 4)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("shape", "halo"), SHAPES)
def test_every_interior_row_starts_on_a_cache_line(shape, halo, dtype) -> None:
    a = empty(shape, halo, dtype, device="cpu")
    for row in np.ndindex(*shape[:-1]):
        assert a.interior[row].ctypes.data % LINE_BYTES == 0
    assert a.buffer.ctypes.data % LINE_BYTES == 0
    assert a.interior.shape == shape == a.shape
    assert (a.ndim, a.dtype, a.device) == (len(shape), dtype, "cpu")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("shape", "halo"), SHAPES)
def test_halo_and_slack(shape, halo, dtype) -> None:
    a = empty(shape, halo, dtype, device="cpu")
    asked = normalize_halo(halo, len(shape))
    for (lo, hi), (want_lo, want_hi) in zip(a.halo, asked, strict=True):
        assert lo >= want_lo and hi >= want_hi
    # Only the innermost axis is padded, to whole cache lines before and behind.
    assert a.halo[:-1] == asked[:-1]
    line = LINE_BYTES // ITEMSIZE[dtype]
    assert a.layout.extents[-1] % line == 0 and a.layout.origin[-1] % line == 0
    slack = SLACK_ELEMENTS + (SLACK_ROWS * a.layout.extents[-1] if len(shape) > 1 else 0)
    assert a.buffer.size == a.layout.capacity == a.full.size + slack


def test_full_and_interior_are_views_of_one_buffer() -> None:
    a = zeros((3, 5), halo=2, device="cpu")
    a.interior[0, 0] = 7.0
    assert a.full[2, a.layout.origin[1]] == 7.0
    assert a.buffer[a.layout.offset] == 7.0
    a.with_halo(((1, 0), (0, 2)))[0, 0] = 5.0
    assert a.full[1, a.layout.origin[1]] == 5.0
    assert a.with_halo(((1, 0), (0, 2))).shape == (4, 7)


def test_with_halo_refuses_more_than_there_is() -> None:
    a = zeros((3, 5), halo=((1, 0), (0, 0)), device="cpu")
    with pytest.raises(StencilError, match=r"a halo of \(\(2, 0\), \(0, 0\)\) is asked for, the array has \(\(1, 0\)"):
        a.with_halo(((2, 0), (0, 0)))


def test_fill_reaches_the_padding_and_zeros_is_zero() -> None:
    a = empty((3, 5), halo=1, device="cpu")
    a.fill(np.nan)
    assert np.isnan(a.buffer).all()
    assert (zeros((3, 5), halo=1, device="cpu").buffer == 0).all()


def test_to_numpy_is_a_copy() -> None:
    a = zeros((3, 5), device="cpu")
    b = a.to_numpy()
    b[...] = 1
    assert (a.interior == 0).all()


def test_asarray_with_and_without_halo() -> None:
    data = np.arange(35.0).reshape(5, 7)
    a = asarray(data, halo=1, device="cpu")
    assert a.shape == (5, 7) and (a.interior == data).all()
    assert a.with_halo(((1, 1), (1, 1))).sum() == data.sum()
    b = asarray(data, halo=((2, 1), (0, 3)), includes_halo=True, device="cpu")
    assert b.shape == (2, 4)
    assert (b.with_halo(((2, 1), (0, 3))) == data).all()
    assert (b.interior == data[2:4, 0:4]).all()


def test_asarray_converts_only_when_asked() -> None:
    assert asarray(np.ones(4, "f4"), device="cpu").dtype == "float32"
    assert asarray(np.ones(4), dtype="float32", device="cpu").dtype == "float32"
    with pytest.raises(StencilError, match=r"element types are \['float32', 'float64'\], got int64"):
        asarray([1, 2, 3], device="cpu")
    assert asarray([1, 2, 3], dtype="float64", device="cpu").to_numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("shape", [(), (2, 3, 4, 5), (0,), (3, -1)])
def test_extents_that_no_field_has(shape) -> None:
    with pytest.raises(StencilError, match="one to three positive extents"):
        empty(shape, device="cpu")


@pytest.mark.parametrize("halo", [-1, (1, 2, 3), ((1, 1),), ((1, -2), (0, 0))])
def test_halos_that_no_field_has(halo) -> None:
    with pytest.raises(ScheduleError, match="2-D field has 2 non-negative widths"):
        empty((3, 4), halo, device="cpu")


def test_halo_forms_mean_the_same() -> None:
    assert normalize_halo(2, 2) == normalize_halo((2, 2), 2) == normalize_halo(((2, 2), [2, 2]), 2) == ((2, 2), (2, 2))


@pytest.mark.skipif(gpu_available(), reason="a device is here")
def test_device_arrays_say_what_is_missing() -> None:
    with pytest.raises(GpuUnavailableError, match="a GPU is needed here"):
        empty((3,), device="gpu")
    assert empty((3,)).device == "cpu"


def test_repr_names_the_facts() -> None:
    assert repr(empty((3, 16), 0, "float32", device="cpu")) == (
        "PaddedArray(shape=(3, 16), halo=((0, 0), (0, 16)), dtype='float32', device='cpu')"
    )


def test_plain_layout_has_no_slack() -> None:
    layout = Layout.plain((5, 9), ((1, 1), (2, 0)), (16, 1), 8)
    assert layout.shape == (3, 7) and layout.halo == ((1, 1), (2, 0))
    assert layout.offset == 18 and layout.capacity == 4 * 16 + 9
    assert isinstance(empty((2,), device="cpu"), PaddedArray)
