"""Operations inside a `timestep.step`: sweeps of kernels, filling of ghost cells, the end (see timestep.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import stencil
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.comm import TokenType

FIELD = BaseAttr(stencil.TempType)


def names(values: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(v) for v in values])


def ints(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(values))


def texts(attr: ArrayAttr[StringAttr]) -> tuple[str, ...]:
    return tuple(a.data for a in attr)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """What the state holds when the step is over, in the order of the step's arguments."""

    name = "timestep.yield"
    values = var_operand_def(FIELD)
    assembly_format = "$values attr-dict (`:` type($values)^)?"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class FillOp(IRDLOperation):
    """Make ghost cells valid, by the field's boundary rules: `lo` cells before and `hi` behind the interior.

    With `corners` also the cells beyond several faces at a time, axis after axis; without, only those beyond one.
    `once`: the step does not change the field, so that filling it before the first step is enough.
    """

    name = "timestep.fill"
    field = operand_def(FIELD)
    lo = prop_def(DenseArrayBase.constr(i64))
    hi = prop_def(DenseArrayBase.constr(i64))
    corners = opt_prop_def(UnitAttr)
    once = opt_prop_def(UnitAttr)
    assembly_format = "$field `lo` $lo `hi` $hi (`corners` $corners^)? (`once` $once^)? attr-dict `:` type($field)"

    def __init__(
        self, field: SSAValue, lo: Sequence[int], hi: Sequence[int], corners: bool = True, once: bool = False
    ) -> None:
        flags = {"corners": UnitAttr() if corners else None, "once": UnitAttr() if once else None}
        super().__init__(operands=[field], properties={"lo": ints(lo), "hi": ints(hi), **flags})

    def verify_(self) -> None:
        verify_widths(self.field, self.lo, self.hi)


def verify_widths(field: SSAValue, lo: DenseArrayBase[IntegerType], hi: DenseArrayBase[IntegerType]) -> None:
    """Widths of ghost cells are not negative and there is one an axis."""
    assert isinstance(field.type, stencil.TempType)
    ndim = field.type.get_num_dims()
    for side in (lo, hi):
        values = side.get_values()
        if len(values) != ndim or any(v < 0 for v in values):
            raise VerifyException(f"ghost cells of a {ndim}-D field need {ndim} widths of at least 0, got {values}")


@irdl_op_definition
class PieceOp(IRDLOperation):
    """A kernel on the whole interior, or on a box of it.

    The box is half open, `lo` to `hi`; negative numbers count from the end, as does 0 in `hi`.
    """

    name = "timestep.piece"
    callee = prop_def(FlatSymbolRefAttrConstr)
    fields = var_operand_def(FIELD)
    scalars = prop_def(ArrayAttr[StringAttr])
    gives = prop_def(ArrayAttr[StringAttr])
    lo = opt_prop_def(DenseArrayBase.constr(i64))
    hi = opt_prop_def(DenseArrayBase.constr(i64))
    assembly_format = (
        "$callee `(` $fields `)` `with` $scalars `gives` $gives (`box` $lo^ `to` $hi)? attr-dict `:` type($fields)"
    )

    def __init__(
        self,
        callee: str,
        fields: Sequence[SSAValue],
        scalars: Sequence[str],
        gives: Sequence[str],
        box: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "callee": SymbolRefAttr(callee),
            "scalars": names(scalars),
            "gives": names(gives),
            "lo": None if box is None else ints([lo for lo, _ in box]),
            "hi": None if box is None else ints([hi for _, hi in box]),
        }
        super().__init__(operands=[list(fields)], properties=properties)

    @property
    def box(self) -> tuple[tuple[int, int], ...] | None:
        """Per axis the half-open range, or None for the whole interior."""
        if self.lo is None or self.hi is None:
            return None
        return tuple((int(a), int(b)) for a, b in zip(self.lo.get_values(), self.hi.get_values(), strict=True))

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), SweepOp):
            raise VerifyException("timestep.piece stands in a timestep.sweep")
        if (self.lo is None) != (self.hi is None):
            raise VerifyException("a box needs lo and hi")
        if self.box is not None:
            ndim = self.fields[0].type.get_num_dims() if self.fields else len(self.box)  # type: ignore[attr-defined]
            if len(self.box) != ndim:
                raise VerifyException(f"a box in {ndim} dimensions has {ndim} ranges, got {len(self.box)}")


