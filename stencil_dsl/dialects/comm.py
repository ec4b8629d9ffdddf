"""Ghost cells that come from other ranks.

    %t = comm.start %u lo [1, 0] hi [1, 0] outer [1, 0] to [1, 0] axes [0] : !stencil.temp<?x?xf64>
    comm.wait %t

`comm.start` begins to make the ghost cells of a field valid, those along `axes` by exchange with the neighbouring
ranks, the others by the field's boundary rules; `comm.wait` returns when all of them are. In between the interior may
be read, ghost cells may not. A sweep that takes the token itself computes its inner part in the meantime.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import stencil
from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i64
from xdsl.ir import Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """An exchange on its way."""

    name = "comm.token"


@irdl_op_definition
class StartOp(IRDLOperation):
    """Begin to make ghost cells valid: `lo` cells before and `hi` behind a rank's part of the interior.

    Where that is the end of the whole interior, `outer_lo` and `outer_hi` cells are needed. With `corners` those beyond
    several faces are included, which makes the axes follow one another. `once`: the step does not change the field, so
    that doing it before the first step is enough.
    """

    name = "comm.start"
    field = operand_def(BaseAttr(stencil.TempType))
    lo = prop_def(DenseArrayBase.constr(i64))
    hi = prop_def(DenseArrayBase.constr(i64))
    outer_lo = prop_def(DenseArrayBase.constr(i64))
    outer_hi = prop_def(DenseArrayBase.constr(i64))
    axes = prop_def(DenseArrayBase.constr(i64))
    corners = opt_prop_def(UnitAttr)
    once = opt_prop_def(UnitAttr)
    token = result_def(TokenType)
    assembly_format = (
        "$field `lo` $lo `hi` $hi `outer` $outer_lo `to` $outer_hi `axes` $axes (`corners` $corners^)? (`once` $once^)?"
        " attr-dict `:` type($field)"
    )

    def __init__(
        self,
        field: SSAValue,
        widths: tuple[Sequence[int], Sequence[int]],
        outer: tuple[Sequence[int], Sequence[int]],
        axes: Sequence[int],
        corners: bool = True,
        once: bool = False,
    ) -> None:
        lists = {"lo": widths[0], "hi": widths[1], "outer_lo": outer[0], "outer_hi": outer[1], "axes": axes}
        flags = {"corners": UnitAttr() if corners else None, "once": UnitAttr() if once else None}
        super().__init__(
            operands=[field],
            result_types=[TokenType()],
            properties={**{n: DenseArrayBase.from_list(i64, list(v)) for n, v in lists.items()}, **flags},
        )

    def verify_(self) -> None:
        assert isinstance(self.field.type, stencil.TempType)
        ndim = self.field.type.get_num_dims()
        for side in (self.lo, self.hi, self.outer_lo, self.outer_hi):
            if len(side) != ndim or any(v < 0 for v in side.get_values()):
                raise VerifyException(f"ghost cells of a {ndim}-D field need {ndim} widths, got {side.get_values()}")
        axes = self.axes.get_values()
        if not axes or list(axes) != sorted(set(axes)) or not set(axes) <= set(range(ndim)):
            raise VerifyException(f"axes to exchange along are ascending ones of {ndim}, got {list(axes)}")


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Return when the ghost cells of a `comm.start` are valid."""

    name = "comm.wait"
    token = operand_def(TokenType)
    assembly_format = "$token attr-dict"

    def __init__(self, token: SSAValue) -> None:
        super().__init__(operands=[token])


Comm = Dialect("comm", [StartOp, WaitOp], [TokenType])
