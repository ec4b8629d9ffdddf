"""Level 1: a stencil as the user wrote it, before any meaning of the machine.

One `source.stencil` per function, with the fields and scalars as arguments of its body. Operations name
Python's operators, accesses carry constant offsets in points, one per axis (x slowest). Every operation
may say where it was written: `at "heat.py:7:12"` is file, line and column, all from 1.

    source.stencil @heat(%u : !source.field<2 x f64>, %dt : f64) reads ["u"] with ["dt"]
        over ["i", "j"] gives ["heat"] {
      %0 = source.access %u[-1, 0] at "heat.py:3:12" : f64
      %1 = source.binary "mul" %0, %dt at "heat.py:3:12" : f64
      source.yield %1 : f64
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, Float32Type, Float64Type, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.source_values import (
    BINARY_KINDS,
    BOOLEAN_KINDS,
    COMPARE_KINDS,
    ELEMENT,
    ELEMENT_TYPES,
    UNARY_KINDS,
    AccessOp,
    BinaryOp,
    BooleanOp,
    CompareOp,
    ConstantOp,
    FieldType,
    Placed,
    SelectOp,
    UnaryOp,
    place,
)

__all__ = [
    "BINARY_KINDS", "BOOLEAN_KINDS", "COMPARE_KINDS", "ELEMENT_TYPES", "UNARY_KINDS",
    "AccessOp", "BinaryOp", "BooleanOp", "CompareOp", "ConstantOp", "FieldType",
    "SelectOp", "Source", "StencilOp", "UnaryOp", "YieldOp",
]  # fmt: skip

NAME_LISTS = ("fields", "scalars", "indices", "outputs")
_WORDS = {"reads": "fields", "with": "scalars", "over": "indices", "gives": "outputs"}


@irdl_op_definition
class StencilOp(Placed):
    """A stencil function: fields, then scalars, as arguments of its body; one yielded value per output."""

    name = "source.stencil"

    sym_name = prop_def(SymbolNameConstraint())
    fields = prop_def(ArrayAttr[StringAttr])
    scalars = prop_def(ArrayAttr[StringAttr])
    indices = prop_def(ArrayAttr[StringAttr])
    outputs = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        names: Mapping[str, Sequence[str]],
        body: Region,
        at: str | None = None,
    ) -> None:
        """`names` maps "fields", "scalars", "indices" and "outputs" to names."""
        lists = {key: ArrayAttr([StringAttr(n) for n in names[key]]) for key in NAME_LISTS}
        super().__init__(properties={"sym_name": StringAttr(name), "at": place(at), **lists}, regions=[body])

    def verify_(self) -> None:
        self.verify_place()
        arguments, split = self.body.block.args, len(self.fields)
        if len(arguments) != split + len(self.scalars):
            raise VerifyException(f"{len(arguments)} arguments for {split} fields and {len(self.scalars)} scalars")
        names = [n.data for n in (*self.fields, *self.scalars, *self.indices)]
        if len(set(names)) != len(names):
            raise VerifyException("names of fields, scalars and indices must differ")
        if not 1 <= len(self.indices) <= 3:
            raise VerifyException(f"a stencil has 1 to 3 indices, got {len(self.indices)}")
        elements: set[Attribute] = set()
        for argument in arguments[:split]:
            if not isinstance(argument.type, FieldType) or argument.type.ndim.data != len(self.indices):
                raise VerifyException(f"a field over {len(self.indices)} indices cannot be of type {argument.type}")
            elements.add(argument.type.element_type)
        elements |= {argument.type for argument in arguments[split:]}
        results = self.body.block.last_op
        if not isinstance(results, YieldOp):
            raise VerifyException("the body of source.stencil ends with source.yield")
        elements |= set(results.values.types)
        if len(elements) != 1 or not isinstance(next(iter(elements)), Float64Type | Float32Type):
            found = ", ".join(sorted(map(str, elements)))
            raise VerifyException(f"a stencil works in one element type, f64 or f32; found {found}")
        if len(results.values) != len(self.outputs):
            raise VerifyException(f"{len(results.values)} values yielded for {len(self.outputs)} outputs")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        for word, key in _WORDS.items():
            names: ArrayAttr[StringAttr] = getattr(self, key)
            if len(names) or key != "scalars":
                printer.print_string(f" {word} ")
                printer.print_attribute(names)
        if self.at is not None:
            printer.print_string(" at ")
            printer.print_attribute(self.at)
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> StencilOp:
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=True)
        )
        names: dict[str, Sequence[str]] = {key: [] for key in NAME_LISTS}
        for word, key in _WORDS.items():
            if parser.parse_optional_keyword(word):
                names[key] = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        at = parser.parse_str_literal() if parser.parse_optional_keyword("at") else None
        attributes = parser.parse_optional_attr_dict() if parser.parse_optional_keyword("attributes") else {}
        op = cls(name, names, parser.parse_region(arguments), at)
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values of the outputs at the current point, in order."""

    name = "source.yield"

    values = var_operand_def(ELEMENT)

    traits = traits_def(IsTerminator(), HasParent(StencilOp))
    assembly_format = "$values attr-dict `:` type($values)"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(values)])


Source = Dialect(
    "source",
    [AccessOp, BinaryOp, BooleanOp, CompareOp, ConstantOp, SelectOp, StencilOp, UnaryOp, YieldOp],
    [FieldType],
)
