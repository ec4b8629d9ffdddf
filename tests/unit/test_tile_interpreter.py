"""The interpreter runs handwritten kernels right, and finds what is wrong in wrong ones."""

import sys

import numpy as np
import pytest

from stencil_dsl.errors import StencilError
from stencil_dsl.reference.tile_interpreter import ArrayArg, InterpreterError, run

ACCEPTED = [
    "a * 0.1 + ct.full((8,), 0.1, dtype=ct.float64)",
    "a * ct.bitcast(ct.full((8,), 13830554455654793216, dtype=ct.int64), ct.float64)",
    "a * 123456789012345 + True",
    "ct.maximum(a, b, propagate_nan=True) - min(a, 0.5)",
    "ct.where((a > 1) & (b != 0), a, -b)",
    "ct.where(a > 0, 0.1, a) + ct.where(a, a, 1) + ct.where(a > 0, 1.0, 2.0)",
    "ct.pow(ct.abs(a), b) + abs(a) ** 2",
    "ct.reshape(ct.transpose(ct.permute(ct.reshape(a, (2, 4)), (1, 0))), (8,))",
    "ct.insert(a, (1,), ct.extract(a, (0,), (4,)))",
    "a + ct.broadcast_to(ct.sum(a.reshape((2, 4)), 1)[:, None], (2, 4)).reshape((8,))",
    "ct.cat((ct.extract(a, (0,), (4,)), ct.extract(b, 1, 4)), 0)",
    "ct.floor(a) + ct.tanh(a) + ct.exp(a) + ct.sqrt(ct.arange(8, dtype=ct.int32))",
    "a > 0",
    "~(a > 0)",
    "a + ct.float64(0.1)",
    "ct.astype(a, ct.int32) % 4",
    "0.5",
]

HEAD = "import cuda.tile as ct\n\n\n"
RNG = np.random.default_rng(7)


def kernel(body, params="u, out", options="occupancy=4, num_worker_warps=4, opt_level=3"):
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"{HEAD}@ct.kernel({options})\ndef k({params}):\n{lines}\n"


def padded(shape, halo, dtype=np.float64, extra=0):
    """A random array with a halo (and `extra` elements after the last axis), and its interior."""
    full = tuple(n + 2 * h for n, h in zip(shape, halo, strict=True))
    full = full[:-1] + (full[-1] + extra,)
    a = RNG.standard_normal(full).astype(dtype)
    return a, tuple(slice(h, h + n) for n, h in zip(shape, halo, strict=True))


def args(*arrays):
    return [ArrayArg.of(a) if isinstance(a, np.ndarray) else a for a in arrays]


def elementwise(expression, *inputs, out_dtype=None, n=8):
    """Value of an expression in tiles a, b, ... (1-D, length n), stored into an array."""
    out = np.zeros(n, out_dtype or inputs[0].dtype)
    names = "abcd"[: len(inputs)]
    loads = "\n".join(f"{v} = ct.load(p{v}, (0,), ({n},))" for v in names)
    source = kernel(f"{loads}\nct.store(out, (0,), {expression})", "".join(f"p{v}, " for v in names) + "out")
    run(source, "k", (1,), args(*inputs, out))
    return out


def rejects(match, source, *arrays, grid=(1,), **options):
    with pytest.raises(InterpreterError, match=match) as caught:
        run(source, "k", grid, args(*arrays), **options)
    return caught.value


# ---- right kernels ----

SHIFTED = kernel("""
bz = ct.bid(0); by = ct.bid(1); bx = ct.bid(2)
sixth = ct.bitcast(ct.full((1, 2, 8), 4595172819793696085, dtype=ct.int64), ct.float64)
def at(dx, dy, dz):
    v = u.slice(axis=0, start=1 + dx, stop=NX + 1 + dx)
    v = v.slice(axis=1, start=1 + dy, stop=NY + 1 + dy).slice(axis=2, start=1 + dz, stop=NZ + 1 + dz)
    return ct.load(v, (bx, by, bz), shape=(1, 2, 8), check_bounds=False, latency=2, allow_tma=False)
s = at(-1, 0, 0) + at(1, 0, 0)
s = s + at(0, -1, 0) + at(0, 1, 0) + at(0, 0, -1) + at(0, 0, 1)
ct.store(out, index=(bx, by, bz), tile=sixth * s - at(0, 0, 0), check_bounds=False)
""")


