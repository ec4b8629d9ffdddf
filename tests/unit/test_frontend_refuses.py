"""What the frontend refuses, with the place and what to write instead."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

import math
import types

import numpy as np
import pytest
from frontend_cases import define, read

from stencil_dsl import FrontendError
from stencil_dsl.frontend import Field, Index, Scalar
from stencil_dsl.frontend.stencil import Stencil


def never_decorated(fn):
    return fn


def forever(x):
    return forever(x)


def ping(x):
    return pong(x)


def pong(x):
    return ping(x) + 1


def silent(x):
    y = x  # noqa: F841


def starred(*xs):
    return xs[0]


@never_decorated
def decorated(x):
    return x


def with_bad_offset(w, p):
    return w[p + 0.5]


NAMES = {
    "math": math, "np": np, "types": types, "Field": Field, "Index": Index, "Scalar": Scalar,
    "W": (0.1, 0.2), "N": 3, "W_INT": [1, 2], "HALF32": np.float32(0.1), "TEXT": "abc", "BIG": np.zeros((100, 100)),
    "HUGE": 10**400, "decorated": decorated, "forever": forever, "ping": ping, "silent": silent,
    "starred": starred, "with_bad_offset": with_bad_offset, "other": Stencil(define("def f(u, i): return u[i]")),
    "lam": lambda x: x, "INF": math.inf,
}  # fmt: skip

# (function, text under the caret, message, advice); the function is `def f(u, v, dt, i, j)` with this body.
BODIES = [
    # places
    ("return u[i + 0.5, j]", "0.5", "offset 0.5 from 'i' is a float", "integer constant"),
    ("return u[i + N / 3, j]", "N / 3", "offset 1.0 from 'i' is a float", "divide integers with //"),
    ("return u[i + dt, j]", "dt", "offset from 'i' is not a constant", "u[i + 1]"),
    ("return u[i, j] + v[i + u[i, j], j]", "u[i, j]", "offset from 'i' is not a constant", "u[i + 1]"),
    ("return u[j, i]", "j", "index 'j' stands at the place of 'i': transposed or repeated", "in the order i, j"),
    ("return u[i, i]", "i", "index 'i' stands at the place of 'j': transposed or repeated", "in the order i, j"),
    ("return u[i] + u[i, j]", "u[i]", "read as u[i] here and as u[i, j] at", "same indices everywhere"),
    ("return u[i, j, 0]", "0", "the place 0 is absolute", "u[i + 1]"),
    ("return u[0, j] + u[i, j]", "0", "the place 0 is absolute", "u[i + 1]"),
    ("return u[i, j, j]", "u[i, j, j]", "read with 3 indices in a stencil over i, j", "write u[i, j]"),
    ("return u[i][j] + u[i, j]", "u[i]", "read as u[i] here", "same indices"),
    ("return u[i:i + 2, j]", "i:i + 2", "a slice is not part", "u[i + 1]"),
    ("return u[2 * i, j]", "2 * i", "index 'i' is used as a value", "u[i + 1]"),
    ("return u[1 - i, j]", "1 - i", "index 'i' is used as a value", "u[i + 1]"),
    ("return u[i + j, j]", "i + j", "index 'i' is used as a value", "u[i + 1]"),
    ("return u[i + (dt > 0), j]", "dt > 0", "a comparison is used as an offset", "u[i + 1]"),
    ("return u[i + True, j]", "True", "a comparison is used as an offset", "u[i + 1]"),
    ("return u[i + 2**40, j]", "2**40", "overflows", "u[i + 1]"),
    ("return u[i, j] + u", "u", "field 'u' is read without indices", "index it, as in u[...]"),
    ("return u[i, j] * i", "u[i, j] * i", "index 'i' is used as a value", "store coordinates in a field"),
    ("return u[i, j] if i > 0 else 0", "i", "index 'i' is used as a value", "store coordinates"),
    ("return u[i, j] if i else 0", "i", "index 'i' is used as a value", "store coordinates"),
    ("return u[i, j] + i", "u[i, j] + i", "index 'i' is used as a value", "store coordinates in a field"),
    ("return u[i, j] * W", "W", "a sequence is used as a number", ""),
    ("return u[i, j] * W[2]", "2", "index 2 is outside a sequence of 2", "0 to 1"),
    ("return u[i, j] * W[dt]", "dt", "a sequence needs an integer constant", ""),
    ("a = u[i, j]\nreturn a[i, j]", "a[i, j]", "a number is indexed", "only fields"),
    # numbers and conditions
    ("return (u[i, j] > 0) * 2", "u[i, j] > 0", "a comparison is used as a number", "where(condition, a, b)"),
    ("return u[i, j] > 0", "return u[i, j] > 0", "a comparison is used as a number", "where(condition, a, b)"),
    ("return u[i, j] + True", "True", "a comparison is used as a number", "where(condition, a, b)"),
    ("return -(u[i, j] > 0)", "u[i, j] > 0", "a comparison is used as a number", "where(condition, a, b)"),
    ("return (u[i, j] > 0) < 1", "u[i, j] > 0", "a comparison is used as a number", "where(condition, a, b)"),
    ("return float(u[i, j] > 0)", "u[i, j] > 0", "a comparison is used as a number", "where(condition, a, b)"),
    ("return 1 if u[i, j] else 2", "u[i, j]", "a number is used as a condition", "a != 0"),
    ("return u[i, j] and 2", "u[i, j]", "a number is used as a condition", "a != 0"),
    ("return 2 if not N else u[i, j]", "N", "a number is used as a condition", "a != 0"),
    ("return np.where(u[i, j], 1, 2)", "u[i, j]", "a number is used as a condition", "a != 0"),
    ("return u[i, j] / 0", "u[i, j] / 0", "division by the constant zero", ""),
    ("return u[i, j] * (1 / (N - 3))", "1 / (N - 3)", "division by the constant zero", ""),
    ("return u[i, j] * (3 // 0)", "3 // 0", "division by the constant zero", ""),
    ("return u[i, j] * 0.0 ** -1", "0.0 ** -1", "division by the constant zero", ""),
    ("return u[i, j] + HUGE", "HUGE", "overflows float64", "1.8e308"),
    ("return u[i, j] * 10**400", "10**400", "overflows float64", "1.8e308"),
    ("return u[i, j] * 9**9**9", "9**9**9", "overflows float64", "1.8e308"),
    ("return u[i, j] * 10.0**400", "10.0**400", "overflows float64", "1.8e308"),
    ("return u[i, j] + INF", "INF", "inf is not finite", "finite number"),
    ("return u[i, j] + 1e308 * 10", "1e308 * 10", "inf is not finite", "finite number"),
    ("return u[i, j] + math.sqrt(-1)", "math.sqrt(-1)", "has no value", ""),
    ("return u[i, j] + (-8) ** 0.5", "(-8) ** 0.5", "is a complex", "real numbers"),
    ("return u[i, j] + 1j", "1j", "complex numbers are not part", "real numbers"),
    ("return u[i, j] + 'a'", "'a'", "str values are not part", "real numbers"),
    ("return u[i, j] // 2", "u[i, j] // 2", "operator // on run-time values", "floor(a / b)"),
    ("return u[i, j] % 2", "u[i, j] % 2", "operator % on run-time values", "floor(a / b)"),
    ("return u[i, j] @ v[i, j]", "u[i, j] @ v[i, j]", "operator @ is not part", "+ - * / **"),
    ("return u[i, j] * (1 << 2)", "1 << 2", "operator << is not part", "+ - * / **"),
    ("return ~u[i, j]", "~u[i, j]", "operator ~ is not part", ""),
    ("return u[i, j] if dt in W else 0", "dt in W", "`in` and `is` are not part", ""),
    ("return u[i, j] * HALF32", "HALF32", "mixed dtypes without a cast", "float(HALF32)"),
    ("return np.float32(u[i, j])", "np.float32(u[i, j])", "one dtype", "when the stencil is compiled"),
    # names
    ("return u[i, j] + nope", "nope", "unknown name 'nope'", "define it above"),
    ("a = a + u[i, j]\nreturn a", "a", "variable 'a' has no value here", "on every way"),
    ("N = N + 1\nreturn u[i, j] * N", "N", "variable 'N' has no value here", "on every way"),
    ("if N > 5:\n    a = 1\nreturn u[i, j] * a", "a", "variable 'a' has no value here", "on every way"),
    ("a = sum(u[i + k, j] for k in W_INT)\nreturn a + k", "k", "unknown name 'k'", "define it above"),
    ("return nope(u[i, j])", "nope", "unknown function 'nope'", "sqrt"),
    ("return u.mean()", "u.mean", "attribute access 'u.mean'", "math and numpy"),
    ("return u[i, j] + types.X", "types", "is a module", ""),
    ("return u[i, j] + np.nope", "np.nope", "module numpy has no 'nope'", ""),
    ("return np.mean(u[i, j])", "np.mean", "is not a plain Python function", "written in Python"),
    ("return np.add(u[i, j], 1)", "np.add", "not a plain Python function but a ufunc", "written in Python"),
    ("return print(u[i, j])", "print", "not a plain Python function", "written in Python"),
    ("return other(u, i)", "other", "not a plain Python function but a Stencil", "without decorators"),
    ("return dt(u[i, j])", "dt", "a number is called", "call a function"),
    ("return u[i, j] + TEXT", "TEXT", "'TEXT' is a str", "use numbers"),
    ("return u[i, j] + BIG[0, 0]", "BIG", "cannot be a constant", "pass it as a field"),
    # calls
    ("return np.sqrt(u[i, j], v[i, j])", "np.sqrt(u[i, j], v[i, j])", "takes 1 argument, got 2", "(a)"),
    ("return max(u[i, j])", "max(u[i, j])", "needs two or more", "max(a, b)"),
    ("return np.minimum(1, 2, u[i, j])", "np.minimum(1, 2, u[i, j])", "takes 2 arguments, got 3", ""),
    ("return np.where(dt > 0, 1)", "np.where(dt > 0, 1)", "takes 3 arguments, got 2", ""),
    ("return max(u[i, j], default=1)", "1", "keyword argument of 'max'", "by position"),
    ("return sum(u[i, j], 1)", "u[i, j]", "is not a sequence", "range(...)"),
    ("return sum()", "sum()", "takes one sequence", ""),
    ("return forever(u[i, j])", "forever(x)", "calls itself: recursion", "range"),
    ("return ping(u[i, j])", "ping(x)", "'ping' calls itself: recursion", "range"),
    ("return silent(u[i, j])", "def silent", "'silent' returns no value", "return"),
    ("return starred(u[i, j])", "starred(u[i, j])", "takes *xs", "one parameter"),
    ("return decorated(u[i, j])", "decorated(u[i, j])", "has decorators", "without decorators"),
    ("return lam(u[i, j])", "lam(u[i, j])", "cannot inline", "`def`"),
    ("return silent(u[i, j], 2)", "silent(u[i, j], 2)", "too many positional arguments", "silent(x)"),
    ("return silent(*W)", "silent(*W)", "unpacked arguments", "one by one"),
    ("return with_bad_offset(u, i)", "0.5", "called at", "integer constant"),
    # loops
    ("return sum(u[i + k, j] for k in range(dt))", "dt", "a bound of range is a run-time value", "range(1, 5)"),
    ("return sum(u[i + k, j] for k in range(2.0))", "2.0", "a bound of range is the float 2.0", "range(1, 5)"),
    ("return sum(u[i + k, j] for k in u)", "u", "field 'u' is not a sequence", "range(...)"),
    ("return sum(u[i + k, j] for k in range(3) if dt > 0)", "dt > 0", "known at run time only", "where"),
    ("return sum(u[i, j] for k in range(10**6))", "range(10**6)", "1000000 turns", "10000"),
    ("return sum(u[i, j] for b in range(5000) for a in range(8))", "range(8)", "more than 10000 turns", "unroll less"),
    ("return u[i, j]" + " ** 1.5" * 600, "def f", "nested too deeply", "variables"),
    ("return (u[i + k, j] for k in W)", "(u[i + k, j] for k in W)", "a generator outside", ""),
    ("while dt > 0:\n    pass", "while dt > 0:", "a while loop is not part", "range"),
    ("for k in range(2):\n    return u[i, j]", "for k in range(2):", "return inside a loop", ""),
    ("for k in range(2):\n    break\nreturn u[i, j]", "break", "break is not part", ""),
    ("for k in range(2):\n    a = u[i, j]\nelse:\n    a = 1\nreturn a", "a = 1", "a loop with else", ""),
    # statements
    ("if dt > 0:\n    a = u[i, j]\nreturn a", "dt > 0", "`if` without `else`", "same variables"),
    ("a = 1\nif dt > 0:\n    a = u[i, j]\nreturn a", "dt > 0", "`if` without `else`", "same variables"),
    ("if dt > 0:\n    a = u[i, j]\nelse:\n    b = 1\nreturn a", "dt > 0", "only one branch of this `if` assigns 'a', 'b'", "same"),
    ("if dt > 0:\n    return u[i, j]\nelse:\n    b = 1\nreturn b", "dt > 0", "only one branch of this `if` returns", "same"),
    ("if dt > 0:\n    w = u\nelse:\n    w = v\nreturn w[i, j]", "dt > 0", "field 'u' is chosen at run time", ""),
    ("if u[i, j]:\n    a = 1\nelse:\n    a = 2\nreturn a", "u[i, j]", "a number is used as a condition", "a != 0"),
    ("u[i, j] = 1\nreturn u[i, j]", "u[i, j]", "cannot write to a field", "return the new value"),
    ("u[i, j] += 1\nreturn u[i, j]", "u[i, j]", "cannot write to a field", "return the new value"),
    ("u = u[i, j]\nreturn u", "u", "field 'u' is assigned to", "a name of its own"),
    ("i = i + 1\nreturn u[i, j]", "i", "index 'i' is assigned to", "a name of its own"),
    ("a += u[i, j]\nreturn a", "a", "unknown variable 'a'", "assign it before"),
    ("a, b = u[i, j]\nreturn a", "a, b", "a number cannot be unpacked", ""),
    ("a, b = 1, 2, u[i, j]\nreturn a", "a, b", "3 values cannot be unpacked into 2", ""),
    ("a, *b = 1, 2, u[i, j]\nreturn a", "a, *b", "a starred target", ""),
    ("u.x = 1\nreturn u[i, j]", "u.x", "cannot be assigned to", ""),
    ("u[i, j]", "u[i, j]", "value of this expression is dropped", "assign it"),
    ("return u[i, j]\na = 1", "a = 1", "never reached", "last"),
    ("return", "return", "return without a value", "one value per output"),
    ("return None", "return None", "return without a value", "one value per output"),
    ("a = u[i, j]", "def f", "'f' returns no value", "`return`"),
    ("return u[i, j], u", "return u[i, j], u", "field 'u' is read without indices", ""),
    ("return ()", "def f", "returns no value", ""),
    ("import math\nreturn u[i, j]", "import math", "an import is not part", "top of the module"),
    ("def g(x):\n    return x\nreturn u[i, j]", "def g(x):", "a function defined inside", "outside"),
    ("g = lambda x: x\nreturn u[i, j]", "lambda x: x", "a lambda is not part", ""),
    ("return (a := u[i, j])", "a := u[i, j]", "an assignment inside", ""),
    ("return u[i, j] * {1: 2}[1]", "{1: 2}", "a dictionary is not part", ""),
    ("assert dt > 0\nreturn u[i, j]", "assert dt > 0", "assert is not part", ""),
    ("try:\n    return u[i, j]\nfinally:\n    pass", "try:", "try is not part", ""),
]  # fmt: skip


def refused(text: str, **names: object) -> FrontendError:
    with pytest.raises(FrontendError) as caught:
        read(text, **names)
    return caught.value


def under_caret(error: FrontendError) -> str:
    """The source text that the carets of the printed error point at."""
    lines = str(error).splitlines()
    position = next(n for n, line in enumerate(lines) if line.strip() and not line.strip(" ^"))
    start = lines[position].index("^")
    return lines[position - 1][start : lines[position].rindex("^") + 1]


@pytest.mark.parametrize(
    ("body", "caret", "message", "advice"), BODIES, ids=[b[0].replace("\n", "; ")[:60] for b in BODIES]
)
def test_refused_with_place_and_advice(body: str, caret: str, message: str, advice: str) -> None:
    # Every body also reads both fields, so that the parameters are what the table says.
    lines = ["keep = u[i, j] + v[i, j]", *body.split("\n")]
    error = refused("def f(u, v, dt, i, j):\n" + "\n".join("    " + line for line in lines), **NAMES)
    assert message in error.message
    assert error.advice and advice in error.advice
    assert under_caret(error) == caret
    if "called at" not in error.message and caret not in ("forever(x)", "ping(x)", "def silent"):
        assert error.source_line is not None and error.filename.startswith("<case ")
        assert 1 <= error.line <= 1 + len(lines)
        assert str(error).startswith(f"{error.filename}:{error.line}:{error.col + 1}: ")


@pytest.mark.parametrize(
    ("text", "caret", "message", "advice"),
    [
        ("def f(u): return u", "def f", "'f' has no indices", "name the indices last"),
        ("def f(u, i, j, k, l): return u[i, j, k, l]", "def f", "has 4 indices (i, j, k, l)", "one to three"),
        ("def f(u, i, v): return u[i] + v[i]", "v", "'v' is subscripted but stands among the indices", "fields, then"),
        ("def f(dt, u, i): return u[i] * dt", "dt", "field 'dt' is read without indices", "behind all fields"),
        ("def f(dt: float, u, i): return u[i] * dt", "u", "field 'u' stands behind scalar 'dt'", "fields, then"),
        ("def f(u, i, j): return u[i]", "u[i]", "read with 1 index in a stencil over i, j", "u[i, j]"),
        ("def f(u, p: Staggered[1], i, j): return u[i, j] + p[i]", "p[i]", "between the points along 'j', which", "p[i, j]"),
        ("def f(u, p, i, j, k): return u[i, j, k] + p[k, i]", "i", "'i' stands out of order: transposed", "order i, j, k"),
        ("def f(u, i, dt): return u[i] * dt", "u[i] * dt", "index 'dt' is used as a value", "only name places"),
        ("def f(u, i: Index, dt: Scalar): return u[i] * dt", "dt: Scalar", "scalar 'dt' stands behind index 'i'", ""),
        ("def f(u, *rest): return u[rest]", "rest", "'rest' is not a plain positional", ""),
        ("def f(u, *, i): return u[i]", "i", "'i' is not a plain positional", ""),
        ("def f(u, i=0): return u[i]", "0", "no default value", "module constant"),
        ("def f(u: Field['float32'], v: Field['float64'], i): return u[i] + v[i]", "v: Field['float64']",
         "mixed dtypes without a cast: 'u' is float32, 'v' is float64", "one dtype"),
    ],
)  # fmt: skip
def test_refused_signatures(text: str, caret: str, message: str, advice: str) -> None:
    error = refused(text, **NAMES)
    assert message in error.message
    assert error.advice and advice in error.advice
    assert under_caret(error) == caret


def test_dtype_of_module() -> None:
    f = read("def f(u: Field['float32'], i): return u[i] + 1e30", **NAMES)
    with pytest.raises(FrontendError, match="annotated float32, asked for float64"):
        f.module("float64")
    with pytest.raises(FrontendError, match="unknown dtype 'float16'"):
        f.module("float16")


def test_constants_that_float32_cannot_hold() -> None:
    f = read("def f(u, i): return u[i] + 1e39")
    assert "1.000000e+39" in str(f.module("float64"))
    with pytest.raises(FrontendError, match="1e\\+39 overflows float32") as caught:
        f.module("float32")
    assert under_caret(caught.value) == "1e39"


def test_the_largest_float32_is_accepted() -> None:
    largest = float(np.finfo(np.float32).max)
    assert "f32" in str(read("def f(u, i): return u[i] + C", C=largest).module("float32"))


def test_error_in_an_inlined_function_names_both_places() -> None:
    error = refused("def f(u, i):\n    return with_bad_offset(u, i)", **NAMES)
    assert error.filename == __file__
    assert "in 'with_bad_offset', called at <case" in error.message and ":2:12)" in error.message


def test_caret_counts_characters_not_bytes() -> None:
    error = refused("def f(ü, i): return ü[i] * nöpe")
    assert under_caret(error) == "nöpe"


def test_multi_line_expressions_mark_their_first_line() -> None:
    error = refused("def f(u, i):\n    return (u[i] // (\n        2))")
    assert (error.line, under_caret(error)) == (2, "u[i] // (")
