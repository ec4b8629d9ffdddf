"""What an expression of a stencil can stand for while the function is read.

Numbers known at this point stay Python numbers and follow Python's arithmetic. Everything that
depends on a field or a run-time scalar becomes a `Node` of an expression graph; a node that no
output reaches is simply never written into the IR.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

from stencil_dsl.frontend.source_text import Span

_serials = itertools.count()


@dataclass(eq=False)
class Node:
    """One run-time value.

    category is "access", "scalar", "constant", "unary", "binary", "compare", "boolean" or "select";
    kind is the operator ("add", "lt", ...), the parameter's name, or "" where there is only one.
    """

    category: str
    kind: str
    operands: tuple[Node, ...]
    span: Span
    payload: Any = None
    hint: str | None = None
    serial: int = field(default_factory=lambda: next(_serials))

    @property
    def is_boolean(self) -> bool:
        return self.category in ("compare", "boolean") or self.kind == "not"


@dataclass(frozen=True)
class FieldRef:
    """A field as a whole, before it is indexed.

    Attributes:
        staggered: names of the indices along which it lies between points.
        read: indices (by position) that it has been read with, and where first; the same in every place.
    """

    name: str
    staggered: tuple[str, ...] = ()
    read: dict[tuple[int, ...], Span] = field(default_factory=dict, compare=False)


class Half:
    """The offset from a point to the middle between it and the next one; `half` is the only one."""


half = Half()


@dataclass(frozen=True)
class IndexRef:
    """An index plus a constant offset in points, and half a point more where `half` is set."""

    name: str
    axis: int
    offset: int = 0
    half: bool = False

    def moved_by_half(self, sign: int) -> IndexRef:
        """Half a point forth (1) or back (-1)."""
        offset, half = divmod(2 * self.offset + self.half + sign, 2)
        return replace(self, offset=offset, half=bool(half))


@dataclass(frozen=True)
class Intrinsic:
    """A function that the compiler knows; `fold` is what Python itself would call."""

    name: str
    spelling: str
    fold: Any = None


def is_number(value: object) -> bool:
    """Whether the value is a compile-time int or float (a bool is a condition, not a number)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_condition(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, Node) and value.is_boolean)


def constant(value: int | float, span: Span) -> Node:
    """The node of a compile-time number.

    Raises FrontendError for what no float64 can hold.
    """
    try:
        number = float(value)
    except OverflowError:
        raise span.error(
            f"an integer of {value.bit_length() if isinstance(value, int) else '?'} bits overflows float64",
            "keep constants within about 1.8e308",
        ) from None
    if not math.isfinite(number):
        raise span.error(f"the constant {number} is not finite", "use a finite number")
    return Node("constant", "", (), span, number)


def describe(value: object) -> str:
    """What a value is, in the words of error messages."""
    if isinstance(value, FieldRef):
        return f"field '{value.name}'"
    if isinstance(value, IndexRef):
        return f"index '{value.name}'"
    if is_condition(value):
        return "a comparison"
    if isinstance(value, Node) or is_number(value):
        return "a number"
    if isinstance(value, tuple):
        return "a sequence"
    if isinstance(value, Half):
        return "half a point"
    if isinstance(value, Intrinsic):
        return f"function '{value.spelling}'"
    return f"a {type(value).__name__}"