def seven_point(u):
    c = u[1:-1, 1:-1, 1:-1]
    s = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
    s = s + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    return np.float64(1 / 6) * s - c


def test_shifted_seven_point_agrees_bit_for_bit_and_leaves_the_halo_alone():
    shape = (5, 4, 16)
    u, _ = padded(shape, (1, 1, 1))
    out, inner = padded(shape, (1, 1, 1))
    before = out.copy()
    source = SHIFTED.replace("NX", "5").replace("NY", "4").replace("NZ", "16")
    report = run(source, "k", (2, 2, 5), args(u, out[inner]))
    assert np.array_equal(out[inner], seven_point(u))
    out[inner] = before[inner]
    assert np.array_equal(out, before)
    assert (report.blocks, report.loads, report.unchecked_loads) == (20, 7 * 320, 7 * 320)
    assert (report.stores, report.unchecked_stores, report.load_tiles, report.store_tiles) == (
        320,
        320,
        140,
        20,
    )
    assert report.outside_view == report.padded == report.dropped == report.rewritten == 0


def test_streaming_loop_with_carried_tiles_and_a_chunk_of_planes():
    source = kernel(
        """
        x0 = ct.bid(2) * 4
        bz = ct.bid(0); by = ct.bid(1)
        below = ct.load(u, (x0, by, bz), (1, 1, 8), check_bounds=False)
        here = ct.load(u, (x0 + 1, by, bz), (1, 1, 8), check_bounds=False)
        for x in range(x0, x0 + 4):
            above = ct.load(u, (x + 2, by, bz), (1, 1, 8), check_bounds=False)
            ct.store(out, (x, by, bz), below + above - here * 2)
            below = here
            here = above
        """.replace("\n        ", "\n")
    )
    u = RNG.standard_normal((10, 3, 16))
    out = np.zeros((8, 3, 16))
    report = run(source, "k", (2, 3, 2), args(u, out))
    assert np.array_equal(out, u[:-2] + u[2:] - u[1:-1] * 2)
    assert report.loads == 12 * 6 * 8


def test_scatter_with_a_condition_on_the_loop_index():
    source = kernel("""
acc = (ct.zeros((1, 8), dtype=u.dtype), ct.zeros((1, 8), dtype=u.dtype))
for i in range(6):
    a = ct.load(u, (i, 0), (1, 8), check_bounds=False)
    done = acc[0] + a
    if i >= 2:
        ct.store(out, (i - 2, 0), done)
    acc = (acc[1] + a, a)
""")
    u = RNG.standard_normal((6, 8))
    out = np.zeros((4, 8))
    run(source, "k", (1,), args(u, out))
    assert np.array_equal(out, u[:-2] + u[1:-1] + u[2:])


def test_pair_views_give_both_halves_by_extract_and_cat():
    source = kernel("""
a = ct.load(u, (ct.bid(0), 0, 0), (1, 4, 2), check_bounds=False)
b = ct.load(u.slice(axis=1, start=1, stop=5), (ct.bid(0), 0, 0), (1, 4, 2), check_bounds=False)
even = ct.extract(a, index=(0, 0, 0), shape=(1, 4, 1))
odd = ct.extract(a, index=(0, 0, 1), shape=(1, 4, 1))
next_even = ct.extract(b, index=(0, 0, 0), shape=(1, 4, 1))
ct.store(out, (ct.bid(0), 0, 0), ct.cat((odd, next_even), axis=2) - a, check_bounds=False)
""")
    flat = RNG.standard_normal((3, 10))
    out = np.zeros((3, 8))
    run(source, "k", (3,), args(flat.reshape(3, 5, 2), out.reshape(3, 4, 2)))
    assert np.array_equal(out, flat[:, 1:9] - flat[:, :8])


