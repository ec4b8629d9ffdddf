"""What exports compute, without a GPU: the device code is run on NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tilelib_cases import examples, examples_kernel, relu, scale

from stencil_dsl.errors import FrontendError
from stencil_dsl.reference.tile_interpreter import ArrayArg, InterpreterError, run
from stencil_dsl.tilelib import (
    Export,
    Layout,
    Parameter,
    TileLibrary,
    TileLibraryError,
    evaluate,
    make_library,
    tile_export,
)
from stencil_dsl.tilelib.layouts import warpwise
from stencil_dsl.tilelib.library import Code
from stencil_dsl.tilelib.nvvm import FunctionBuilder


def random(shape, dtype="float64"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def test_the_three_examples():
    library = examples()
    x, slot = random(128, "float32"), np.zeros(128, "float32")
    assert np.array_equal(evaluate(library, "relu", [x, slot])[0], np.maximum(x, 0))
    factor = np.full(128, 0.5, "float32")
    assert np.array_equal(evaluate(library, "scale_in_place", [x, factor])[0], x * np.float32(0.5))
    (sums,) = evaluate(library, "warp_sum", [x, slot])
    assert np.allclose(sums, np.repeat(x.reshape(4, 32).sum(axis=1), 32), atol=1e-5)
    assert relu(-2.0) == 0.0 and scale(3.0, 2.0) == 6.0


@pytest.mark.parametrize("pure", [True, False])
def test_interpreted_kernels_call_libraries(pure):
    u, out = random(1024, "float32"), np.zeros(1024, "float32")
    run(examples_kernel(examples(), pure), "examples", (8,), [ArrayArg.of(u), ArrayArg.of(out)])
    want = np.repeat((np.maximum(u, 0) * np.float32(0.5)).reshape(-1, 32).sum(axis=1), 32)
    assert np.allclose(out, want, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"relu"', '"gelu"', "no export 'gelu' in examples.tilelib; there are: relu, scale_in_place, warp_sum"),
        ("(x, slot), kind", "(x,), kind", "inputs has 1 entries for 2"),
        ("(x, slot)", "(x, 0.0)", "a scalar needs a tile too"),
        ("ct.float32, (128,)", "ct.float32, (64,)", "'relu_out' in output_types is a tile float32"),
        ('", (), (r', '", (64,), (r', "no export 'scale_in_place__N64'"),
    ],
)
def test_wrong_calls_are_refused_where_they_stand(old, new, message):
    source = examples_kernel(examples(), True)
    assert old in source
    u, out = random(1024, "float32"), np.zeros(1024, "float32")
    with pytest.raises(InterpreterError, match=message):
        run(source.replace(old, new), "examples", (8,), [ArrayArg.of(u), ArrayArg.of(out)])


def test_unknown_library():
    source = examples_kernel(examples(), True).replace(examples().digest, "0" * 64)
    u, out = random(1024, "float32"), np.zeros(1024, "float32")
    with pytest.raises(InterpreterError, match="no tile library with digest 000000000000"):
        run(source, "examples", (8,), [ArrayArg.of(u), ArrayArg.of(out)])


def rotate(a, b, angle):
    c, s = math.cos(angle), math.sin(angle)
    return c * a - s * b, s * a + c * b, a**3 if a > b and not angle < 0.0 else abs(b) ** -2


def test_several_results_of_a_python_function():
    with pytest.raises(TileLibraryError, match="one run, 'angle'"):
        make_library("rotation", tile_export(rotate, inout=("a", "b")), sizes=(64,))

    @tile_export(footprint=2, inout=("a", "b"))
    def turned(angle, a, b):
        return rotate(a, b, angle)

    library = make_library("rotation", turned, sizes=((2, 64),))
    angle, a, b = random((3, 2, 64))
    results = evaluate(library, "turned__N2_64", [angle, a, b, a])
    want = [np.cos(angle) * a - np.sin(angle) * b, np.sin(angle) * a + np.cos(angle) * b]
    want.append(np.where((a > b) & ~(angle < 0), a * a * a, 1 / (b * b)))
    for got, expected in zip(results, want, strict=True):
        assert np.allclose(got, expected, rtol=1e-15, atol=1e-15)


def test_min_and_max_hand_nan_on():
    @tile_export(tile_shape=4)
    def spread(a, b):
        return max(a, b) - min(a, b)

    library = make_library("spread", spread)
    a, b = np.array([1.0, np.nan, 2.0, np.nan]), np.array([3.0, 1.0, np.nan, np.nan])
    assert np.array_equal(evaluate(library, "spread", [a, b, a])[0], [2.0, *[np.nan] * 3], equal_nan=True)


def test_functions_hold_what_stencils_hold():
    with pytest.raises(FrontendError, match="while loop"):

        @tile_export(tile_shape=128)
        def endless(x):
            while x > 0.0:
                x = x - 1.0
            return x

    with pytest.raises(TileLibraryError, match="computes in float64 or float32, not int32"):
        make_library("ints", tile_export(_twice, tile_shape=128, dtype="int32"))
    with pytest.raises(TileLibraryError, match="returns 1 values for 2 inout"):
        tile_export(_swap_half, inout=("a", "b"))
    with pytest.raises(TileLibraryError, match="inout names 'y'"):
        tile_export(_twice, inout="y")


def _twice(x):
    return 2.0 * x


def _swap_half(a, b):
    return b


def shifted(distance: int, footprint: int, dtype: str) -> TileLibrary:
    """x moved by `distance` within each warp's chunk, built of shuffles."""
    size = 64 * footprint
    p = [Parameter(n, dtype, a, (size,), warpwise(size, footprint)) for n, a in (("x", "in"), ("o", "out"))]
    export = Export("shifted", "shifted_impl", tuple(p), "warp").check()
    builder = FunctionBuilder(export)
    x = [builder.read(0, e) for e in range(footprint)]
    for e in range(footprint):
        lanes, part = divmod(e + distance, footprint)
        builder.write(1, e, builder.shuffle(x[part], builder.lane_plus(lanes)))
    return TileLibrary("shifts", (export,), (Code("nvvm", builder.text()),))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("distance", "footprint"), [(1, 1), (-3, 2), (5, 4), (0, 1)])
