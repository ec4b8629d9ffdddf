"""What the frontend accepts means what Python computes at one point after the other."""

from __future__ import annotations

import math
from math import sqrt as root

import numpy as np
import pytest
from frontend_cases import check, define, operations, read

from stencil_dsl import stencil
from stencil_dsl.frontend import Field, Index

C0, HALF = 0.4, 1 / 2
WEIGHTS = (0.1, 0.06, 0.045, 0.03, 0.015)
TABLE = np.array([[0.5, 0.25], [0.125, -1.0]])
ORDER = 4
UPWIND = True


def second(u, i, j, step=1):
    """Second differences."""
    return u[i - step, j] - 2 * u[i, j] + u[i + step, j]


def both_ways(u, i, j):
    x = second(u, i, j)
    y = u[i, j - 1] - 2 * u[i, j] + u[i, j + 1]
    return x, y


def test_heat_is_read_as_written() -> None:
    @stencil
    def heat(u, dt, i, j):
        lap = u[i - 1, j] + u[i + 1, j] - 2.0 * u[i, j]
        return u[i, j] + dt * lap

    assert (heat.name, heat.fields, heat.scalars, heat.indices) == ("heat", ("u",), ("dt",), ("i", "j"))
    assert (heat.ndim, heat.outputs) == (2, ("heat",))
    assert operations(heat) == [
        "access u[-1, 0]", "access u[1, 0]", "binary add", "access u[0, 0]", "constant 2.0", "binary mul",
        "binary sub", "access u[0, 0]", "binary mul", "binary add", "yield",
    ]  # fmt: skip
    check(heat, 0.125)


def test_star_of_radius_four_in_three_lines() -> None:
    @stencil
    def star(u, i, j, k):
        axes = axes_of(u, i, j, k)
        return WEIGHTS[0] * u[i, j, k] + axes

    assert len([op for op in operations(star) if op.startswith("access")]) == 25
    check(star)


def axes_of(u, i, j, k):
    return sum(
        WEIGHTS[r]
        * (u[i - r, j, k] + u[i + r, j, k] + u[i, j - r, k] + u[i, j + r, k] + u[i, j, k - r] + u[i, j, k + r])
        for r in range(1, 5)
    )


def test_box_by_classes() -> None:
    @stencil
    def box(u, i, j, k):
        return sum(
            WEIGHTS[abs(a) + abs(b) + abs(c)] * u[i + a, j + b, k + c]
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
            for c in (-1, 0, 1)
            if not (a == b == c == 0)
        )

    assert len([op for op in operations(box) if op.startswith("access")]) == 26
    check(box)


def test_sum_runs_from_left_to_right_and_zero_folds() -> None:
    f = read("def f(u, i): return sum([u[i], u[i + 1], u[i + 2]])")
    assert operations(f) == [
        "access u[0]", "access u[1]", "access u[2]", "binary add", "binary add", "yield",
    ]  # fmt: skip
    check(f)
    assert operations(read("def f(u, i): return u[i] + sum([])")) == [
        "access u[0]", "constant 0.0", "binary add", "yield",
    ]  # fmt: skip
    check(read("def f(u, i): return sum((u[i + k] for k in range(3)), 1.5)"))


def test_loops_unroll_and_accumulate() -> None:
    @stencil
    def f(u, dt, i):
        total = 0.0
        for k in range(-2, 3):
            if k != 0:
                total += u[i + k] / k
        for n, w in enumerate(WEIGHTS):
            total -= w * u[i - n]
        for a, b in zip((1, 2), TABLE, strict=False):
            total *= b[0] + a
        return total * dt

    check(f, 0.3)


def test_inlined_functions() -> None:
    @stencil
    def f(u, v, i, j):
        x, y = both_ways(u, i, j)
        z = second(v, j=j, i=i + 1, step=2)
        return x * z, y - second(u, i, j)

    assert f.outputs == ("f_0", "f_1")
    assert f.fields == ("u", "v") and f.indices == ("i", "j")
    check(f)


def test_closure_variables_and_functions() -> None:
    def build(weight, order):
        def part(u, i):
            return weight * (u[i + order] - u[i - order])

        @stencil
        def f(u, i):
            return part(u, i) + weight**order

        return f

    check(build(0.25, 2))
    check(build(0.1, 3))


