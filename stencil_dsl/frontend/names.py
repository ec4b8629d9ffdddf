"""What a name outside the function's own variables stands for, and which functions are known.

Order of Python: variables of the enclosing functions, globals of the module, builtins. Only where
Python would find nothing, the plain spellings `sqrt`, `where`, ... mean the compiler's functions.
"""

from __future__ import annotations

import builtins
import math
import sys
import types
from functools import lru_cache
from typing import Any

from stencil_dsl.frontend.source_text import Span
from stencil_dsl.frontend.values import Half, Intrinsic

UNARY = ("abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor")
FUNCTIONS = (*UNARY, "min", "max", "where")
_BUILTINS = (
    "abs", "min", "max", "pow", "sum", "range", "len", "int", "float", "enumerate", "zip", "tuple", "list",
)  # fmt: skip
_MATH = {name: name for name in (*UNARY[1:], "pow")} | {"fabs": "abs"}
_NUMPY = {name: name for name in (*UNARY, "where")} | {
    "fabs": "abs",
    "absolute": "abs",
    "minimum": "minimum",
    "maximum": "maximum",
    "power": "pow",
    "float64": "float",
    "float32": "float32",
}
_MISSING = object()


@lru_cache(maxsize=2)
def _known(with_numpy: bool) -> dict[int, Intrinsic]:
    """Known function objects by identity; NumPy's only once the user imported NumPy."""
    table: dict[int, Intrinsic] = {}
    for name in _BUILTINS:
        fn = getattr(builtins, name)
        table[id(fn)] = Intrinsic(name, name, fn)
    for attr, name in _MATH.items():
        table[id(getattr(math, attr))] = Intrinsic(name, f"math.{attr}", getattr(math, attr))
    if with_numpy:
        numpy = sys.modules["numpy"]
        for attr, name in _NUMPY.items():
            table[id(getattr(numpy, attr))] = Intrinsic(name, f"numpy.{attr}", getattr(numpy, attr))
    return table


def lookup(fn: types.FunctionType, name: str) -> tuple[bool, Any]:
    """What `name` stands for inside `fn`, beyond its own variables: (found, object)."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))
    if name in cells:
        try:
            return True, cells[name].cell_contents
        except ValueError:  # the enclosing function has not assigned it yet
            return False, None
    if name in fn.__globals__:
        return True, fn.__globals__[name]
    value = getattr(builtins, name, _MISSING)
    if value is not _MISSING:
        return True, value
    if name in FUNCTIONS:
        return True, Intrinsic(name, name, getattr(math, name, None))
    return False, None


def is_math_module(value: object) -> bool:
    """Whether the object is one of the modules whose functions and constants are known."""
    return isinstance(value, types.ModuleType) and value.__name__ in ("math", "numpy")


def convert(value: Any, span: Span, spelling: str) -> Any:
    """A Python object as a value of the reader.

    Numbers and (nested) sequences of numbers are taken over as they are now: a later change of the
    variable is not seen. Raises FrontendError for objects that mean nothing in a stencil.
    """
    if isinstance(value, bool | Half | Intrinsic | types.FunctionType) or is_math_module(value):
        return value
    if isinstance(value, int | float):
        # Subclasses such as numpy.float64 or IntEnum would bring their own arithmetic.
        return int(value) if isinstance(value, int) else float(value)
    known = _known("numpy" in sys.modules).get(id(value))
    if known is not None:
        return known
    if isinstance(value, tuple | list):
        return tuple(convert(item, span, spelling) for item in value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _from_numpy(value, span, spelling)
    if callable(value):
        raise span.error(
            f"'{spelling}' is not a plain Python function but a {type(value).__name__}",
            "call a function without decorators, written in Python; known functions are " + ", ".join(FUNCTIONS),
        )
    raise span.error(
        f"'{spelling}' is a {type(value).__name__}, which means nothing in a stencil",
        "use numbers, tuples or lists of numbers, and functions written in Python",
    )


def _from_numpy(value: Any, span: Span, spelling: str) -> Any:
    kind, size = value.dtype.kind, value.dtype.itemsize
    if kind == "f" and size != 8:
        raise span.error(
            f"'{spelling}' has dtype {value.dtype}: mixed dtypes without a cast",
            f"write float({spelling}); constants are float64 and rounded once to the stencil's dtype",
        )
    if kind not in "fiub" or getattr(value, "size", 1) > 4096:
        raise span.error(
            f"'{spelling}' is an array of {value.dtype}, which cannot be a constant of a stencil",
            "use a real number or a small array of real numbers, or pass it as a field",
        )
    return _tuples(value.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
