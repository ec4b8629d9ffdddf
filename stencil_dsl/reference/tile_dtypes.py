"""Data types, enumerations and annotations of the stand-in for ``cuda.tile``.

Names, promotion rules and refusals follow cuda.tile 1.7.0. Only the types that a stencil kernel can
meet are offered; every other one is an error, never a silent approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TypeVar

import numpy as np

from stencil_dsl.errors import StencilError


class InterpreterError(StencilError):
    """An emitted kernel does something that is wrong or undefined on a device.

    Attributes:
        reason: what is wrong, without the place.
        line: line of the emitted file (from 1), or None where no kernel line is involved.
        block: block index, or None.
    """

    def __init__(
        self,
        reason: str,
        *,
        line: int | None = None,
        text: str = "",
        kernel: str = "",
        block: tuple[int, ...] | None = None,
    ) -> None:
        self.reason = reason
        self.line = line
        self.block = block
        place = ""
        if line is not None:
            place = f"{kernel or '<kernel>'}, line {line}"
            if block is not None:
                place += f", block {block}"
            place += ": "
        super().__init__(place + reason + (f"\n    {text.strip()}" if text.strip() else ""))


class DType:
    """One element type; compared by identity, as there is one object of each."""

    __slots__ = ("name", "np", "kind", "bitwidth")

    def __init__(self, name: str, np_type: Any, kind: str) -> None:
        self.name = name
        self.np = np.dtype(np_type)
        self.kind = kind  # "bool" | "int" | "uint" | "float"
        self.bitwidth = 1 if kind == "bool" else self.np.itemsize * 8

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any = 0, /) -> Any:
        """A 0-d tile of this type, as ``ct.float32(x)`` gives in a kernel."""
        from stencil_dsl.reference.tile_values import make_full

        return make_full((), x, self)


bool_ = DType("bool_", np.bool_, "bool")
int8 = DType("int8", np.int8, "int")
int16 = DType("int16", np.int16, "int")
int32 = DType("int32", np.int32, "int")
int64 = DType("int64", np.int64, "int")
uint8 = DType("uint8", np.uint8, "uint")
uint16 = DType("uint16", np.uint16, "uint")
uint32 = DType("uint32", np.uint32, "uint")
uint64 = DType("uint64", np.uint64, "uint")
float16 = DType("float16", np.float16, "float")
float32 = DType("float32", np.float32, "float")
float64 = DType("float64", np.float64, "float")

ALL_DTYPES = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
)
FROM_NUMPY = {d.np: d for d in ALL_DTYPES}
_RANK = {"bool": 0, "int": 1, "uint": 1, "float": 2}


def dtype_of(np_dtype: Any) -> DType:
    """The DType of a NumPy dtype; InterpreterError where there is none."""
    found = FROM_NUMPY.get(np.dtype(np_dtype))
    if found is None:
        raise InterpreterError(f"element type {np_dtype} is not one of {', '.join(d.name for d in ALL_DTYPES)}")
    return found


def dtype_of_python(value: Any) -> DType:
    """The type a Python number has in a kernel: bool_, int32 (int64, uint64 where needed), float32."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return int32
        if -(2**63) <= value < 2**63:
            return int64
        if 0 <= value < 2**64:
            return uint64
        raise InterpreterError(f"constant {value} is out of range of every integer type")
    if isinstance(value, float):
        return float32
    raise InterpreterError(f"a Python {type(value).__name__} is not a number that a kernel can use")


def integer_range(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.np)
    return int(info.min), int(info.max)


def promote(a: DType, b: DType) -> DType:
    """Common type of two typed operands; mixed signedness is refused, as cuTile does."""
    if a is b:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        return a if _RANK[a.kind] > _RANK[b.kind] else b
    if a.kind != b.kind:
        raise InterpreterError(f"{a} and {b} have no common type; cast one of them with astype")
    return a if a.bitwidth >= b.bitwidth else b


def promote_with_python(dtype: DType, value: Any) -> DType:
    """Common type of a typed operand and a Python number (which is only loosely typed)."""
    loose = dtype_of_python(value)
    if _RANK[loose.kind] > _RANK[dtype.kind]:
        return loose
    if dtype.kind in ("int", "uint") and loose.kind in ("int", "uint"):
        low, high = integer_range(dtype)
        if not low <= value <= high:
            raise InterpreterError(f"integer constant {value} is out of range of {dtype}")
    return dtype


class PaddingMode(Enum):
    UNDETERMINED = "undetermined"
    ZERO = "zero"
    NEG_ZERO = "neg_zero"
    NAN = "nan"
    POS_INF = "pos_inf"
    NEG_INF = "neg_inf"


class RoundingMode(Enum):
    RN = "nearest_even"
    RZ = "zero"
    RM = "negative_inf"
    RP = "positive_inf"
    RA = "nearest_away"
    FULL = "full"
    APPROX = "approx"
    RZI = "nearest_int_to_zero"


class MemoryOrder(Enum):
    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(Enum):
    NONE = "none"
    BLOCK = "block"
    DEVICE = "device"
    SYS = "sys"


def padding_value(mode: PaddingMode, dtype: DType) -> Any:
    """The value of an element outside the view. Undetermined padding is NaN, so that a use shows."""
    if mode is PaddingMode.ZERO:
        return 0
    if dtype.kind != "float":
        if mode is PaddingMode.UNDETERMINED:
            return 0 if dtype.kind == "bool" else integer_range(dtype)[1]
        raise InterpreterError(f"padding mode {mode.name} needs a float array, not {dtype}")
    special = {PaddingMode.NEG_ZERO: -0.0, PaddingMode.POS_INF: np.inf, PaddingMode.NEG_INF: -np.inf}
    return special.get(mode, np.nan)


class ConstantAnnotation:
    """Marks a parameter whose value is embedded, so that it stays a Python number."""


@dataclass(frozen=True, kw_only=True)
class ArrayAnnotation:
    index_dtype: DType = int32
    static_shape_dims: tuple[int, ...] = ()
    static_stride_dims: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScalarAnnotation:
    dtype: DType


T = TypeVar("T")
Constant = Annotated[T, ConstantAnnotation()]
IndexedWithInt64 = Annotated[T, ArrayAnnotation(index_dtype=int64)]
ScalarInt64 = Annotated[T, ScalarAnnotation(dtype=int64)]
