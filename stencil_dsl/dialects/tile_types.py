"""Types of the `tile` dialect: windows of arrays, and tiles of values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


def _print_shaped(printer: Printer, extents: Sequence[int | str], element: Attribute) -> None:
    with printer.in_angle_brackets():
        printer.print_string("x".join(str(e) for e in extents) + "x")
        printer.print_attribute(element)


@irdl_attr_definition
class ArrayType(ParametrizedAttribute, TypeAttribute):
    """A window of an array in device memory: `!tile.array<?x?x?xf64>`."""

    name = "tile.array"
    rank: IntAttr
    element: Attribute

    def __init__(self, rank: int | IntAttr, element: Attribute):
        super().__init__(IntAttr(rank) if isinstance(rank, int) else rank, element)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            rank = 0
            while parser.parse_optional_punctuation("?"):
                parser.parse_shape_delimiter()
                rank += 1
            return [IntAttr(rank), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        _print_shaped(printer, ["?"] * self.rank.data, self.element)


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """A tile of values spread over the threads of a block: `!tile.tile<1x1x128xf64>`; extents are powers of two."""

    name = "tile.tile"
    shape: ArrayAttr[IntAttr]
    element: Attribute

    def __init__(self, shape: Sequence[int] | ArrayAttr[IntAttr], element: Attribute):
        if not isinstance(shape, ArrayAttr):
            shape = ArrayAttr(IntAttr(s) for s in shape)
        super().__init__(shape, element)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(a.data for a in self.shape)

    def verify(self) -> None:
        for extent in self.extents:
            if extent < 1 or extent & (extent - 1):
                raise VerifyException(f"a tile's extents are powers of two, got {list(self.extents)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            extents: list[int] = []
            while (n := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
                extents.append(n)
                parser.parse_shape_delimiter()
            return [ArrayAttr(IntAttr(e) for e in extents), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        _print_shaped(printer, self.extents, self.element)
