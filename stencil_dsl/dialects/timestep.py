"""One time step as a program: which kernels sweep which fields, in which order, and what the next step starts from.

    timestep.step @heat over 2 state ["u"] (%u: !stencil.temp<?x?xf64>) {
      timestep.fill %u lo [1, 1] hi [1, 1] corners : !stencil.temp<?x?xf64>
      %u_next = timestep.sweep gives ["u_next"] {
        timestep.piece @heat(%u) with ["dt"] gives ["u_next"] : !stencil.temp<?x?xf64>
      } : !stencil.temp<?x?xf64>
      timestep.yield %u_next : !stencil.temp<?x?xf64>
    }

Values are whole fields. A value never changes once it is made, except for its ghost cells, which `timestep.fill`
writes; memory is assigned later, so that rotating fields and updates in place are no concern of the program. Kernels
are the functions of level 2 beside the step. Scalars are named, since their values arrive at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import stencil
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.boundary import verify_faces
from stencil_dsl.dialects.timestep_sweeps import FIELD, FillOp, PieceOp, SweepOp, YieldOp, ints, names, texts

METHODS = ("euler", "leapfrog", "verlet", "ssp-rk2", "ssp-rk3", "rk4")
"""euler to rk4 integrate u' = f(u); verlet (also called Stoermer) integrates u'' = f(u)."""

TWO_LEVEL = ("leapfrog", "verlet")
"""Methods whose state has a second, older level."""


@irdl_op_definition
class IntegrateOp(IRDLOperation):
    """Advance fields by one step of a method; the callee's outputs are their rates of change.

    `state` names, for each output of the callee, the position of the field that it is the rate of. Two-level methods
    take the older levels as `older`, one for each. `expand-integrator` replaces this by sweeps.
    """

    name = "timestep.integrate"
    method = prop_def(StringAttr)
    callee = prop_def(FlatSymbolRefAttrConstr)
    fields = var_operand_def(FIELD)
    older = var_operand_def(FIELD)
    scalars = prop_def(ArrayAttr[StringAttr])
    state = prop_def(DenseArrayBase.constr(i64))
    dt = prop_def(StringAttr)
    time = opt_prop_def(StringAttr)
    gives = prop_def(ArrayAttr[StringAttr])
    results_ = var_result_def(FIELD)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$method $callee `(` $fields `)` (`older` `(` $older^ `)`)? `with` $scalars `state` $state `dt` $dt"
        " (`time` $time^)? `gives` $gives attr-dict `:` type($fields) (`older` type($older)^)? `->` type($results_)"
    )

    def __init__(
        self,
        method: str,
        callee: str,
        fields: Sequence[SSAValue],
        scalars: Sequence[str],
        state: Sequence[int],
        dt: str,
        gives: Sequence[str],
        older: Sequence[SSAValue] = (),
        time: str | None = None,
    ) -> None:
        super().__init__(
            operands=[list(fields), list(older)],
            result_types=[[fields[i].type for i in state]],
            properties={
                "method": StringAttr(method),
                "callee": SymbolRefAttr(callee),
                "scalars": names(scalars),
                "state": ints(state),
                "dt": StringAttr(dt),
                "time": None if time is None else StringAttr(time),
                "gives": names(gives),
            },
        )

    def verify_(self) -> None:
        if self.method.data not in METHODS:
            raise VerifyException(f'unknown method "{self.method.data}"; known are {", ".join(METHODS)}')
        state = self.state.get_values()
        if len(set(state)) != len(state) or any(not 0 <= i < len(self.fields) for i in state):
            raise VerifyException(f"state positions {list(state)} are not distinct ones of {len(self.fields)} fields")
        if not len(state) == len(self.results_) == len(self.gives):
            raise VerifyException("one result and one name for each field of the state")
        older = len(state) if self.method.data in TWO_LEVEL else 0
        if len(self.older) != older:
            raise VerifyException(f"{self.method.data} takes {older} older levels here, got {len(self.older)}")


@irdl_op_definition
class StepOp(IRDLOperation):
    """One time step from a state to the next; see the module's docstring.

    The attribute `boundary` maps names of fields to their faces.
    """

    name = "timestep.step"
    sym_name = prop_def(SymbolNameConstraint())
    rank = prop_def(IntegerAttr)
    state = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, rank: int, state: Sequence[str], body: Region) -> None:
        properties = {"sym_name": StringAttr(name), "rank": IntegerAttr(rank, 64), "state": names(state)}
        super().__init__(properties=properties, regions=[body])

    @property
    def ndim(self) -> int:
        return self.rank.value.data

    def value_names(self) -> tuple[str, ...]:
        """Names of all fields: the state's, then those made on the way."""
        return tuple(dict.fromkeys(name for name, _ in self.named_values()))

    def named_values(self) -> Iterator[tuple[str, SSAValue]]:
        yield from zip(texts(self.state), self.body.block.args, strict=True)
        for op in self.body.block.ops:
            if isinstance(op, SweepOp | IntegrateOp):
                yield from zip(texts(op.gives), op.results_, strict=True)

    def verify_(self) -> None:
        block = self.body.block
        last = block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("a step ends with timestep.yield")
        if not len(block.args) == len(self.state) == len(last.values):
            raise VerifyException("a step has one argument, one name and one yielded value for each field of its state")
        for value in block.args:
            if not isinstance(value.type, stencil.TempType) or value.type.get_num_dims() != self.ndim:
                raise VerifyException(f"a field of a {self.ndim}-D step cannot be of type {value.type}")
        found = [name for name, _ in self.named_values()]
        if len(set(found)) != len(found):
            raise VerifyException(f"fields need distinct names, got {sorted(found)}")
        boundary = self.attributes.get("boundary", DictionaryAttr({}))
        if not isinstance(boundary, DictionaryAttr):
            raise VerifyException(f"boundary maps fields to faces, got {boundary}")
        for name, faces in boundary.data.items():
            if name not in found:
                raise VerifyException(f"boundary of an unknown field {name!r}")
            verify_faces(name, faces, self.ndim)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" over {self.ndim} state ")
        printer.print_attribute(self.state)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> StepOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("over")
        rank = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_keyword("state")
        state = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=True)
        )
        attributes = parser.parse_optional_attr_dict() if parser.parse_optional_keyword("attributes") else {}
        op = cls(name, rank, state, parser.parse_region(arguments))
        op.attributes.update(attributes)
        return op


Timestep = Dialect("timestep", [StepOp, SweepOp, PieceOp, FillOp, IntegrateOp, YieldOp], [])
