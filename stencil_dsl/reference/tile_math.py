"""Elementwise functions and reductions of ``cuda.tile``, on NumPy.

Values are NumPy's, so that a kernel which keeps the source's order of operations agrees bit for bit
with the NumPy reference. `minimum` and `maximum` without ``propagate_nan=True`` return the other
operand where one is NaN, as a device does.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_dtypes import InterpreterError, bool_, float32, int32
from stencil_dsl.reference.tile_values import (
    Tile,
    arithmetic,
    as_tile,
    bitwise,
    cast,
    common,
    compare,
    power,
)


def _plain_float_mode(rounding_mode: Any, flush_to_zero: bool) -> None:
    if flush_to_zero or (rounding_mode is not None and rounding_mode.name not in ("RN", "FULL")):
        raise InterpreterError("only rounding to nearest even without flush to zero is interpreted")


# ---- element by element ----


def _binary(fn: Callable[[Any, Any], Any], x: Any, y: Any, python: Any, **kw: Any) -> Any:
    if type(x) is not Tile and type(y) is not Tile:
        return python(x, y)
    return arithmetic(fn, x, y, **kw)


def add(x: Any, y: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _binary(operator.add, x, y, operator.add)


def sub(x: Any, y: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _binary(operator.sub, x, y, operator.sub)


def mul(x: Any, y: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _binary(operator.mul, x, y, operator.mul)


def truediv(x: Any, y: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _binary(operator.truediv, x, y, operator.truediv, force_float=True)


def floordiv(x: Any, y: Any, /) -> Any:
    return _binary(np.floor_divide, x, y, operator.floordiv)


def mod(x: Any, y: Any, /) -> Any:
    return _binary(np.mod, x, y, operator.mod)


def pow(x: Any, y: Any, /) -> Any:
    if type(x) is not Tile and type(y) is not Tile:
        return operator.pow(x, y)
    return power(x, y)


def cdiv(x: Any, y: Any, /) -> Any:
    return -((-x) // y)


def _device_min_max(propagating: Any, a: Any, b: Any) -> Any:
    result = propagating(a, b)
    if np.isnan(result).any():
        result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    return result


def _min_max(fn: Any, x: Any, y: Any, propagate_nan: bool) -> Tile:
    if propagate_nan:
        return arithmetic(fn, x, y)
    return arithmetic(lambda a, b: _device_min_max(fn, a, b), x, y)


def minimum(x: Any, y: Any, /, *, flush_to_zero: bool = False, propagate_nan: bool = False) -> Any:
    _plain_float_mode(None, flush_to_zero)
    if type(x) is not Tile and type(y) is not Tile:
        return builtins.min(x, y)
    return _min_max(np.minimum, x, y, propagate_nan)


def maximum(x: Any, y: Any, /, *, flush_to_zero: bool = False, propagate_nan: bool = False) -> Any:
    _plain_float_mode(None, flush_to_zero)
    if type(x) is not Tile and type(y) is not Tile:
        return builtins.max(x, y)
    return _min_max(np.maximum, x, y, propagate_nan)


def _one_tile(x: Any, y: Any) -> tuple[Any, Any]:
    """The operands, of which at least one is a tile; the other stays loosely typed."""
    return (x, y) if type(x) is Tile or type(y) is Tile else (as_tile(x), y)


def bitwise_and(x: Any, y: Any, /) -> Any:
    return bitwise(np.bitwise_and, *_one_tile(x, y))


def bitwise_or(x: Any, y: Any, /) -> Any:
    return bitwise(np.bitwise_or, *_one_tile(x, y))


def bitwise_xor(x: Any, y: Any, /) -> Any:
    return bitwise(np.bitwise_xor, *_one_tile(x, y))


def bitwise_not(x: Any, /) -> Any:
    return ~as_tile(x)


def greater(x: Any, y: Any, /) -> Any:
    return compare(operator.gt, *_one_tile(x, y))


def greater_equal(x: Any, y: Any, /) -> Any:
    return compare(operator.ge, *_one_tile(x, y))


def less(x: Any, y: Any, /) -> Any:
    return compare(operator.lt, *_one_tile(x, y))


def less_equal(x: Any, y: Any, /) -> Any:
    return compare(operator.le, *_one_tile(x, y))


def equal(x: Any, y: Any, /) -> Any:
    return compare(operator.eq, *_one_tile(x, y))


def not_equal(x: Any, y: Any, /) -> Any:
    return compare(operator.ne, *_one_tile(x, y))


def where(cond: Any, x: Any, y: Any, /) -> Tile:
    c = cast(as_tile(cond), bool_).a
    a, b, dtype = common(*_one_tile(x, y))
    return Tile(np.where(c, a, b), dtype)


def _float_function(fn: Any, python: Any, x: Any) -> Any:
    if type(x) is not Tile:
        return python(x)
    t = x if x.dtype.kind == "float" else cast(x, float32)
    return Tile(fn(t.a), t.dtype)


def exp(x: Any, /, *, rounding_mode: Any = None) -> Any:
    _plain_float_mode(rounding_mode, False)
    return _float_function(np.exp, math.exp, x)


def exp2(x: Any, /, *, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(None, flush_to_zero)
    return _float_function(np.exp2, math.exp2, x)


def log(x: Any, /) -> Any:
    return _float_function(np.log, math.log, x)


def log2(x: Any, /) -> Any:
    return _float_function(np.log2, math.log2, x)


def sqrt(x: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _float_function(np.sqrt, math.sqrt, x)


def rsqrt(x: Any, /, *, flush_to_zero: bool = False) -> Any:
    _plain_float_mode(None, flush_to_zero)
    return _float_function(lambda a: a.dtype.type(1) / np.sqrt(a), lambda v: v**-0.5, x)


def sin(x: Any, /) -> Any:
    return _float_function(np.sin, math.sin, x)


def cos(x: Any, /) -> Any:
    return _float_function(np.cos, math.cos, x)


def tan(x: Any, /) -> Any:
    return _float_function(np.tan, math.tan, x)


def sinh(x: Any, /) -> Any:
    return _float_function(np.sinh, math.sinh, x)


def cosh(x: Any, /) -> Any:
    return _float_function(np.cosh, math.cosh, x)


def tanh(x: Any, /, *, rounding_mode: Any = None) -> Any:
    _plain_float_mode(rounding_mode, False)
    return _float_function(np.tanh, math.tanh, x)


def _strict_float(fn: Any, python: Any, name: str, x: Any) -> Any:
    if type(x) is Tile and x.dtype.kind != "float":
        raise InterpreterError(f"ct.{name} takes float tiles only, not {x!r}")
    return _float_function(fn, python, x)


def floor(x: Any, /) -> Any:
    return _strict_float(np.floor, math.floor, "floor", x)


def ceil(x: Any, /) -> Any:
    return _strict_float(np.ceil, math.ceil, "ceil", x)


def isnan(x: Any, /) -> Any:
    return Tile(np.isnan(as_tile(x).a), bool_)


def abs(x: Any, /) -> Any:
    return builtins.abs(x)


def negative(x: Any, /) -> Any:
    return -x


# ---- reductions ----


def _reduce(fn: Any, x: Any, axis: Any, keepdims: bool) -> Tile:
    t = cast(x, int32) if x.dtype.kind == "bool" else x
    return Tile(fn(t.a, axis=axis, keepdims=keepdims).astype(t.dtype.np), t.dtype)


def sum(
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    rounding_mode: Any = None,
    flush_to_zero: bool = False,
) -> Tile:
    _plain_float_mode(rounding_mode, flush_to_zero)
    return _reduce(np.sum, x, axis, keepdims)


def max(
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    flush_to_zero: bool = False,
    propagate_nan: bool = False,
) -> Tile:
    _plain_float_mode(None, flush_to_zero)
    return _reduce(np.max if propagate_nan else np.fmax.reduce, x, axis, keepdims)


def min(
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    flush_to_zero: bool = False,
    propagate_nan: bool = False,
) -> Tile:
    _plain_float_mode(None, flush_to_zero)
    return _reduce(np.min if propagate_nan else np.fmin.reduce, x, axis, keepdims)
