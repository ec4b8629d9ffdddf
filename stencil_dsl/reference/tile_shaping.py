"""Functions of ``cuda.tile`` that make, reshape and retype tiles, and compile-time helpers.

Signatures follow the real module.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_dtypes import DType, InterpreterError, bool_
from stencil_dsl.reference.tile_values import Tile, arithmetic, as_constant, as_tile, cast, make_full

_SEEN_SHAPES: set[tuple[int, ...]] = set()  # found to be legal before; a kernel has few


def power_of_two_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints; extents must be positive powers of two."""
    if type(shape) is tuple and shape in _SEEN_SHAPES:
        return shape
    items = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for n in items:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1 or n & (n - 1):
            raise InterpreterError(f"extent {n!r} of tile shape {items} is no power of two")
    _SEEN_SHAPES.add(items)
    return items


def _check_dtype(dtype: Any) -> DType:
    if not isinstance(dtype, DType):
        raise InterpreterError(f"{dtype!r} is no cuda.tile data type; use ct.float64, ct.int32, ...")
    return dtype


# ---- making tiles ----


def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    return make_full(power_of_two_shape(shape), fill_value, _check_dtype(dtype))


def ones(shape: Any, dtype: Any) -> Tile:
    return full(shape, 1, dtype)


def zeros(shape: Any, dtype: Any) -> Tile:
    return full(shape, 0, dtype)


def arange(size: Any, /, *, dtype: Any, start: Any = 0, step: Any = 1) -> Tile:
    (n,) = power_of_two_shape(size)
    counter = Tile(np.arange(n).astype(_check_dtype(dtype).np), dtype)
    if start == 0 and step == 1:
        return counter
    return cast(arithmetic(operator.add, arithmetic(operator.mul, counter, step), start), dtype)


def astile(value: Any, /, *, dtype: Any) -> Tile:
    def convert(v: Any) -> Any:
        if isinstance(v, tuple):
            return [convert(x) for x in v]
        return cast(v, dtype).a if isinstance(v, Tile) else as_constant(v, _check_dtype(dtype))

    array = np.array(convert(value), dtype=_check_dtype(dtype).np)
    power_of_two_shape(array.shape)
    return Tile(array, dtype)


# ---- shapes ----


def expand_dims(x: Any, /, axis: Any) -> Tile:
    if isinstance(axis, int):
        return Tile(np.expand_dims(x.a, axis), x.dtype)
    return x[axis]


def cat(tiles: Any, /, axis: Any) -> Tile:
    if not isinstance(tiles, tuple) or len(tiles) != 2:
        raise InterpreterError("ct.cat takes a tuple of two tiles")
    a, b = tiles
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise InterpreterError(f"ct.cat needs two tiles of one shape and type, got {a!r} and {b!r}")
    return Tile(np.concatenate((a.a, b.a), axis), a.dtype)


def broadcast_to(x: Any, /, shape: Any) -> Tile:
    t = as_tile(x)
    return Tile(np.broadcast_to(t.a, power_of_two_shape(shape)), t.dtype)


def reshape(x: Any, /, shape: Any) -> Tile:
    t = as_tile(x)
    if not isinstance(shape, tuple):
        raise InterpreterError(f"ct.reshape takes a tuple of extents, got {shape!r}")
    return Tile(np.reshape(t.a, shape), t.dtype)


def permute(x: Any, /, axes: Any) -> Tile:
    return Tile(np.transpose(x.a, axes), x.dtype)


def transpose(x: Any, /, axis0: Any = None, axis1: Any = None) -> Tile:
    if (axis0 is None or axis1 is None) and (x.ndim != 2 or axis0 is not axis1):
        raise InterpreterError("ct.transpose needs both axes unless the tile has two dimensions")
    return Tile(np.swapaxes(x.a, *((0, 1) if axis0 is None else (axis0, axis1))), x.dtype)


def _subtile(x: Tile, index: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    items = tuple(index) if isinstance(index, tuple | list) else (index,)
    if not len(items) == len(shape) == x.ndim:
        raise InterpreterError(f"index {items} and shape {shape} must have the rank of {x!r}")
    places = []
    for i, n, whole in zip(items, shape, x.shape, strict=True):
        i = operator.index(i)
        if whole % n or not 0 <= i < whole // n:
            raise InterpreterError(f"part {items} of shape {shape} does not lie in {x!r}")
        places.append(slice(i * n, (i + 1) * n))
    return tuple(places)


def extract(x: Any, /, index: Any, shape: Any) -> Tile:
    wanted = power_of_two_shape(shape)
    part = x.a[_subtile(x, index, wanted or (1,) * x.ndim)]
    return Tile(part if wanted else part.reshape(()), x.dtype)


def insert(x: Any, /, index: Any, value: Any) -> Tile:
    if x.dtype is not value.dtype:
        raise InterpreterError(f"cannot insert {value!r} into {x!r}: types differ")
    shape = value.shape or (1,) * x.ndim
    result = np.array(x.a)
    result[_subtile(x, index, shape)] = value.a
    return Tile(result, x.dtype)


# ---- types ----


def astype(x: Any, dtype: Any, /, *, rounding_mode: Any = None) -> Tile:
    return as_tile(x).astype(_check_dtype(dtype), rounding_mode=rounding_mode)


def bitcast(x: Any, /, dtype: Any) -> Tile:
    t = as_tile(x)
    if bool_ in (t.dtype, _check_dtype(dtype)) or t.dtype.bitwidth != dtype.bitwidth:
        raise InterpreterError(f"cannot bitcast {t.dtype} to {dtype}: widths differ or one is boolean")
    array = np.asarray(t.a)
    # view() needs a contiguous last axis only where the width changes, which is excluded.
    return Tile(array.view(dtype.np), dtype)


# ---- compile-time helpers ----


def static_iter(iterable: Any) -> Any:
    return iterable


def static_eval(expr: Any, /) -> Any:
    return expr


def static_assert(condition: Any, message: Any = None, /) -> None:
    if not condition:
        raise InterpreterError(f"static assertion failed{'' if message is None else f': {message}'}")


def ensure_constant(value: Any, /) -> Any:
    return value


def assume_divisible_by(x: Any, divisor: int) -> Any:
    if operator.index(x) % divisor:
        raise InterpreterError(f"{operator.index(x)} is assumed to be divisible by {divisor} and is not")
    return x