def test_one_output_passed_once_per_row_tile_shares_one_allocation():
    source = kernel("ct.store(o0, (0, 0), ct.load(u, (0, 0), (1, 4)))\nct.store(o1, (1, 0), 1)", "u, o0, o1")
    u, out = RNG.standard_normal((2, 4)), np.zeros((2, 4))
    run(source, "k", (1,), args(u, out, out))
    assert np.array_equal(out, [u[0], [1, 0, 0, 0]])


def test_one_dimension_integer_index_and_dynamic_scalars():
    source = kernel("n = u.shape[0]\nct.store(out, ct.bid(0), ct.load(u, ct.bid(0), 4) * dt)", "u, out, dt")
    for dtype in (np.float64, np.float32):
        u, out = RNG.standard_normal(8).astype(dtype), np.zeros(8, dtype)
        run(source, "k", (2,), args(u, out, 0.1))
        assert np.array_equal(out, u * dtype(0.1))


def test_block_and_tile_counts_and_axis_zero_fastest():
    source = kernel("""
ct.static_assert(u.ndim == 1 and u.shape == (10,) and u.strides == (1,), "facts of u")
ct.store(out, (ct.bid(1), ct.bid(0)), ct.bid(0) + ct.num_blocks(0) * ct.bid(1))
""")
    out = np.zeros((2, 3), np.int32)
    run(source, "k", (3, 2), args(np.zeros(10), out))
    assert np.array_equal(out, np.arange(6).reshape(2, 3))
    source = kernel("ct.store(out, (0,), ct.num_tiles(u, 0, (4,)) + ct.cdiv(9, 4) + ct.num_blocks(2))")
    run(source, "k", (1,), args(np.zeros(10), out.reshape(-1)))
    assert out.reshape(-1)[0] == 3 + 3 + 1


def test_order_permutes_the_axes_of_the_array():
    source = kernel("ct.store(out, (0, 0), ct.load(u, (1, 0), (2, 4), order=(1, 0)))")
    u, out = RNG.standard_normal((4, 4)), np.zeros((2, 4))
    run(source, "k", (1,), args(u, out))
    assert np.array_equal(out, u.T[2:4])


def test_tiled_view_with_overlapping_steps():
    source = kernel("""
view = u.tiled_view((4,), traversal_steps=(2,))
o = out.tiled_view((4,))
o.store((ct.bid(0),), view.load((ct.bid(0),)))
ct.static_assert(view.num_tiles(0) == 4 and view.tile_shape == (4,), "tile counts")
""")
    u, out = np.arange(8.0), np.zeros(12)
    run(source, "k", (3,), args(u, out))
    assert out.tolist() == [0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7]


# ---- edges ----


def test_checked_load_pads_with_nan_or_as_asked_and_checked_store_drops():
    u = np.arange(6.0)
    for mode, want in ("", np.nan), (", padding_mode=ct.PaddingMode.ZERO", 0.0):
        out = np.full(8, 7.0)
        report = run(kernel(f"ct.store(out, (1,), ct.load(u, (1,), (4,){mode}))"), "k", (1,), args(u, out))
        assert np.array_equal(out, [7, 7, 7, 7, 4, 5, want, want], equal_nan=True)
        assert (report.loads, report.padded) == (2, 2)
    out = np.full(8, 7.0)
    report = run(kernel("ct.store(out, (1,), ct.ones((4,), ct.float64))"), "k", (1,), args(u, out[:6]))
    assert out.tolist() == [7, 7, 7, 7, 1, 1, 7, 7]
    assert (report.stores, report.dropped) == (2, 2)


@pytest.mark.parametrize("statement", ["ct.load(u, (2,), (4,))", "ct.store(out, (2,), ct.zeros((4,), u.dtype))"])
def test_tile_entirely_outside_is_refused_even_when_checked(statement):
    rejects("entirely outside", kernel(statement), np.zeros(8), np.zeros(8))
    rejects("entirely outside", kernel(statement.replace("(2,)", "(-1,)")), np.zeros(8), np.zeros(8))