def test_choices_of_values() -> None:
    @stencil
    def f(u, v, dt, i):
        if u[i] > 0 and not v[i] > 0.5 or dt >= 1:
            a = u[i + 1]
            b = 1
        elif u[i] < -0.5:
            a = v[i + 1]
            b = 2.0
        else:
            a, b = v[i - 1], u[i]
        c = a if -1 < a <= b != 2 else b
        d = (u[i] > 0) if v[i] > 0 else (u[i] > 0.5)
        return c + b, np.where(d, a, -b)

    check(f, 0.5)
    check(f, 2.0)


def test_branches_may_return() -> None:
    @stencil
    def f(u, i):
        if u[i] > 0:
            return u[i], 1
        else:
            return 2 * u[i + 1], u[i]

    check(f)


def test_static_conditions_take_one_branch() -> None:
    @stencil
    def f(u, i):
        if UPWIND and ORDER > 2:
            d = u[i]
            d = d - u[i - 1]
        else:
            d = u[i + 4]
        if not UPWIND:
            d = 0
        return d if ORDER == 4 else u[i + 3]

    assert operations(f) == ["access u[0]", "access u[-1]", "binary sub", "yield"]
    check(f)


@pytest.mark.parametrize(
    "spelling",
    [
        "sqrt(abs({0}))", "math.sqrt(math.fabs({0}))", "np.sqrt(np.abs({0}))", "numpy.sqrt(numpy.fabs({0}))",
        "math.exp({0})", "np.exp({0})", "math.log(abs({0}))", "np.log(np.absolute({0}))", "math.sin({0})",
        "np.sin({0})", "np.cos({0})", "math.tan({0})", "np.tan({0})", "math.tanh({0})", "np.tanh({0})",
        "math.floor({0})", "np.floor(3 * {0})", "max({0}, 0)", "min({0}, 0.25, {1})", "max([{0}, {1}])",
        "np.minimum({0}, {1})", "np.maximum({0}, 0.5)", "np.where({0} > {1}, {0}, 2)", "root(abs({0}))",
        "pow({0}, 2)", "abs({0}) ** 0.5", "abs({0}) ** {1}", "np.power(abs({0}), 1.5)", "math.pow(2.0, {0})",
        "{0} ** -3", "{0} ** 0", "{0} ** 7", "-{0} ** 2", "+{0}", "-(-{0})", "math.pi * {0} + np.e",
        "float({0})", "{0} * np.float64(0.1)",
    ],
)  # fmt: skip
def test_function_spellings(spelling: str) -> None:
    expression = spelling.format("u[i]", "u[i + 1]")
    names = {"math": math, "np": np, "numpy": np, "root": root, "sqrt": math.sqrt}
    check(read(f"def f(u, i): return {expression}", **names), rtol=1e-14)


def test_plain_spellings_need_no_import() -> None:
    text = "def f(u, i): return where(u[i] > 0, {}(u[i]), 0)"
    for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor"):
        assert f"unary {name}" in operations(read(text.format(name)))


def test_the_users_own_function_wins() -> None:
    f = read("""
        def sqrt(x):
            return x + 1
        def f(u, i):
            return sqrt(u[i])
    """)
    assert "binary add" in operations(f)


def test_constants_follow_python() -> None:
    text = """
        def f(u, i):
            n = 7 // 2 + 2**3 % 5 - int(2.9)
            w = -205 / 72 * (1 / 3) + max(1, 2) * len(W) + abs(-n) + sqrt(2) + (1 if n > 3 else 0)
            return w * u[i + n - 4]
    """
    f = read(text, W=[1, 2, 3])
    n = 7 // 2 + 2**3 % 5 - int(2.9)
    w = -205 / 72 * (1 / 3) + 2 * 3 + abs(-n) + math.sqrt(2) + 1
    assert operations(f) == [f"access u[{n - 4}]", f"constant {w!r}", "binary mul", "yield"]


