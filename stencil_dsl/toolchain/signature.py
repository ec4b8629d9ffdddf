"""Facts about kernel parameters, as plain data: no array, no device and no cuda.tile needed.

The same facts make the compiler's signature and the key of the kernel cache.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

DTYPES = {"float64": 8, "float32": 4, "float16": 2, "int64": 8, "int32": 4, "int8": 1}


@dataclass(frozen=True)
class ArrayParam:
    """What is known about one array parameter at compile time.

    Attributes:
        dtype: "float64", "float32", "float16", "int64", "int32" or "int8".
        shape: extent per axis; None where it is only known at run time.
        strides: step per axis in elements; None where it is only known at run time.
        base_divisible_by: alignment of the first element's address in bytes.
        shape_divisible_by, stride_divisible_by: factor per axis (elements) of run-time values; None: 1.
        index_dtype: "int32", or "int64" for arrays of 2^31 elements and more.
        alias_groups: empty: overlaps no other parameter; else names shared with those it may overlap.
        may_alias_internally: True where two indices can mean one element (a zero stride).
    """

    dtype: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    base_divisible_by: int = 16
    shape_divisible_by: tuple[int, ...] | None = None
    stride_divisible_by: tuple[int, ...] | None = None
    index_dtype: str = "int32"
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False

    def __post_init__(self) -> None:
        for name in ("shape", "strides", "shape_divisible_by", "stride_divisible_by", "alias_groups"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        _check_dtype(self.dtype)
        if self.index_dtype not in ("int32", "int64"):
            raise ValueError(f"index_dtype {self.index_dtype!r}: allowed are int32 and int64")
        for name in ("strides", "shape_divisible_by", "stride_divisible_by"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.shape):
                raise ValueError(f"{name} has {len(value)} entries, the shape has {len(self.shape)}")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


@dataclass(frozen=True)
class ScalarParam:
    """A scalar passed at launch: "float64", "float32", "int32" or "int64"."""

    dtype: str

    def __post_init__(self) -> None:
        _check_dtype(self.dtype)


Param = ArrayParam | ScalarParam | int | float


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: allowed are {', '.join(DTYPES)}")


def params_to_json(params: Sequence[Param]) -> list[dict[str, Any]]:
    """Parameters as JSON values; constants keep type and exact value (floats as hexadecimal)."""
    result: list[dict[str, Any]] = []
    for param in params:
        match param:
            case ArrayParam():
                result.append({"kind": "array", **asdict(param)})
            case ScalarParam():
                result.append({"kind": "scalar", "dtype": param.dtype})
            case bool():
                result.append({"kind": "bool", "value": param})
            case int():
                result.append({"kind": "int", "value": param})
            case float():
                result.append({"kind": "float", "value": param.hex()})
            case _:
                raise TypeError(f"kernel parameter {param!r}: allowed are ArrayParam, ScalarParam, int and float")
    # tuples become lists, so that a value equals its own round trip
    return json.loads(json.dumps(result))


def params_from_json(values: Sequence[dict[str, Any]]) -> list[Param]:
    """Inverse of `params_to_json`."""
    result: list[Param] = []
    for value in values:
        fields = {k: v for k, v in value.items() if k != "kind"}
        match value["kind"]:
            case "array":
                result.append(ArrayParam(**fields))
            case "scalar":
                result.append(ScalarParam(**fields))
            case "int" | "bool":
                result.append(fields["value"])
            case "float":
                result.append(float.fromhex(fields["value"]))
            case kind:
                raise ValueError(f"unknown kind of kernel parameter {kind!r}")
    return result