def test_unchecked_load_outside_the_allocation_names_line_block_array_and_elements():
    source = kernel("x = 1\nct.load(u, (ct.bid(0), 0), (1, 8), check_bounds=False)")
    u = np.zeros((2, 8))
    error = rejects("leaves the allocation", source, u, np.zeros(1), grid=(3,), strict_views=False)
    assert isinstance(error, StencilError)
    assert (error.line, error.block) == (7, (2,))
    assert "u of shape (2, 8)" in str(error) and "elements (2..2, 0..7)" in str(error)
    assert source.splitlines()[6].strip() in str(error)
    rejects("leaves the allocation", source, u, np.zeros(1), grid=(3,))


def test_unchecked_access_outside_the_view_but_inside_the_allocation():
    memory = RNG.standard_normal((4, 8))
    view = memory[1:3, :6]
    source = kernel("ct.store(out, (0, 0), ct.load(u, (0, 0), (2, 8), check_bounds=False))")
    rejects("load leaves its view", source, view, np.zeros((2, 8)))
    out = np.zeros((2, 8))
    report = run(source, "k", (1,), args(view, out), strict_views=False)
    assert np.array_equal(out, memory[1:3]) and report.outside_view == 4
    source = kernel("ct.store(out, (0, 0), ct.ones((2, 8), ct.float64), check_bounds=False)")
    rejects("store leaves its view", source, np.zeros(1), view)


def test_unchecked_store_outside_the_allocation_changes_nothing():
    out = np.zeros(8)
    source = kernel("ct.store(out, (1,), ct.ones((8,), ct.float64), check_bounds=False)")
    rejects("store leaves the allocation", source, np.zeros(1), out, strict_views=False)
    assert not out.any()


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 2), (0, 9), (8, 8)])
def test_slice_bounds(start, stop):
    error = rejects("slice", kernel(f"v = u.slice(axis=0, start={start}, stop={stop})"), np.zeros(8), np.zeros(1))
    assert "0 <= start < 8" in str(error)


# ---- races ----


def test_two_blocks_that_store_different_values_in_one_place():
    source = kernel("ct.store(out, (0,), ct.load(u, (ct.bid(0),), (4,)))")
    error = rejects("stored twice with different values", source, np.arange(8.0), np.zeros(4), grid=(2,))
    assert error.block == (1,) and "block (0,)" in str(error)


def test_equal_values_stored_twice_are_counted_not_refused():
    source = kernel("ct.store(out, (0,), ct.load(u, (ct.bid(0),), (4,)))")
    for value in (3.0, np.nan):
        report = run(source, "k", (2,), args(np.full(8, value), np.zeros(4)))
        assert report.rewritten == 4


def test_signed_zeros_are_different_values():
    source = kernel("ct.store(out, (0,), ct.load(u, (ct.bid(0),), (1,)))")
    rejects("stored twice", source, np.array([0.0, -0.0]), np.zeros(1), grid=(2,))


def test_one_block_may_rewrite_through_one_parameter_but_not_through_two():
    source = kernel("ct.store(out, (0,), 1)\nct.store(o2, (0,), 2)", "out, o2")
    out = np.zeros(4)
    rejects("through parameter 'out'", source, out, out)
    run(source.replace("o2, (", "out, ("), "k", (1,), args(out, np.zeros(4)))
    assert out[0] == 2


IN_PLACE = kernel("ct.store(out, (ct.bid(0),), ct.load(u, (SOURCE,), (4,)) + 1)")


@pytest.mark.parametrize("source_tile", ["ct.bid(0)", "(ct.bid(0) + 1) % 2", "1 - ct.bid(0)"])
def test_in_place_use_needs_permission(source_tile):
    source, u = IN_PLACE.replace("SOURCE", source_tile), np.zeros(8)
    rejects("order is undefined", source, u, u, grid=(2,))
    run(source, "k", (2,), args(u, u), allow_inplace=True)
    assert u.all()


def test_load_before_another_blocks_store_is_found_and_placed():
    source = kernel("t = ct.load(u, (1 - ct.bid(0),), (4,))\nif ct.bid(0) == 1:\n    ct.store(u, (1,), t + 1)")
    error = rejects("reads what block \\(1,\\)", source, np.zeros(8), np.zeros(1), grid=(2,))
    assert (error.line, error.block) == (6, (0,))


