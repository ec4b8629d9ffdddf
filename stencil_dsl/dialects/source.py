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

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import (
    Attribute,
    Dialect,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    ParamAttrConstraint,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

UNARY_KINDS = ("neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "not")
BINARY_KINDS = ("add", "sub", "mul", "div", "pow", "min", "max")
COMPARE_KINDS = ("lt", "le", "gt", "ge", "eq", "ne")
BOOLEAN_KINDS = ("and", "or")
ELEMENT_TYPES = {"float64": f64, "float32": f32}

_ELEMENT = BaseAttr(Float64Type) | BaseAttr(Float32Type)
_VALUE = _ELEMENT | BaseAttr(IntegerType)
NAME_LISTS = ("fields", "scalars", "indices", "outputs")
_WORDS = {"reads": "fields", "with": "scalars", "over": "indices", "gives": "outputs"}
_PLACE = re.compile(r".+:\d+:\d+")


@irdl_attr_definition
class FieldType(ParametrizedAttribute, TypeAttribute):
    """A field over a grid of 1 to 3 dimensions: `!source.field<2 x f64>`."""

    name = "source.field"

    ndim: IntAttr
    element_type: Float64Type | Float32Type

    def __init__(self, ndim: int | IntAttr, element_type: Float64Type | Float32Type) -> None:
        super().__init__(IntAttr(ndim) if isinstance(ndim, int) else ndim, element_type)

    def verify(self) -> None:
        if not 1 <= self.ndim.data <= 3:
            raise VerifyException(f"a field has 1 to 3 dimensions, got {self.ndim.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            ndim = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_shape_delimiter()
            return [IntAttr(ndim), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.ndim.data} x ")
            printer.print_attribute(self.element_type)


class _Placed(IRDLOperation):
    """An operation that may say where it was written."""

    at = opt_prop_def(StringAttr)

    def _verify_place(self) -> None:
        if self.at is not None and not _PLACE.fullmatch(self.at.data):
            raise VerifyException(f'a place is "file:line:column", got "{self.at.data}"')


def _place(at: str | None) -> StringAttr | None:
    return None if at is None else StringAttr(at)


def _verify_kind(kind: StringAttr, kinds: tuple[str, ...]) -> None:
    if kind.data not in kinds:
        raise VerifyException(f'unknown kind "{kind.data}", expected one of {", ".join(kinds)}')


@irdl_op_definition
class AccessOp(_Placed):
    """The value of a field at a constant offset from the current point, in points per axis."""

    name = "source.access"

    field = operand_def(FieldType)
    offset = prop_def(DenseArrayBase)
    result = result_def(_ELEMENT)

    traits = traits_def(Pure())

    def __init__(self, field: SSAValue, offset: Sequence[int], at: str | None = None) -> None:
        assert isinstance(field.type, FieldType)
        super().__init__(
            operands=[field],
            properties={"offset": DenseArrayBase.from_list(i64, list(offset)), "at": _place(at)},
            result_types=[field.type.element_type],
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(int(o) for o in self.offset.get_values())

    def verify_(self) -> None:
        self._verify_place()
        assert isinstance(self.field.type, FieldType)
        if len(self.offsets) != self.field.type.ndim.data:
            raise VerifyException(
                f"{len(self.offsets)} offsets into a field of {self.field.type.ndim.data} dimensions"
            )
        if self.result.type != self.field.type.element_type:
            raise VerifyException(f"the field holds {self.field.type.element_type}, not {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.field)
        printer.print_string(f"[{', '.join(map(str, self.offsets))}]")
        if self.at is not None:
            printer.print_string(" at ")
            printer.print_attribute(self.at)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.field.type)

    @classmethod
    def parse(cls, parser: Parser) -> AccessOp:
        field = parser.parse_unresolved_operand()
        offset = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        at = parser.parse_str_literal() if parser.parse_optional_keyword("at") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        field_type = parser.parse_type()
        if not isinstance(field_type, FieldType):
            parser.raise_error("expected a !source.field type", position)
        op = cls(parser.resolve_operand(field, field_type), offset, at)
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class ConstantOp(_Placed):
    """A number of the source, rounded once to the element type."""

    name = "source.constant"

    T: ClassVar = VarConstraint("T", _ELEMENT)
    value = prop_def(ParamAttrConstraint(FloatAttr, (AnyAttr(), T)))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$value (`at` $at^)? attr-dict"

    def __init__(self, value: float, element_type: Float64Type | Float32Type, at: str | None = None) -> None:
        attr = FloatAttr(value, element_type)
        super().__init__(properties={"value": attr, "at": _place(at)}, result_types=[element_type])

    def verify_(self) -> None:
        self._verify_place()


@irdl_op_definition
class UnaryOp(_Placed):
    """A function of one number, or "not" of a condition."""

    name = "source.unary"

    T: ClassVar = VarConstraint("T", _VALUE)
    kind = prop_def(StringAttr)
    operand = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$kind $operand (`at` $at^)? attr-dict `:` type($operand)"

    def __init__(self, kind: str, operand: SSAValue, at: str | None = None) -> None:
        super().__init__(
            operands=[operand],
            properties={"kind": StringAttr(kind), "at": _place(at)},
            result_types=[operand.type],
        )

    def verify_(self) -> None:
        self._verify_place()
        _verify_kind(self.kind, UNARY_KINDS)
        if (self.kind.data == "not") != (self.operand.type == i1):
            raise VerifyException(f'"{self.kind.data}" of a value of type {self.operand.type}')


class _TwoOperands(_Placed):
    """What arithmetic, comparisons and conditions have in common."""

    KINDS: ClassVar[tuple[str, ...]] = ()

    kind = prop_def(StringAttr)

    traits = traits_def(Pure())
    assembly_format = "$kind $lhs `,` $rhs (`at` $at^)? attr-dict `:` type($lhs)"

    def __init__(self, kind: str, lhs: SSAValue, rhs: SSAValue, at: str | None = None) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"kind": StringAttr(kind), "at": _place(at)},
            result_types=[lhs.type if isinstance(self, BinaryOp) else i1],
        )

    def verify_(self) -> None:
        self._verify_place()
        _verify_kind(self.kind, self.KINDS)


@irdl_op_definition
class BinaryOp(_TwoOperands):
    """Arithmetic on two numbers; "min" and "max" give NaN where either is NaN, as NumPy's do."""

    name = "source.binary"
    KINDS: ClassVar = BINARY_KINDS

    T: ClassVar = VarConstraint("T", _ELEMENT)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class CompareOp(_TwoOperands):
    """A comparison of two numbers; with NaN only "ne" holds."""

    name = "source.compare"
    KINDS: ClassVar = COMPARE_KINDS

    T: ClassVar = VarConstraint("T", _ELEMENT)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(i1)


@irdl_op_definition
class BooleanOp(_TwoOperands):
    """ "and" or "or" of two conditions; both are evaluated."""

    name = "source.boolean"
    KINDS: ClassVar = BOOLEAN_KINDS

    lhs = operand_def(i1)
    rhs = operand_def(i1)
    result = result_def(i1)
    assembly_format = "$kind $lhs `,` $rhs (`at` $at^)? attr-dict"


@irdl_op_definition
class SelectOp(_Placed):
    """The first number where the condition holds, else the second; both are evaluated."""

    name = "source.select"

    T: ClassVar = VarConstraint("T", _ELEMENT)
    condition = operand_def(i1)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$condition `,` $lhs `,` $rhs (`at` $at^)? attr-dict `:` type($lhs)"

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue, at: str | None = None) -> None:
        super().__init__(
            operands=[condition, lhs, rhs], properties={"at": _place(at)}, result_types=[lhs.type]
        )

    def verify_(self) -> None:
        self._verify_place()


@irdl_op_definition
class StencilOp(_Placed):
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
        names: dict[str, Sequence[str]],
        body: Region,
        at: str | None = None,
    ) -> None:
        """`names` maps "fields", "scalars", "indices" and "outputs" to names."""
        lists = {key: ArrayAttr([StringAttr(n) for n in names[key]]) for key in NAME_LISTS}
        super().__init__(properties={"sym_name": StringAttr(name), "at": _place(at), **lists}, regions=[body])

    def verify_(self) -> None:
        self._verify_place()
        arguments, split = self.body.block.args, len(self.fields)
        if len(arguments) != split + len(self.scalars):
            raise VerifyException(
                f"{len(arguments)} arguments for {split} fields and {len(self.scalars)} scalars"
            )
        names = [n.data for n in (*self.fields, *self.scalars, *self.indices)]
        if len(set(names)) != len(names):
            raise VerifyException("names of fields, scalars and indices must differ")
        if not 1 <= len(self.indices) <= 3:
            raise VerifyException(f"a stencil has 1 to 3 indices, got {len(self.indices)}")
        elements = set()
        for argument in arguments[:split]:
            if not isinstance(argument.type, FieldType) or argument.type.ndim.data != len(self.indices):
                raise VerifyException(
                    f"a field over {len(self.indices)} indices cannot be of type {argument.type}"
                )
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
                names[key] = parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, parser.parse_str_literal
                )
        at = parser.parse_str_literal() if parser.parse_optional_keyword("at") else None
        attributes = parser.parse_optional_attr_dict() if parser.parse_optional_keyword("attributes") else {}
        op = cls(name, names, parser.parse_region(arguments), at)
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values of the outputs at the current point, in order."""

    name = "source.yield"

    values = var_operand_def(_ELEMENT)

    traits = traits_def(IsTerminator(), HasParent(StencilOp))
    assembly_format = "$values attr-dict `:` type($values)"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(values)])


Source = Dialect(
    "source",
    [AccessOp, BinaryOp, BooleanOp, CompareOp, ConstantOp, SelectOp, StencilOp, UnaryOp, YieldOp],
    [FieldType],
)