def test_shuffles_move_values_between_lanes(distance, footprint, dtype):
    library = shifted(distance, footprint, dtype)
    x = random(64 * footprint, dtype)
    (got,) = evaluate(library, "shifted", [x, x])
    assert np.array_equal(got.reshape(2, -1), np.roll(x.reshape(2, -1), -distance, axis=1))


def test_shuffles_need_whole_warps():
    export = Export("f", "f_impl", (Parameter("o", "float64", "inout", (64,), Layout((64, 1, 1), (1, 0, 0))),))
    builder = FunctionBuilder(export.check())
    with pytest.raises(TileLibraryError, match="needs sync='warp'"):
        builder.shuffle(builder.read(0), builder.lane_plus(1))


def test_unwritten_results_are_recognisable():
    silent = tile_export(lambda x: None, name="silent", tile_shape=32, nvvm=_silent("ret void"))
    assert np.isnan(evaluate(make_library("silent", silent), "silent", [np.ones(32)] * 2)[0]).all()


def _silent(body: str) -> str:
    return f"define void @silent_impl(double %x, ptr %out) {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("br label %end\nend:\nret void", "cannot run 'br label %end'"),
        ("%p = getelementptr double, ptr %out, i32 1\nstore double %x, ptr %p\nret void", "element 1 of a buffer of 1"),
        ("%y = fadd double %x, %z\nret void", "cannot run"),
        ("store double %x, ptr %out", "no return"),
    ],
)
def test_code_that_is_not_run(body, message):
    library = make_library("silent", tile_export(lambda x: None, name="silent", tile_shape=32, nvvm=_silent(body)))
    with pytest.raises(TileLibraryError, match=message):
        evaluate(library, "silent", [np.ones(32)] * 2)


def test_a_given_meaning_stands_for_code():
    @tile_export(tile_shape=64, sync="warp", footprint=2, cuda="// peak_impl")
    def peak(x):
        return x.max(axis=(1, 2), keepdims=True)

    x = random(64)
    assert np.array_equal(evaluate(make_library("peaks", peak), "peak", [x, x])[0], np.full(64, x.max()))
    library = make_library("peaks", tile_export(lambda x: (x, x), name="peak", tile_shape=64, cuda="..."))
    with pytest.raises(TileLibraryError, match="returns 2 values for 1"):
        evaluate(library, "peak", [x, x])
    with pytest.raises(TileLibraryError, match="CUDA C\\+\\+ and has no meaning"):
        evaluate(TileLibrary.from_json(library.to_json()), "peak", [x, x])


GATHER = """
import cuda.tile as ct

@ct.kernel
def pick(u, out):
    z = ct.arange(4, dtype=ct.int32) * 3 - {start}
    ct.store(out, (ct.bid(0), 0), ct.reshape(ct.gather(u, (ct.bid(0), z), check_bounds={checked}), (1, 4)))
"""


def test_gathers_are_interpreted_and_checked():
    u, out = np.arange(20.0).reshape(2, 10), np.zeros((2, 4))
    arguments = [ArrayArg.of(u), ArrayArg.of(out)]
    run(GATHER.format(start=0, checked=False), "pick", (2,), arguments)
    assert np.array_equal(out, u[:, ::3])
    run(GATHER.format(start=1, checked=True), "pick", (2,), arguments)
    assert np.array_equal(out, [[0, 2, 5, 8], [0, 12, 15, 18]])
    with pytest.raises(InterpreterError, match="unchecked gather leaves the allocation"):
        run(GATHER.format(start=1, checked=False), "pick", (1,), arguments)