def test_race_through_a_slice_alias_and_a_helper_function():
    source = kernel("v = u\nw = v.slice(0, 0, 4)\nct.load(u, (0,), (4,))\nct.store(w, (0,), ct.bid(0) * 0 + 1)")
    rejects("order is undefined", source, np.zeros(8), np.zeros(1), grid=(2,))
    helper = "def put(x):\n    ct.store(x, (0,), 1)\n\n\n"
    source = kernel("ct.load(u, (0,), (4,))\nput(u)").replace(HEAD, HEAD + helper)
    rejects("order is undefined", source, np.zeros(8), np.zeros(1), grid=(2,))


def test_stored_parameters_are_found_through_tuples_loops_and_slices():
    from stencil_dsl.reference.tile_interpreter import stored_parameters

    body = "rows = (o0, o1.slice(0, 0, 4))\nrows += (o2,)\nt = ct.load(u, (0,), (4,))\n"
    body += "for r in ct.static_iter(rows):\n    ct.store(r, (0,), t)"
    assert stored_parameters(kernel(body, "u, o0, o1, o2"), "k") == {"o0", "o1", "o2"}
    assert stored_parameters(kernel("w = o.tiled_view((4,))\nw.store((0,), u)", "u, o"), "k") == {"o"}


def test_disjoint_parts_of_one_allocation_are_no_race():
    memory = RNG.standard_normal(16)
    run(IN_PLACE.replace("SOURCE", "ct.bid(0)"), "k", (2,), args(memory[:8], memory[8:]))
    assert np.array_equal(memory[8:], memory[:8] + 1)


def test_overlapping_buffers_must_be_passed_as_one():
    memory = np.zeros(16)
    overlapping = [ArrayArg(memory[:10], 0, (8,), (1,)), ArrayArg(memory[4:], 0, (8,), (1,))]
    with pytest.raises(InterpreterError, match="pass the same buffer"):
        run(IN_PLACE.replace("SOURCE", "0"), "k", (1,), overlapping)


def test_store_to_read_only_memory():
    out = np.zeros(8)
    out.flags.writeable = False
    rejects("read-only", kernel("ct.store(out, (0,), 1)"), np.zeros(1), out)


# ---- numbers ----

A64 = RNG.standard_normal(8)
A32 = A64.astype(np.float32)


@pytest.mark.parametrize("expression", ["a * 0.1", "0.1 * a", "a * ct.full((8,), 0.1, dtype=ct.float64)"])
def test_python_floats_pass_through_float32(expression):
    assert np.array_equal(elementwise(expression, A64), A64 * np.float64(np.float32(0.1)))
    assert not np.array_equal(elementwise(expression, A64), A64 * 0.1)


def test_python_arithmetic_on_python_floats_is_double_until_it_meets_a_tile():
    assert np.array_equal(elementwise("a * (0.1 * 3.0)", A64), A64 * np.float64(np.float32(0.1 * 3.0)))


def test_exact_float64_constant_by_bitcast_positive_and_negative():
    for value in (0.1, -1 / 3, 5e-324):
        signed, unsigned = (int(np.float64(value).view(t)) for t in (np.int64, np.uint64))
        for bits in (signed, unsigned):
            expression = f"a * ct.bitcast(ct.full((8,), {bits}, dtype=ct.int64), ct.float64)"
            assert np.array_equal(elementwise(expression, A64), A64 * value)


def test_integers_are_exact_beside_float64_and_float32_stays_float32():
    assert np.array_equal(elementwise("a * 123456789012345", A64), A64 * 123456789012345.0)
    assert np.array_equal(elementwise("(a * 3 + a) * 0.1", A32), (A32 * 3 + A32) * np.float32(0.1))
    assert np.array_equal(elementwise("a + b", A32, A64, out_dtype=np.float64), A32.astype(np.float64) + A64)


