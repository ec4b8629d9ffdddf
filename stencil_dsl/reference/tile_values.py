"""Tiles: NumPy arrays with cuTile's typing rules.

Every operation is one NumPy operation in the tile's own type, rounded once: no contraction of a
multiplication and an addition, no wider intermediate. A Python float loses its double precision the
moment it meets a tile, as in cuTile (it becomes float32 first, also beside a float64 tile).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_dtypes import (
    FROM_NUMPY,
    DType,
    InterpreterError,
    bool_,
    dtype_of_python,
    float32,
    int32,
    promote,
    promote_with_python,
)


class Tile:
    """A block-local value: a NumPy array (power-of-two extents) and its cuTile type. Immutable."""

    __slots__ = ("a", "dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any, dtype: DType) -> None:
        self.a = array
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.a)

    @property
    def ndim(self) -> int:
        return np.ndim(self.a)

    def __repr__(self) -> str:
        return f"<tile[{self.dtype}, {self.shape}]>"

    def item(self) -> Tile:
        return Tile(np.reshape(self.a, ()), self.dtype)

    def __index__(self) -> int:
        if self.shape != () or self.dtype.kind not in ("int", "uint"):
            raise InterpreterError(f"{self!r} is no index; only a 0-d integer tile is")
        return int(self.a)

    def __bool__(self) -> bool:
        if self.shape != ():
            raise InterpreterError(f"{self!r} has no truth value; use ct.where for a choice per element")
        return bool(self.a)

    # Arithmetic; the common case (two tiles of one float type) takes the first branch.
    def __add__(self, o: Any) -> Tile:
        if type(o) is Tile and o.dtype is self.dtype and o.dtype.kind == "float":
            return Tile(self.a + o.a, self.dtype)
        return arithmetic(operator.add, self, o)

    def __sub__(self, o: Any) -> Tile:
        if type(o) is Tile and o.dtype is self.dtype and o.dtype.kind == "float":
            return Tile(self.a - o.a, self.dtype)
        return arithmetic(operator.sub, self, o)

    def __mul__(self, o: Any) -> Tile:
        if type(o) is Tile and o.dtype is self.dtype and o.dtype.kind == "float":
            return Tile(self.a * o.a, self.dtype)
        return arithmetic(operator.mul, self, o)

    def __truediv__(self, o: Any) -> Tile:
        return arithmetic(operator.truediv, self, o, force_float=True)

    def __floordiv__(self, o: Any) -> Tile:
        return arithmetic(np.floor_divide, self, o)

    def __mod__(self, o: Any) -> Tile:
        return arithmetic(np.mod, self, o)

    def __pow__(self, o: Any) -> Tile:
        return power(self, o)

    def __radd__(self, o: Any) -> Tile:
        return arithmetic(operator.add, o, self)

    def __rsub__(self, o: Any) -> Tile:
        return arithmetic(operator.sub, o, self)

    def __rmul__(self, o: Any) -> Tile:
        return arithmetic(operator.mul, o, self)

    def __rtruediv__(self, o: Any) -> Tile:
        return arithmetic(operator.truediv, o, self, force_float=True)

    def __rfloordiv__(self, o: Any) -> Tile:
        return arithmetic(np.floor_divide, o, self)

    def __rmod__(self, o: Any) -> Tile:
        return arithmetic(np.mod, o, self)

    def __rpow__(self, o: Any) -> Tile:
        return power(o, self)

    def __and__(self, o: Any) -> Tile:
        return bitwise(np.bitwise_and, self, o)

    def __or__(self, o: Any) -> Tile:
        return bitwise(np.bitwise_or, self, o)

    def __xor__(self, o: Any) -> Tile:
        return bitwise(np.bitwise_xor, self, o)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, o: Any) -> Tile:
        return bitwise(np.left_shift, self, o, shift=True)

    def __rshift__(self, o: Any) -> Tile:
        return bitwise(np.right_shift, self, o, shift=True)

    def __lt__(self, o: Any) -> Tile:
        return compare(operator.lt, self, o)

    def __le__(self, o: Any) -> Tile:
        return compare(operator.le, self, o)

    def __gt__(self, o: Any) -> Tile:
        return compare(operator.gt, self, o)

    def __ge__(self, o: Any) -> Tile:
        return compare(operator.ge, self, o)

    def __eq__(self, o: Any) -> Tile:  # type: ignore[override]
        return compare(operator.eq, self, o)

    def __ne__(self, o: Any) -> Tile:  # type: ignore[override]
        return compare(operator.ne, self, o)

    def __neg__(self) -> Tile:
        if self.dtype.kind == "bool":
            return Tile(-self.a.astype(np.int32), int32)
        return Tile(-self.a, self.dtype)

    def __pos__(self) -> Tile:
        return cast(self, int32) if self.dtype.kind == "bool" else self

    def __abs__(self) -> Tile:
        return Tile(np.abs(self.a), self.dtype)

    def __invert__(self) -> Tile:
        if self.dtype.kind == "float":
            raise InterpreterError(f"~ needs an integer or boolean tile, not {self!r}")
        return Tile(~self.a, self.dtype)

    def __getitem__(self, index: Any) -> Tile:
        items = index if isinstance(index, tuple) else (index,)
        if any(not (i is None or i is Ellipsis or i == slice(None)) for i in items):
            raise InterpreterError("a tile is indexed by None, ... and : only; use ct.extract for a part")
        return Tile(np.asarray(self.a)[index], self.dtype)

    def astype(self, dtype: DType, *, rounding_mode: Any = None) -> Tile:
        if rounding_mode is not None and rounding_mode.name != "RN":
            raise InterpreterError(f"rounding mode {rounding_mode.name} is not interpreted; use RN")
        return cast(self, dtype)

    def reshape(self, shape: Any) -> Tile:
        from stencil_dsl.reference import tile_shaping

        return tile_shaping.reshape(self, shape)

    def permute(self, axes: Any) -> Tile:
        from stencil_dsl.reference import tile_shaping

        return tile_shaping.permute(self, axes)

    def transpose(self, axis0: Any = None, axis1: Any = None) -> Tile:
        from stencil_dsl.reference import tile_shaping

        return tile_shaping.transpose(self, axis0, axis1)

    def extract(self, index: Any, shape: Any) -> Tile:
        from stencil_dsl.reference import tile_shaping

        return tile_shaping.extract(self, index, shape)

    def insert(self, index: Any, value: Any) -> Tile:
        from stencil_dsl.reference import tile_shaping

        return tile_shaping.insert(self, index, value)


def cast(x: Tile, dtype: DType) -> Tile:
    """Conversion of every element, rounding to nearest even."""
    if x.dtype is dtype:
        return x
    return Tile(np.asarray(x.a).astype(dtype.np), dtype)


def as_constant(value: Any, dtype: DType) -> Any:
    """A Python number as an element of `dtype`: floats by way of float32, integers wrapped."""
    if isinstance(value, float):
        narrow = np.float32(value)
        return dtype.np.type(narrow) if dtype.kind == "float" else _wrap(int(narrow), dtype)
    if dtype.kind in ("int", "uint"):
        return _wrap(int(value), dtype)
    dtype_of_python(value)
    return dtype.np.type(value)


def _wrap(value: int, dtype: DType) -> Any:
    value &= (1 << dtype.bitwidth) - 1
    if dtype.kind == "int" and value >> (dtype.bitwidth - 1):
        value -= 1 << dtype.bitwidth
    return dtype.np.type(value)


def make_full(shape: tuple[int, ...], value: Any, dtype: DType) -> Tile:
    if isinstance(value, Tile):
        if value.shape != ():
            raise InterpreterError(f"a fill value is a scalar or 0-d tile, not {value!r}")
        return Tile(np.full(shape, cast(value, dtype).a, dtype.np), dtype)
    return Tile(np.full(shape, as_constant(value, dtype), dtype.np), dtype)


def as_tile(x: Any) -> Tile:
    """A tile as it is; a Python number as a 0-d tile of its own type."""
    if type(x) is Tile:
        return x
    return make_full((), x, dtype_of_python(x))


def common(x: Any, y: Any, force_float: bool = False) -> tuple[Any, Any, DType]:
    """Both operands as arrays of their common type, which is returned too. At least one is a tile."""
    if type(x) is Tile:
        dtype = promote(x.dtype, y.dtype) if type(y) is Tile else promote_with_python(x.dtype, y)
    else:
        dtype = promote_with_python(y.dtype, x)
    if force_float and dtype.kind != "float":
        dtype = float32
    a = cast(x, dtype).a if type(x) is Tile else as_constant(x, dtype)
    b = cast(y, dtype).a if type(y) is Tile else as_constant(y, dtype)
    return a, b, dtype


def arithmetic(fn: Callable[[Any, Any], Any], x: Any, y: Any, force_float: bool = False) -> Tile:
    """One arithmetic operation on two operands, of which at least one is a tile."""
    a, b, dtype = common(x, y, force_float)
    if dtype is bool_:
        raise InterpreterError("arithmetic on booleans is not supported; cast them to int first")
    return _typed(fn(a, b), dtype)


def power(x: Any, y: Any) -> Tile:
    """x to the power of y; cuTile has it for floats only."""
    if common(x, y)[2].kind != "float":
        raise InterpreterError("a power of integer tiles is not supported; cast the base to float")
    return arithmetic(np.power, x, y)


def bitwise(fn: Callable[[Any, Any], Any], x: Any, y: Any, shift: bool = False) -> Tile:
    for o in (x, y):
        dtype = o.dtype if type(o) is Tile else dtype_of_python(o)
        if dtype.kind == "float" or (shift and dtype.kind == "bool"):
            raise InterpreterError(f"a bitwise operation needs integers{'' if shift else ' or booleans'}")
    if type(x) is Tile and type(y) is Tile and x.dtype is not y.dtype and not shift:
        raise InterpreterError(f"bitwise operands must have one type, got {x.dtype} and {y.dtype}")
    a, b, dtype = common(x, y)
    return _typed(fn(a, b), dtype)


def compare(fn: Callable[[Any, Any], Any], x: Any, y: Any) -> Tile:
    for o in (x, y):
        if type(o) is not Tile and not isinstance(o, bool | int | float):
            raise InterpreterError(f"a tile cannot be compared with {o!r}")
    a, b, _ = common(x, y)
    return Tile(fn(a, b), bool_)


def _typed(result: Any, dtype: DType) -> Tile:
    # A NumPy operation that widens (int8 power and the like) would break the rule of one type.
    if FROM_NUMPY.get(result.dtype) is not dtype:
        raise InterpreterError(f"the interpreter computed {result.dtype} where cuTile computes {dtype}")
    return Tile(result, dtype)
