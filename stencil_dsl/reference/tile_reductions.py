"""Functions of cuda.tile that combine many elements: places of extrema, reductions by a function, products.

Each public function has the name and arguments of its counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_dtypes import InterpreterError, float32, int32
from stencil_dsl.reference.tile_values import Tile


def _place(fn: Callable[..., Any], x: Tile, axis: Any, keepdims: bool, lowest: float, propagate_nan: bool) -> Tile:
    values = x.a
    if x.dtype.kind == "float" and not propagate_nan:
        values = np.where(np.isnan(values), values.dtype.type(lowest), values)
    # NumPy's own argmax takes the first NaN as the extremum, which is what propagating means.
    found = fn(values, axis=axis)
    if keepdims:
        found = np.expand_dims(found, tuple(range(values.ndim)) if axis is None else axis)
    return Tile(np.asarray(found, np.int32), int32)


def argmax(x: Any, /, axis: Any = None, *, keepdims: bool = False, propagate_nan: bool = False) -> Tile:
    return _place(np.argmax, x, axis, keepdims, -np.inf, propagate_nan)


def argmin(x: Any, /, axis: Any = None, *, keepdims: bool = False, propagate_nan: bool = False) -> Tile:
    return _place(np.argmin, x, axis, keepdims, np.inf, propagate_nan)


def reduce(x: Any, /, axis: Any, func: Callable[..., Any], identity: Any, *, keepdims: bool = False) -> Any:
    """Folds from the first element on; a device combines in an order of its own."""
    tiles = x if isinstance(x, tuple) else (x,)
    arrays = np.broadcast_arrays(*(t.a for t in tiles))
    extent = arrays[0].shape[axis]

    def slices(n: int) -> list[Tile]:
        return [Tile(np.take(a, n, axis=axis), t.dtype) for a, t in zip(arrays, tiles, strict=True)]

    total = slices(0)
    for n in range(1, extent):
        combined = func(*total, *slices(n))
        total = list(combined) if isinstance(x, tuple) else [combined]
    if keepdims:
        total = [Tile(np.expand_dims(t.a, axis), t.dtype) for t in total]
    return tuple(total) if isinstance(x, tuple) else total[0]


def mma(x: Any, y: Any, /, acc: Any, *, use_fast_acc: bool = False) -> Tile:
    """x y + acc, accumulated in float64 and rounded once to the accumulator's type."""
    if x.dtype is not y.dtype or x.dtype.kind != "float" or x.a.shape[-1] != y.a.shape[-2]:
        raise InterpreterError(f"ct.mma of {x!r} and {y!r}: equal float types and matching inner extents are needed")
    if acc.dtype.kind != "float" or (acc.dtype is not x.dtype and acc.dtype is not float32):
        raise InterpreterError(f"ct.mma of {x!r} accumulates in its own type or in float32, got {acc!r}")
    product = np.matmul(x.a.astype(np.float64), y.a.astype(np.float64))
    return Tile((product + acc.a).astype(acc.dtype.np), acc.dtype)