def test_products_and_sums_are_rounded_separately():
    a, b, c = (RNG.standard_normal(64) for _ in range(3))
    assert np.array_equal(elementwise("a * b + c", a, b, c, n=64), a * b + c)


I32 = np.array([7, -7, 3, 0, 2**31 - 1, 5, 1, 2], np.int32)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("a + 1", I32 + np.int32(1)),
        ("a // 2", I32 // 2),
        ("a % 4", I32 % 4),
        ("-a", -I32),
        ("(a & 3) | (a ^ 5)", (I32 & 3) | (I32 ^ 5)),
        ("a << 1", I32 << 1),
        ("abs(a)", abs(I32)),
        ("ct.arange(8, dtype=ct.int32, start=3, step=2)", np.arange(3, 19, 2)),
        ("ct.where(a > 2, a, -1)", np.where(I32 > 2, I32, -1)),
        ("min(a, 3)", np.minimum(I32, 3)),
        ("(a * 0.5).astype(ct.int32)", (I32.astype(np.float32) * np.float32(0.5)).astype(np.int32)),
    ],
)
def test_integer_tiles(expression, want):
    with np.errstate(all="ignore"):
        assert np.array_equal(elementwise(expression, I32), want)


def test_division_of_integers_gives_float32():
    got = elementwise("a / 3", I32, out_dtype=np.float32)
    assert np.array_equal(got, I32.astype(np.float32) / np.float32(3))


REFUSED = [
    "ct.bitcast(a, ct.float32)",
    "ct.bitcast(a, ct.bool_)",
    "ct.full((8,), 1, dtype=float)",
    "ct.full((6,), 1, dtype=ct.float64)",
    "a if a else b",
    "a[0]",
    "(a > 0) + (b > 0)",
    "a & b",
    "ct.cat((a, a.astype(ct.float32)), 0)",
    "ct.cat((a, b, a), 0)",
    "ct.extract(a, (4,), (2,))",
    "ct.extract(a, (0, 0), (2, 1))",
    "a + ct.zeros((4,), ct.float64)",
    "ct.gather(pa, a)",
    "ct.load(a, (0,), (8,))",
    "ct.load(pa, (0.5,), (8,))",
    "ct.load(pa, (0, 0), (8, 1))",
    "ct.load(pa, (0,), (8,), latency=11)",
    "ct.ensure_constant(a) == 'x'",
    "ct.pow(ct.astype(a, ct.int32), 2)",
    "ct.reshape(a, -1)",
    "ct.slice(a)",
]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_cutile_refuses_is_refused(expression):
    with pytest.raises(InterpreterError) as caught:
        elementwise(expression, A64, A64)
    assert caught.value.line == 8 and caught.value.block == (0,)


