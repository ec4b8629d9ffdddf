"""How a field lies in memory, as a type: rows with padding, or bricks.

    %b = layout.convert %a : !layout.padded<64x64xf64 halo [1, 1] to [1, 1]> -> !layout.bricked<64x64xf64 by [8, 8]>

A brick is a small box of cells that are neighbours in memory; bricks are numbered in the order of their places.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, Float32Type, Float64Type, IntAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

Ints = ArrayAttr[IntAttr]


def _ints(values: Sequence[int] | Ints) -> Ints:
    return values if isinstance(values, ArrayAttr) else ArrayAttr(IntAttr(int(v)) for v in values)


def _tuple(values: Ints) -> tuple[int, ...]:
    return tuple(v.data for v in values)


def _parse_shape(parser: AttrParser) -> tuple[list[int], Attribute]:
    extents: list[int] = []
    while (n := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
        extents.append(n)
        parser.parse_shape_delimiter()
    return extents, parser.parse_type()


def _parse_list(parser: AttrParser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def _verify_shape(shape: Ints, *others: Ints) -> None:
    if not 1 <= len(shape) <= 3 or any(n < 1 for n in _tuple(shape)):
        raise VerifyException(f"a field has one to three positive extents, got {list(_tuple(shape))}")
    if any(len(other) != len(shape) for other in others):
        raise VerifyException(f"a field of {len(shape)} axes needs one entry an axis, got {list(map(_tuple, others))}")


@irdl_attr_definition
class PaddedType(ParametrizedAttribute, TypeAttribute):
    """Rows along z, with a halo on both sides of every axis."""

    name = "layout.padded"
    shape: Ints
    element: Float64Type | Float32Type
    lo: Ints
    hi: Ints

    def __init__(
        self, shape: Sequence[int] | Ints, element: Attribute, lo: Sequence[int] | Ints, hi: Sequence[int] | Ints
    ) -> None:
        super().__init__(_ints(shape), element, _ints(lo), _ints(hi))

    def verify(self) -> None:
        _verify_shape(self.shape, self.lo, self.hi)
        if any(w < 0 for w in (*_tuple(self.lo), *_tuple(self.hi))):
            raise VerifyException("widths of a halo are not negative")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = _parse_shape(parser)
            parser.parse_keyword("halo")
            lo = _parse_list(parser)
            parser.parse_keyword("to")
            return [_ints(shape), element, _ints(lo), _ints(_parse_list(parser))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, _tuple(self.shape))) + "x")
            printer.print_attribute(self.element)
            printer.print_string(f" halo {list(_tuple(self.lo))} to {list(_tuple(self.hi))}")


@irdl_attr_definition
class BrickedType(ParametrizedAttribute, TypeAttribute):
    """Bricks of the given extents; bricks at the end of an axis may hang over."""

    name = "layout.bricked"
    shape: Ints
    element: Float64Type | Float32Type
    brick: Ints

    def __init__(self, shape: Sequence[int] | Ints, element: Attribute, brick: Sequence[int] | Ints) -> None:
        super().__init__(_ints(shape), element, _ints(brick))

    def verify(self) -> None:
        _verify_shape(self.shape, self.brick)
        if any(b < 1 for b in _tuple(self.brick)):
            raise VerifyException(f"a brick has positive extents, got {list(_tuple(self.brick))}")

    @property
    def grid(self) -> tuple[int, ...]:
        """Bricks along each axis."""
        return tuple(-(-n // b) for n, b in zip(_tuple(self.shape), _tuple(self.brick), strict=True))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = _parse_shape(parser)
            parser.parse_keyword("by")
            return [_ints(shape), element, _ints(_parse_list(parser))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, _tuple(self.shape))) + "x")
            printer.print_attribute(self.element)
            printer.print_string(f" by {list(_tuple(self.brick))}")


LAYOUT = BaseAttr(PaddedType) | BaseAttr(BrickedType)


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """The same cells in another layout; ghost cells are not taken along."""

    name = "layout.convert"
    source = operand_def(LAYOUT)
    result = result_def(LAYOUT)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: PaddedType | BrickedType) -> None:
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        a, b = self.source.type, self.result.type
        assert isinstance(a, PaddedType | BrickedType) and isinstance(b, PaddedType | BrickedType)
        if (a.shape, a.element) != (b.shape, b.element):
            raise VerifyException("a conversion keeps extents and element type")


Layout = Dialect("layout", [ConvertOp], [PaddedType, BrickedType])