def test_numpy_constants() -> None:
    f = read("def f(u, i): return A[1][0] * u[i + N] + S", A=TABLE, N=np.int64(2), S=np.float64(0.1))
    assert operations(f) == [
        "access u[2]", "constant 0.125", "binary mul", "constant 0.1", "binary add", "yield",
    ]  # fmt: skip


def test_unused_values_read_nothing() -> None:
    @stencil
    def f(u, v, i):
        unused = v[i + 4]
        unused = unused * 2
        first = u[i + 5]
        first = u[i]
        if u[i] > 0:
            a, b = u[i + 1], u[i + 4]  # noqa: F841
        else:
            a, b = u[i - 1], u[i - 4]  # noqa: F841
        return first + a

    assert f.fields == ("u", "v")
    offsets = [op for op in operations(f) if op.startswith("access")]
    assert offsets == ["access u[0]", "access u[0]", "access u[1]", "access u[-1]"]


def test_variables_name_values_of_the_ir() -> None:
    text = str(read("def f(u, i):\n    lap = u[i - 1] + u[i + 1]\n    return lap * 2").module())
    assert '%lap = source.binary "add"' in text


def test_float32_rounds_constants_once() -> None:
    f = read("def f(u, i): return (0.1 + 0.2) * u[i]")
    assert f"constant {float(np.float32(0.1 + 0.2))!r}" in operations(f, "float32")


def test_a_sum_of_two_thousand_terms() -> None:
    terms = " + ".join(f"{k} * u[i + {k % 5}]" for k in range(1, 2001))
    f = read(f"def f(u, i): return {terms}")
    assert len(operations(f)) == 3 * 2000 + 1999 + 1


def test_dimensions() -> None:
    assert [read(f"def f(u, {names}): return u[{names}]").ndim for names in ("i", "i, j", "i, j, k")] == [
        1,
        2,
        3,
    ]


def test_rebinding_scalars_and_shadowing() -> None:
    f = read("""
        def f(u, dt, i):
            dt = dt * 2
            dt += 1
            k = 1
            s = sum(u[i + k] for k in range(3))
            return dt * s + u[i + k]
    """)
    check(f, 0.5)


@pytest.mark.parametrize(
    ("text", "fields", "scalars", "indices"),
    [
        ("def f(u, dt, i): return dt * u[i]", "u", "dt", "i"),
        ("def f(u, v, i): return v[i]", "u v", "", "i"),  # stands before a field that is read
        ("def f(u, v, i): return u[i]", "u", "v", "i"),  # nothing says that it is a field
        ("def f(u, v: Field, i): return u[i]", "u v", "", "i"),
        ("def f(u: 'Field', v: 'np.ndarray', i): return v[i]", "u v", "", "i"),
        ("def f(u, dt: float, i: Index, j: Index): return u[i, j] * dt", "u", "dt", "i j"),
        ("def f(u, a, b, i, j): return u[i, j] * a * b", "u", "a b", "i j"),
        ("def f(u, i, j): return u[j, i] if False else u[i, j]", "u", "", "i j"),
        ("def g(w, p): return w[p + 1]\ndef f(u, i): return g(u, i)", "u", "", "i"),
        ("def g(w, p, n): return w[p + n]\ndef f(u, a, i): return g(u, n=2, p=i) + a", "u", "a", "i"),
        ("def f(u, i):\n    im, w = i - 1, u\n    return w[im]", "u", "", "i"),
        ("def f(u, a, i): return W[N] * u[i + W[0]] * a", "u", "a", "i"),
        ("def g(t, n):\n    return t[n]\ndef f(u, a, i): return g(W, N) * g(u, i) * a", "u", "a", "i"),
    ],
)
def test_which_parameters_are_what(text: str, fields: str, scalars: str, indices: str) -> None:
    f = read(text, Field=Field, Index=Index, np=np, W=(1, 2), N=1)
    assert (f.fields, f.scalars, f.indices) == tuple(tuple(t.split()) for t in (fields, scalars, indices))


def test_annotated_dtype() -> None:
    f = read("def f(u: Field['float32'], dt: 'np.float32', i): return u[i] * dt", Field=Field)
    assert f.dtype == "float32"
    assert "f32" in str(f.module("float32"))


def test_define_keeps_the_text() -> None:
    assert define("def f(): return 1")() == 1