def test_store_casts_only_upwards():
    with pytest.raises(InterpreterError, match="cannot be stored"):
        elementwise("a", A64, out_dtype=np.float32)
    assert np.array_equal(elementwise("a", A32, out_dtype=np.float64), A32.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", "sqrt exp log sin cos tan tanh floor abs negative".split())  # noqa: SIM905
def test_functions_are_numpys_in_the_tiles_type(name, dtype):
    a = (np.abs(A64) + 0.25).astype(dtype)
    assert np.array_equal(elementwise(f"ct.{name}(a)", a), getattr(np, name)(a))


def test_minimum_and_maximum_with_nan():
    a, b = A64.copy(), A64[::-1].copy()
    a[1] = b[5] = np.nan
    propagated = elementwise("ct.maximum(a, b, propagate_nan=True)", a, b)
    assert np.array_equal(propagated, np.maximum(a, b), equal_nan=True) and np.isnan(propagated[[1, 5]]).all()
    assert np.array_equal(elementwise("ct.minimum(a, b)", a, b), np.fmin(a, b))


def test_comparisons_where_and_pow():
    b = RNG.standard_normal(8)
    got = elementwise("ct.where((a > b) & (a != 0), a, -b)", A64, b)
    assert np.array_equal(got, np.where(b < A64, A64, -b))
    assert np.array_equal(elementwise("ct.pow(ct.abs(a), b)", A64, b), np.abs(A64) ** b)
    assert np.array_equal(elementwise("ct.where(a > 0, 0.1, a)", A64), np.where(A64 > 0, np.float32(0.1), A64))


def test_shapes_round_trip():
    expression = "ct.reshape(ct.transpose(ct.permute(ct.reshape(a, (2, 4)), (1, 0))), (8,))"
    assert np.array_equal(elementwise(expression, A64), A64)
    expression = "ct.insert(a, (1,), ct.extract(a, (0,), (4,)))"
    assert np.array_equal(elementwise(expression, A64), np.tile(A64[:4], 2))
    expression = "a + ct.broadcast_to(ct.sum(a.reshape((2, 4)), 1)[:, None], (2, 4)).reshape((-1,))"
    assert np.array_equal(elementwise(expression, A64), A64 + np.repeat(A64.reshape(2, 4).sum(1), 4))


def test_a_tile_keeps_its_value_when_the_array_changes():
    source = kernel("t = ct.load(out, (0,), (4,))\nct.store(out, (0,), t + 1)\nct.store(out, (1,), t)")
    out = np.zeros(8)
    run(source, "k", (1,), args(np.zeros(1), out))
    assert out.tolist() == [1] * 4 + [0] * 4


@pytest.mark.parametrize("expression", ACCEPTED)
def test_what_cutile_accepts_is_accepted(expression):
    assert elementwise(expression, A64, A64[::-1].copy()).any()


# ---- loading the file ----


def test_installed_module_and_import_system_stay_untouched():
    before = {n: m for n, m in sys.modules.items() if n.split(".")[0] == "cuda"}
    source = kernel("from math import pi\nct.store(out, (0,), 3)").replace(HEAD, HEAD + "from cuda.tile import load\n")
    run(source, "k", (1,), args(np.zeros(1), np.zeros(4)))
    assert {n: m for n, m in sys.modules.items() if n.split(".")[0] == "cuda"} == before


def test_annotations_constants_and_the_launch_function():
    source = f"""{HEAD}from typing import Annotated
U = Annotated[ct.Array, ct.ArrayAnnotation(index_dtype=ct.int64, static_shape_dims=(0,))]

@ct.kernel
def k(u: U, out: ct.IndexedWithInt64, n: ct.Constant[int], c: ct.Constant[float], m: ct.ScalarInt64):
    for i in ct.static_iter(range(n)):
        ct.store(out, (i,), ct.load(u, (i,), (4,)) * c)

def launch_k(u, out, stream):
    import cupy
    ct.launch(stream, (1,), k, (u, out))
"""
    u, out = RNG.standard_normal(8), np.zeros(8)
    run(source, "k", (1,), args(u, out, 2, 0.1, 2**40))
    assert np.array_equal(out, u * np.float64(np.float32(0.1)))
    launching = source + "\nct.launch(None, (1,), k, ())\n"
    assert rejects("needs a device", launching, u, out, 2, 0.1, 1).line == len(launching.splitlines())


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (kernel("pass").replace("def k", "def other"), "no @ct.kernel function named 'k'"),
        (kernel("pass", "u"), "takes 1 arguments"),
        (kernel("pass", options="occupancy=64"), "occupancy=64"),
        (kernel("pass", options="num_worker_warps=3"), "num_worker_warps=3"),
        (kernel("x = ct.bid(3)"), "block axis 3"),
        (kernel("x = (1"), "no Python"),
        (kernel("k(u, out)"), "not called"),
        (kernel("x = undefined"), "NameError"),
    ],
)
def test_files_that_cannot_run(source, match):
    rejects(match, source, np.zeros(4), np.zeros(4))


@pytest.mark.parametrize("grid", [(), (0,), (1, 1, 1, 1), (1.5,)])
def test_grids_that_are_none(grid):
    rejects("grid", kernel("pass"), np.zeros(4), np.zeros(4), grid=grid)


def test_views_that_leave_their_allocation_are_refused_before_anything_runs():
    for offset, strides in (5, (1,)), (0, (2,)), (2, (-1,)):
        with pytest.raises(InterpreterError, match="reaches elements"):
            run(
                kernel("pass"),
                "k",
                (1,),
                [ArrayArg(np.zeros(8), offset, (5,), strides, "u"), *args(np.zeros(1))],
            )


