"""The NumPy reference: values, rounding, and what it refuses."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from level2 import Body, module_of

from stencil_dsl.errors import StencilError
from stencil_dsl.reference import numpy_eval
from stencil_dsl.reference.numpy_eval import evaluate, random_inputs


def upwind(dtype="float64"):
    """u - dt * (u - u[-2]) along one axis: a halo of two points on one side only."""
    b = Body()
    centre, west = b.access("u", 0), b.access("u", -2)
    result = b.sub(centre, b.mul("%dt", b.sub(centre, west)))
    return module_of(b.text, [result], scalars=["dt"], dtype=dtype)


def of_two_fields(write, dtype="float64"):
    """A one-dimensional module whose result is `write(body, u, v)` of two accesses at the centre."""
    b = Body()
    result = write(b, b.access("u", 0), b.access("v", 0))
    return module_of(b.text, [result], fields=["u", "v"], dtype=dtype)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation_rounds_in_the_element_type(dtype):
    u = np.linspace(-1, 1, 11).astype(dtype) / np.dtype(dtype).type(3)
    dt = np.dtype(dtype).type(0.1)
    [out] = evaluate(upwind(dtype), [u], [(2,)], (9,), [0.1])
    assert out.dtype == dtype
    expected = u[2:] - dt * (u[2:] - u[:-2])
    assert np.array_equal(bits(out), bits(expected))


def test_constants_are_float32_numbers_in_a_float32_stencil():
    b = Body()
    u = b.access("u", 0)
    result = b.sub(b.scale(0.7, u), u)
    data = np.linspace(-1, 1, 1000, dtype="float32")
    [out] = evaluate(module_of(b.text, [result], dtype="float32"), [data], [(0,)], (1000,))
    factor = np.float32(0.7)
    assert np.array_equal(bits(out), bits(data * factor - data))
    # One rounding at the end would give other numbers, and so would the constant in float64.
    wide = data.astype("float64")
    for other in (wide * float(factor) - wide, wide * 0.7 - wide):
        assert not np.array_equal(out, other.astype("float32"))


def test_a_value_is_dropped_after_its_last_use():
    b = Body()
    value = b.access("u", 0)
    for _ in range(60):
        value = b.unary("math.absf", value)
    module, data = module_of(b.text, [value]), np.ones(numpy_eval.SLAB_POINTS)
    tracemalloc.start()
    evaluate(module, [data], [(0,)], data.shape)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * data.nbytes, "the result, two live values and change; not sixty"


def test_three_dimensions_with_own_origin_per_field():
    b = Body()
    result = b.sub(b.access("u", 1, 0, -1), b.access("v", 0, -1, 2))
    module = module_of(b.text, [result], fields=["u", "v"], ndim=3)
    rng = np.random.default_rng(1)
    u, v = rng.uniform(size=(6, 5, 8)), rng.uniform(size=(4, 7, 9))
    shape, [at, bt] = (3, 4, 5), [(1, 0, 2), (0, 2, 1)]
    [out] = evaluate(module, [u, v], [at, bt], shape)
    for p in np.ndindex(shape):
        x, y, z = p
        left = u[x + at[0] + 1, y + at[1], z + at[2] - 1]
        assert out[p] == left - v[x + bt[0], y + bt[1] - 1, z + bt[2] + 2]


def test_several_outputs_constants_and_copies():
    b = Body()
    u, c = b.access("u", 0), b.constant(2.5)
    module = module_of(b.text, [u, c, "%dt"], scalars=["dt"])
    data = np.arange(4.0)
    copy, constant, scalar = evaluate(module, [data], [(0,)], (4,), [7.0])
    copy[0] = 99.0
    assert data[0] == 0.0, "an output must not be a view of a field"
    assert constant.tolist() == [2.5] * 4 and scalar.tolist() == [7.0] * 4


def test_minimum_maximum_and_comparisons_treat_nan_as_numpy_does():
    nan = float("nan")
    u, v = np.array([1.0, nan, 2.0, nan]), np.array([2.0, 1.0, nan, nan])

    def run(write):
        return evaluate(of_two_fields(write), [u, v], [(0,), (0,)], (4,))[0].tolist()

    assert run(lambda b, x, y: b.binary("maximum", x, y))[0] == 2.0
    assert np.isnan(run(lambda b, x, y: b.binary("minimum", x, y))[1:]).all()
    one_where = {
        p: run(lambda b, x, y, p=p: b.select(p, x, y, b.constant(1.0), b.constant(0.0)))
        for p in ("oeq", "une", "olt", "ole", "ogt", "oge")
    }
    assert one_where == {
        "oeq": [0, 0, 0, 0], "une": [1, 1, 1, 1], "olt": [1, 0, 0, 0],
        "ole": [1, 0, 0, 0], "ogt": [0, 0, 0, 0], "oge": [0, 0, 0, 0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("math.absf", np.abs), ("math.sqrt", np.sqrt), ("math.exp", np.exp), ("math.log", np.log),
        ("math.sin", np.sin), ("math.cos", np.cos), ("math.tan", np.tan), ("math.tanh", np.tanh),
        ("math.floor", np.floor), ("arith.negf", np.negative),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions(op, function, dtype):
    b = Body()
    result = b.unary(op, b.access("u", 0))
    u = np.linspace(0.1, 2.0, 17).astype(dtype)
    [out] = evaluate(module_of(b.text, [result], dtype=dtype), [u], [(0,)], (17,))
    assert np.array_equal(bits(out), bits(function(u)))


def test_power_and_truth_values():
    def power(b, x, y):
        return b.emit(f"math.powf {x}, {y} : T")

    def one_where_exactly_one_is_positive(b, x, y):
        zero, one = b.constant(0.0), b.constant(1.0)
        p, q = (b.emit(f"arith.cmpf ogt, {o}, {zero} : T") for o in (x, y))
        both = b.emit(f"arith.andi {p}, {q} : i1")
        either = b.emit(f"arith.ori {p}, {q} : i1")
        true = b.emit("arith.constant true")
        not_both = b.emit(f"arith.xori {both}, {true} : i1")
        return b.emit(f"arith.select {b.emit(f'arith.andi {either}, {not_both} : i1')}, {one}, {zero} : T")

    u, v = np.array([2.0, -1.0, 4.0, -1.0]), np.array([3.0, 2.0, -0.5, -2.0])
    at = [(0,), (0,)]
    [powers] = evaluate(of_two_fields(power), [u, v], at, (4,))
    assert powers.tolist() == [8.0, 1.0, 0.5, 1.0]
    [flags] = evaluate(of_two_fields(one_where_exactly_one_is_positive), [u, v], at, (4,))
    assert flags.tolist() == [0, 1, 1, 0]


def test_slabs_do_not_show(monkeypatch):
    b = Body()
    result = b.sub(b.mul(b.access("u", -1, 0), b.access("u", 1, 1)), b.access("u", 0, -2))
    module = module_of(b.text, [result], ndim=2)
    shape = (13, 7)
    inputs = random_inputs(module, shape, seed=3)
    [whole] = evaluate(module, inputs.fields, inputs.origins, shape, inputs.scalars)
    monkeypatch.setattr(numpy_eval, "SLAB_POINTS", 20)  # two rows at a time, the last slab one row
    [slabs] = evaluate(module, inputs.fields, inputs.origins, shape, inputs.scalars)
    u = inputs.fields[0]
    expected = u[:-2, 2:-1] * u[2:, 3:] - u[1:-1, :-3]
    assert np.array_equal(bits(whole), bits(expected)) and np.array_equal(bits(slabs), bits(expected))


@pytest.mark.parametrize(("origin", "extent"), [(1, 9), (2, 10)])
def test_too_small_an_array_is_refused_with_what_it_needs(origin, extent):
    with pytest.raises(StencilError, match=r"u is too small along axis 0.*need 2 points before and 0 after"):
        evaluate(upwind(), [np.zeros(11)], [(origin,)], (extent,), [0.1])


def test_wrong_arguments_are_refused():
    module, u = upwind(), np.zeros(11)
    with pytest.raises(StencilError, match="takes 1 fields"):
        evaluate(module, [], [], (9,), [0.1])
    with pytest.raises(StencilError, match="takes 1 scalars, got 0"):
        evaluate(module, [u], [(2,)], (9,))
    with pytest.raises(StencilError, match="u has dtype float32, the stencil works in float64"):
        evaluate(module, [u.astype("float32")], [(2,)], (9,), [0.1])
    with pytest.raises(StencilError, match="needs 1 axes"):
        evaluate(module, [u.reshape(1, 11)], [(2,)], (9,), [0.1])
    with pytest.raises(StencilError, match=r"shape \(0,\)"):
        evaluate(module, [u], [(2,)], (0,), [0.1])


def test_an_operation_without_meaning_is_named():
    b = Body()
    result = b.unary("math.erf", b.access("u", 0))
    with pytest.raises(StencilError, match="math.erf has no meaning"):
        evaluate(module_of(b.text, [result]), [np.zeros(3)], [(0,)], (3,))
    with pytest.raises(StencilError, match="arith.cmpf ult has no meaning"):
        unordered = of_two_fields(lambda b, x, y: b.select("ult", x, y, x, y))
        evaluate(unordered, [np.zeros(3)] * 2, [(0,)] * 2, (3,))


def test_random_inputs_fit_the_stencil():
    module = upwind()
    inputs = random_inputs(module, (50,), seed=5)
    assert inputs.fields[0].shape == (52,) and inputs.origins == [(2,)] and len(inputs.scalars) == 1
    assert inputs.fields[0].dtype == "float64"
    assert inputs.fields[0].min() < -0.5 and inputs.fields[0].max() > 0.5 and np.all(inputs.fields[0] != 0)
    again, other = random_inputs(module, (50,), seed=5), random_inputs(module, (50,), seed=6)
    assert np.array_equal(inputs.fields[0], again.fields[0]) and again.scalars == inputs.scalars
    assert not np.array_equal(inputs.fields[0], other.fields[0])
    wide = random_inputs(module, (50,), halo=[(4, 3)], seed=5, dtype="float32")
    assert wide.fields[0].shape == (57,) and wide.origins == [(4,)] and wide.fields[0].dtype == "float32"
    with pytest.raises(StencilError, match="1 dimensions"):
        random_inputs(module, (5, 5))
