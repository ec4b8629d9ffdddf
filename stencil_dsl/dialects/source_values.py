"""Values of the source dialect: its field type and the operations inside a stencil (see source.py)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerType,
    StringAttr,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import (
    Attribute,
    ParametrizedAttribute,
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
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

UNARY_KINDS = ("neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "not")
BINARY_KINDS = ("add", "sub", "mul", "div", "pow", "min", "max")
COMPARE_KINDS = ("lt", "le", "gt", "ge", "eq", "ne")
BOOLEAN_KINDS = ("and", "or")
ELEMENT_TYPES: dict[str, Float64Type | Float32Type] = {"float64": f64, "float32": f32}

ELEMENT = BaseAttr(Float64Type) | BaseAttr(Float32Type)
VALUE = ELEMENT | BaseAttr(IntegerType)
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


class Placed(IRDLOperation):
    """An operation that may say where it was written."""

    at = opt_prop_def(StringAttr)

    def verify_place(self) -> None:
        if self.at is not None and not _PLACE.fullmatch(self.at.data):
            raise VerifyException(f'a place is "file:line:column", got "{self.at.data}"')


def place(at: str | None) -> StringAttr | None:
    return None if at is None else StringAttr(at)


def _verify_kind(kind: StringAttr, kinds: tuple[str, ...]) -> None:
    if kind.data not in kinds:
        raise VerifyException(f'unknown kind "{kind.data}", expected one of {", ".join(kinds)}')


@irdl_op_definition
class AccessOp(Placed):
    """The value of a field at a constant offset from the current point, in points per axis."""

    name = "source.access"

    field = operand_def(FieldType)
    offset = prop_def(DenseArrayBase)
    result = result_def(ELEMENT)

    traits = traits_def(Pure())

    def __init__(self, field: SSAValue, offset: Sequence[int], at: str | None = None) -> None:
        assert isinstance(field.type, FieldType)
        super().__init__(
            operands=[field],
            properties={"offset": DenseArrayBase.from_list(i64, list(offset)), "at": place(at)},
            result_types=[field.type.element_type],
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(int(o) for o in self.offset.get_values())

    def verify_(self) -> None:
        self.verify_place()
        assert isinstance(self.field.type, FieldType)
        if len(self.offsets) != self.field.type.ndim.data:
            raise VerifyException(f"{len(self.offsets)} offsets into a field of {self.field.type.ndim.data} dimensions")
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
class ConstantOp(Placed):
    """A number of the source, rounded once to the element type."""

    name = "source.constant"

    T: ClassVar = VarConstraint("T", ELEMENT)
    value = prop_def(ParamAttrConstraint(FloatAttr, (AnyAttr(), T)))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$value (`at` $at^)? attr-dict"

    def __init__(self, value: float, element_type: Float64Type | Float32Type, at: str | None = None) -> None:
        attr = FloatAttr(value, element_type)
        super().__init__(properties={"value": attr, "at": place(at)}, result_types=[element_type])

    def verify_(self) -> None:
        self.verify_place()


@irdl_op_definition
class UnaryOp(Placed):
    """A function of one number, or "not" of a condition."""

    name = "source.unary"

    T: ClassVar = VarConstraint("T", VALUE)
    kind = prop_def(StringAttr)
    operand = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$kind $operand (`at` $at^)? attr-dict `:` type($operand)"

    def __init__(self, kind: str, operand: SSAValue, at: str | None = None) -> None:
        super().__init__(
            operands=[operand],
            properties={"kind": StringAttr(kind), "at": place(at)},
            result_types=[operand.type],
        )

    def verify_(self) -> None:
        self.verify_place()
        _verify_kind(self.kind, UNARY_KINDS)
        if (self.kind.data == "not") != (self.operand.type == i1):
            raise VerifyException(f'"{self.kind.data}" of a value of type {self.operand.type}')


class _TwoOperands(Placed):
    """What arithmetic, comparisons and conditions have in common."""

    KINDS: ClassVar[tuple[str, ...]] = ()

    kind = prop_def(StringAttr)

    traits = traits_def(Pure())
    assembly_format = "$kind $lhs `,` $rhs (`at` $at^)? attr-dict `:` type($lhs)"

    def __init__(self, kind: str, lhs: SSAValue, rhs: SSAValue, at: str | None = None) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"kind": StringAttr(kind), "at": place(at)},
            result_types=[lhs.type if isinstance(self, BinaryOp) else i1],
        )

    def verify_(self) -> None:
        self.verify_place()
        _verify_kind(self.kind, self.KINDS)


@irdl_op_definition
class BinaryOp(_TwoOperands):
    """Arithmetic on two numbers; "min" and "max" give NaN where either is NaN, as NumPy's do."""

    name = "source.binary"
    KINDS: ClassVar = BINARY_KINDS

    T: ClassVar = VarConstraint("T", ELEMENT)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class CompareOp(_TwoOperands):
    """A comparison of two numbers; with NaN only "ne" holds."""

    name = "source.compare"
    KINDS: ClassVar = COMPARE_KINDS

    T: ClassVar = VarConstraint("T", ELEMENT)
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
class SelectOp(Placed):
    """The first number where the condition holds, else the second; both are evaluated."""

    name = "source.select"

    T: ClassVar = VarConstraint("T", ELEMENT)
    condition = operand_def(i1)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$condition `,` $lhs `,` $rhs (`at` $at^)? attr-dict `:` type($lhs)"

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue, at: str | None = None) -> None:
        super().__init__(operands=[condition, lhs, rhs], properties={"at": place(at)}, result_types=[lhs.type])

    def verify_(self) -> None:
        self.verify_place()