@irdl_op_definition
class SweepOp(IRDLOperation):
    """New fields, computed piece by piece; pieces do not overlap and all read what was there before the sweep.

    A result named in `kept` starts as the operand of the same position in `onto`, and keeps its values where no piece
    writes; every other result must be covered by pieces, unless the sweep is `partial`: then nobody may read what no
    piece has written. With `after`, cells whose footprint lies within the interior
    shrunk by `margin_lo` and `margin_hi` are computed before the tokens are waited for.
    """

    name = "timestep.sweep"
    onto = var_operand_def(FIELD)
    after = var_operand_def(TokenType)
    kept = prop_def(ArrayAttr[StringAttr])
    gives = prop_def(ArrayAttr[StringAttr])
    margin_lo = opt_prop_def(DenseArrayBase.constr(i64))
    margin_hi = opt_prop_def(DenseArrayBase.constr(i64))
    partial = opt_prop_def(UnitAttr)
    results_ = var_result_def(FIELD)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator())

    def __init__(
        self,
        gives: Sequence[str],
        types: Sequence[Attribute],
        body: Region,
        onto: Mapping[str, SSAValue] | None = None,
        after: Sequence[SSAValue] = (),
        margin: Sequence[tuple[int, int]] | None = None,
        partial: bool = False,
    ) -> None:
        onto = onto or {}
        properties: dict[str, Attribute | None] = {
            "kept": names(list(onto)),
            "gives": names(gives),
            "margin_lo": None if margin is None else ints([lo for lo, _ in margin]),
            "margin_hi": None if margin is None else ints([hi for _, hi in margin]),
            "partial": UnitAttr() if partial else None,
        }
        super().__init__(
            operands=[list(onto.values()), list(after)],
            result_types=[list(types)],
            properties=properties,
            regions=[body],
        )

    @property
    def pieces(self) -> tuple[PieceOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, PieceOp))

    def inputs(self) -> Iterator[SSAValue]:
        """Fields that the sweep reads, in order, with repetitions."""
        for piece in self.pieces:
            yield from piece.fields

    @property
    def margin(self) -> tuple[tuple[int, int], ...] | None:
        if self.margin_lo is None or self.margin_hi is None:
            return None
        pairs = zip(self.margin_lo.get_values(), self.margin_hi.get_values(), strict=True)
        return tuple((int(a), int(b)) for a, b in pairs)

    def verify_(self) -> None:
        gives = texts(self.gives)
        if len(gives) != len(self.results_) or len(set(gives)) != len(gives):
            raise VerifyException(f"{len(self.results_)} results need as many distinct names, got {list(gives)}")
        if not self.pieces or len(self.pieces) != len(list(self.body.block.ops)):
            raise VerifyException("a sweep consists of one or more timestep.piece")
        if len(self.kept) != len(self.onto) or not set(texts(self.kept)) <= set(gives):
            raise VerifyException(f"`onto` needs one field for each of {list(texts(self.kept))}, all of them results")
        written = [name for piece in self.pieces for name in texts(piece.gives)]
        if set(written) != set(gives):
            raise VerifyException(f"the pieces give {sorted(set(written))}, the sweep {sorted(gives)}")
        if self.after and self.margin is None:
            raise VerifyException("a sweep that waits for ghost cells needs margins")

    def print(self, printer: Printer) -> None:
        if self.partial is not None:
            printer.print_string(" partial")
        for word, values, labels in (("onto", self.onto, self.kept), ("after", self.after, None)):
            if values:
                printer.print_string(f" {word}(")
                printer.print_list(values, printer.print_operand)
                printer.print_string(" : ")
                printer.print_list([v.type for v in values], printer.print_attribute)
                printer.print_string(")")
                if labels is not None:
                    printer.print_string(" ")
                    printer.print_attribute(labels)
        if self.margin_lo is not None and self.margin_hi is not None:
            lo, hi = (list(m.get_values()) for m in (self.margin_lo, self.margin_hi))
            printer.print_string(f" margin {lo} to {hi}")
        printer.print_string(" gives ")
        printer.print_attribute(self.gives)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_list([r.type for r in self.results_], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> SweepOp:
        onto: list[SSAValue] = []
        kept: list[str] = []
        after: list[SSAValue] = []
        margin = None
        partial = parser.parse_optional_keyword("partial") is not None
        if parser.parse_optional_keyword("onto"):
            onto = _operands(parser)
            kept = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        if parser.parse_optional_keyword("after"):
            after = _operands(parser)
        if parser.parse_optional_keyword("margin"):
            lo = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_keyword("to")
            hi = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            margin = list(zip(lo, hi, strict=True))
        parser.parse_keyword("gives")
        gives = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        body = parser.parse_region()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(kept) != len(onto):
            parser.raise_error("`onto` needs one name for each operand")
        return cls(gives, types, body, dict(zip(kept, onto, strict=True)), after, margin, partial)


def _operands(parser: Parser) -> list[SSAValue]:
    """`(%a, %b : type, type)`."""
    parser.parse_punctuation("(")
    unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    place = parser.pos
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(unresolved, types, place))