def test_array_arg_of_a_view_finds_the_allocation():
    memory = np.zeros((4, 6), np.float32)
    arg = ArrayArg.of(memory[1:, 2:5], "u")
    assert (arg.buffer.size, arg.offset, arg.shape, arg.strides) == (24, 8, (3, 3), (6, 1))
    assert np.shares_memory(arg.buffer, memory)
    with pytest.raises(InterpreterError, match="no flat"):
        ArrayArg.of(memory.view(np.int32)[0])


# ---- against the real module ----


def test_the_stand_in_offers_only_what_the_real_module_has():
    import inspect

    real = pytest.importorskip("cuda.tile")
    from stencil_dsl.reference.tile_memory import Memory
    from stencil_dsl.reference.tile_module import stand_in

    ours = {n: v for n, v in vars(stand_in(Memory(True, False, 1))).items() if not n.startswith("__")}
    assert len(ours) > 80
    missing = [n for n in ours if not hasattr(real, n)]
    assert not missing

    def shape(function):
        return [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(function).parameters.values()]

    checked = 0
    for name, value in ours.items():
        if not inspect.isfunction(value) or name in ("kernel", "launch"):
            continue
        assert shape(value) == shape(inspect.unwrap(getattr(real, name))), name
        checked += 1
    assert checked > 60
    for cls in ("Array", "Tile", "TiledView"):
        for name, value in vars(ours[cls]).items():
            other = inspect.getattr_static(getattr(real, cls), name, None)
            if inspect.isfunction(value) and not name.startswith("_") and inspect.isfunction(other):
                assert shape(value) == shape(inspect.unwrap(other)), f"{cls}.{name}"
    for enum in ("PaddingMode", "RoundingMode", "MemoryOrder", "MemoryScope"):
        names = {m.name for m in getattr(real, enum)}
        assert {m.name for m in ours[enum]} <= names, enum


def test_promotion_agrees_with_the_real_module():
    real = pytest.importorskip("cuda.tile._datatype")
    from stencil_dsl.reference import tile_dtypes as dt

    for a in dt.ALL_DTYPES:
        for b in dt.ALL_DTYPES:
            try:
                want = real.promote_dtypes(getattr(real, a.name), getattr(real, b.name)).name
            except Exception:
                want = None
            try:
                got = dt.promote(a, b).name
            except InterpreterError:
                got = None
            assert got == want, (a, b)


def front_end_accepts(expression, folder):
    """Whether the real compiler's front end takes the kernel of `elementwise` (two float64 inputs)."""
    import importlib.util
    import io

    import cuda.tile as ct
    from cuda.tile import compilation as cc

    folder.joinpath("emitted.py").write_text(
        kernel(
            f"a = ct.load(pa, (0,), (8,))\nb = ct.load(pb, (0,), (8,))\nct.store(out, (0,), {expression})",
            "pa, pb, out",
        )
    )
    spec = importlib.util.spec_from_file_location("emitted", folder / "emitted.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    array = cc.ArrayConstraint(
        ct.float64,
        1,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[1],
        base_addr_divisible_by=8,
    )
    signature = cc.KernelSignature([array] * 3, cc.CallingConvention.cutile_python_v2(), symbol="k")
    try:
        cc.export_kernel(
            module.k,
            [signature],
            io.BytesIO(),
            gpu_code="sm_90",
            output_format="tileir_bytecode",
            bytecode_version="13.4",
        )
    except ct.TileError:
        return False
    except Exception as error:  # the front end reports unbroadcastable shapes as an internal error
        assert "not broadcastable" in str(error) or "Missing" in str(error)
        return False
    return True


def test_the_real_front_end_draws_the_same_line(tmp_path):
    pytest.importorskip("cuda.tile.compilation")
    assert [e for e in ACCEPTED if not front_end_accepts(e, tmp_path)] == []
    assert [e for e in REFUSED if front_end_accepts(e, tmp_path)] == []
