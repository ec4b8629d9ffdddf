"""What kernels refuse, and what they say then."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from stencil_dsl import Schedule, StencilError, asarray, compile, empty, stencil, zeros
from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.runtime import arguments
from stencil_dsl.runtime.arguments import check_overlap, read_argument, read_output
from stencil_dsl.runtime.devices import gpu_available

HALO = ((1, 1), (0, 2))


@stencil
def shear(u, v, dt, i, j):
    return u[i - 1, j] + dt * u[i + 1, j + 2], v[i, j] * dt


KERNEL = compile(shear, schedule=Schedule(tile=(1, 16)))


def arrays(shape=(4, 20), dtype="float64", halo=HALO):
    return [zeros(shape, halo, dtype, device="cpu") for _ in range(4)]


# -- one array at a time


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((6, 9), "i8"), r"'u' has elements of int64; the element types are \['float32', 'float64'\]"),
        (np.zeros((6, 9), "f4"), "'u' has elements of float32, the kernel was compiled for float64; convert"),
        (np.zeros(9), "'u' has 1 axes, the stencil has 2"),
        (np.zeros((6, 18))[:, ::2], r"strides of \(144, 16\) bytes; rows must be contiguous"),
        (np.zeros((6, 9))[::-1], "strides positive"),
        (np.zeros((9, 6)).T, r"strides of \(8, 48\) bytes"),
        (np.zeros((2, 9)), r"'u' of shape \(2, 9\) has no cell inside its halo"),
    ],
)
def test_plain_arrays_that_do_not_fit(array, message) -> None:
    with pytest.raises(StencilError, match=message):
        read_argument("u", array, HALO, "float64", writable=False)


def test_padded_array_with_too_small_a_halo() -> None:
    with pytest.raises(StencilError, match=r"'u' has a halo of \(0, 1\) along axis 0, the stencil reads \(1, 1\)"):
        read_argument("u", zeros((4, 5), ((0, 1), (0, 2)), device="cpu"), HALO, "float64", writable=False)
    read_argument("u", zeros((4, 5), ((0, 1), (0, 2)), device="cpu"), HALO, "float64", writable=True)


@pytest.mark.skipif(gpu_available(), reason="a device is here")
@pytest.mark.parametrize("value", [3.0, [[1.0, 2.0]], "u"])
def test_what_is_no_array(value) -> None:
    with pytest.raises(GpuUnavailableError):
        read_argument("u", value, HALO, "float64", writable=False)


def test_views_of_whole_rows_are_accepted() -> None:
    base = np.zeros((10, 30))
    a = read_argument("u", base[2:8, 3:20], HALO, "float64", writable=False)
    assert a.layout.shape == (4, 15) and a.layout.strides == (30, 1)
    assert a.pointer == base.ctypes.data + 8 * (2 * 30 + 3)
    assert a.interior_pointer == a.pointer + 8 * 30
    # 63 elements before it: the alignment of the view is what its address has, not what its memory has.
    assert (a.pointer % a.layout.alignment, a.layout.alignment <= 128) == (0, True)
    first, behind = a.full_range()
    assert (first, behind) == (a.pointer, a.pointer + 8 * (5 * 30 + 17))


def test_one_column_needs_no_contiguous_rows() -> None:
    a = read_argument("u", np.zeros((6, 9))[:, 4:5], ((1, 1), (0, 0)), "float64", writable=False)
    assert a.layout.shape == (4, 1)


def test_outputs_have_the_interior_or_the_halo_around_it() -> None:
    assert read_output("f", np.zeros((4, 5)), (4, 5), HALO, "float64").layout.halo == ((0, 0), (0, 0))
    assert read_output("f", np.zeros((6, 7)), (4, 5), HALO, "float64").layout.halo == HALO
    assert read_output("f", zeros((4, 5), device="cpu"), (4, 5), HALO, "float64").layout.shape == (4, 5)
    with pytest.raises(StencilError, match=r"output 'f' has an interior of \(5, 5\), the inputs have \(4, 5\)"):
        read_output("f", zeros((5, 5), device="cpu"), (4, 5), HALO, "float64")


def test_read_only_arrays_are_inputs_but_no_outputs() -> None:
    array = np.zeros((6, 7))
    array.flags.writeable = False
    read_argument("u", array, HALO, "float64", writable=False)
    with pytest.raises(StencilError, match="output 'f' is read-only; pass a writable array"):
        read_output("f", array, (4, 5), HALO, "float64")


# -- several together


def test_output_over_a_field_that_is_read_at_neighbours() -> None:
    u, v, a, b = arrays()
    with pytest.raises(StencilError, match="output 'shear_0' overlaps field 'u', which the stencil reads at neigh"):
        KERNEL.bind(u, v, u, b, dt=1.0)
    with pytest.raises(StencilError, match="'shear_1' overlaps field 'u'"):
        KERNEL.bind(u, v, a, u, dt=1.0)


def test_output_over_a_pointwise_field_is_an_update() -> None:
    u, v, a, _ = arrays()
    assert KERNEL.bind(u, v, a, v, dt=1.0).inplace
    assert not KERNEL.bind(*arrays(), dt=1.0).inplace


def test_output_over_a_part_of_a_pointwise_field() -> None:
    base = np.zeros((8, 40))
    u = np.zeros((6, 22))
    v, moved = base[:6, :22], base[1:7, :22]
    with pytest.raises(StencilError, match="'shear_1' overlaps field 'v'"):
        KERNEL.bind(u, v, np.zeros((6, 22)), moved, dt=1.0)
    # The very same cells, seen through the interior alone.
    KERNEL.bind(u, v, np.zeros((6, 22)), v[1:5, 0:20], dt=1.0)


def test_outputs_over_each_other() -> None:
    u, v, a, _ = arrays()
    with pytest.raises(StencilError, match="outputs 'shear_0' and 'shear_1' overlap in memory"):
        KERNEL.bind(u, v, a, a, dt=1.0)


def test_overlap_is_decided_by_addresses() -> None:
    base = np.zeros(64)
    read = [read_argument("u", base[:20], ((2, 2),), "float64", writable=False)]
    inside = read_output("f", base[10:26], (16,), ((2, 2),), "float64")
    beside = read_output("f", base[20:36], (16,), ((2, 2),), "float64")
    with pytest.raises(StencilError, match="overlaps field 'u'"):
        check_overlap(read, [inside], [False])
    assert check_overlap(read, [beside], [False]) is False


def test_number_of_arrays() -> None:
    u, v, a, b = arrays()
    with pytest.raises(StencilError, match=r"shear takes 2 fields \(u, v\) and 2 outputs, got 3 arrays"):
        KERNEL(u, v, a, dt=1.0)


def test_fields_of_two_shapes() -> None:
    u, _, a, b = arrays()
    other = zeros((4, 21), HALO, device="cpu")
    with pytest.raises(StencilError, match=r"fields differ in shape: 'u' has an interior of \(4, 20\), 'v' of \(4, 21"):
        KERNEL(u, other, a, b, dt=1.0)


def test_shape_that_was_not_compiled_for() -> None:
    kernel = compile(shear, shape=(4, 21), schedule=Schedule(tile=(1, 16)))
    with pytest.raises(StencilError, match=r"compiled for an interior of \(4, 21\), got \(4, 20\)"):
        kernel(*arrays(), dt=1.0)


@pytest.mark.parametrize("scalars", [{}, {"dt": 1.0, "dx": 1.0}, {"dx": 1.0}])
def test_scalars_by_name(scalars) -> None:
    with pytest.raises(StencilError, match=r"shear takes the scalars \['dt'\], got"):
        KERNEL(*arrays(), **scalars)


def test_mixed_dtypes() -> None:
    u, v, a, _ = arrays()
    with pytest.raises(StencilError, match="'shear_1' has elements of float32"):
        KERNEL(u, v, a, zeros((4, 20), HALO, "float32", device="cpu"), dt=1.0)


class FakeDeviceArray:
    """What the runtime reads of a CuPy array."""

    def __init__(self, shape, number) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype("f8")
        self.strides = (8 * shape[1], 8)
        self.device = SimpleNamespace(id=number)
        self.data = SimpleNamespace(ptr=2**30 * (1 + number))


def test_arrays_on_several_devices(monkeypatch) -> None:
    monkeypatch.setattr(arguments, "require_cupy", lambda: SimpleNamespace(ndarray=FakeDeviceArray))
    u, v, a, b = arrays()
    with pytest.raises(StencilError, match="all arrays must be on one device, got .*'u': 'GPU 1', 'v': 'host'"):
        KERNEL.bind(FakeDeviceArray((6, 22), 1), v, a, b, dt=1.0)
    there = [FakeDeviceArray((6, 22), n) for n in (0, 0, 0, 1)]
    with pytest.raises(StencilError, match="'shear_0': 'GPU 0', 'shear_1': 'GPU 1'"):
        KERNEL.bind(*there, dt=1.0)


def test_foreign_arrays_go_through_the_interface_they_have(monkeypatch) -> None:
    made = []
    fake = SimpleNamespace(
        ndarray=FakeDeviceArray,
        asarray=lambda x: made.append("interface") or FakeDeviceArray((6, 22), 0),
        from_dlpack=lambda x: made.append("dlpack") or FakeDeviceArray((6, 22), 0),
    )
    monkeypatch.setattr(arguments, "require_cupy", lambda: fake)
    for value in (SimpleNamespace(__cuda_array_interface__={}), SimpleNamespace(__dlpack__=None)):
        assert read_argument("u", value, HALO, "float64", writable=False).device == 0
    assert made == ["interface", "dlpack"]
    with pytest.raises(StencilError, match="'u' is a list; pass a PaddedArray, or an array with __cuda_array_inter"):
        read_argument("u", [1.0], HALO, "float64", writable=False)


def test_nothing_is_written_where_arguments_are_refused() -> None:
    u, v, a, b = arrays()
    b.fill(3.0)
    with pytest.raises(StencilError):
        KERNEL(u, v, b, u, dt=1.0)
    assert (b.buffer == 3.0).all()


def test_asarray_feeds_a_kernel() -> None:
    data = np.random.default_rng(0).random((6, 22))
    u, v = (asarray(data, HALO, includes_halo=True, device="cpu") for _ in range(2))
    a, b = empty((4, 20), device="cpu"), empty((4, 20), device="cpu")
    KERNEL(u, v, a, b, dt=0.5)
    assert (a.interior == data[:4, :20] + 0.5 * data[2:, 2:]).all()
    assert (b.interior == data[1:5, :20] * 0.5).all()
