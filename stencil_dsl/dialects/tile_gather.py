"""Operations of the `tile` dialect on single cells: tiles of indices, and loads at them.

    %z = tile.cells %bz axis 2 : !tile.tile<1x1x64xi32>            64 bz + (0 .. 63)
    %w = tile.wrap %z by -2 within 512 from 16 : ...               where the cells two before these lie
    %t = tile.gather %u[%x, %y, %w] checked false : ...

Windows and tile indices say the same of neighbouring cells in less, so these are for rows that close to a ring.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, IntegerType, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.tile_types import ArrayType, TileType


def _positions(rank: int, axis: int, extent: int) -> TileType:
    return TileType([extent if a == axis else 1 for a in range(rank)], IntegerType(32))


@irdl_op_definition
class CellsOp(IRDLOperation):
    """Cells of one tile along an axis, from the tile's index; extents along all other axes are 1."""

    name = "tile.cells"
    block = operand_def(IndexType())
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(TileType)
    assembly_format = "$block `axis` $axis attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, block: SSAValue, rank: int, axis: int, extent: int):
        super().__init__(
            operands=[block],
            properties={"axis": IntegerAttr(axis, 32)},
            result_types=[_positions(rank, axis, extent)],
        )


@irdl_op_definition
class WrapOp(IRDLOperation):
    """Elements of an array's row for cells of a periodic one: `shift` cells on, within `period`, from `origin` on.

    Cells behind the period (a tile that overhangs) stay in order behind it.
    """

    name = "tile.wrap"
    cells = operand_def(TileType)
    shift = prop_def(IntegerAttr.constr(i64))
    period = prop_def(IntegerAttr.constr(i64))
    origin = prop_def(IntegerAttr.constr(i64))
    result = result_def(TileType)
    assembly_format = "$cells `by` $shift `within` $period `from` $origin attr-dict `:` type($cells) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, cells: SSAValue, shift: int, period: int, origin: int):
        numbers = {"shift": shift, "period": period, "origin": origin}
        super().__init__(
            operands=[cells],
            properties={name: IntegerAttr(n, i64) for name, n in numbers.items()},
            result_types=[cells.type],
        )

    def verify_(self) -> None:
        if abs(self.shift.value.data) > self.period.value.data:
            raise VerifyException(
                f"a shift by {self.shift.value.data} goes more than once around a period of {self.period.value.data}"
            )


@irdl_op_definition
class GatherOp(IRDLOperation):
    """The elements of a view at an index an axis, each a number or a tile of numbers; `checked` as for `tile.load`."""

    name = "tile.gather"
    array = operand_def(ArrayType)
    index = var_operand_def(AnyAttr())
    checked = prop_def(BoolAttr)
    result = result_def(TileType)
    assembly_format = (
        "$array `[` $index `]` `checked` $checked attr-dict `:` type($array) `,` type($index) `->` type($result)"
    )

    def __init__(self, array: SSAValue, index: Sequence[SSAValue], shape: Sequence[int], checked: bool):
        assert isinstance(array.type, ArrayType)
        super().__init__(
            operands=[array, list(index)],
            properties={"checked": IntegerAttr(int(checked), IntegerType(1))},
            result_types=[TileType(shape, array.type.element)],
        )

    def verify_(self) -> None:
        assert isinstance(self.array.type, ArrayType)
        if len(self.index) != self.array.type.rank.data:
            raise VerifyException("a gather has an index for each axis")
        if any(not isinstance(i.type, IndexType | TileType) for i in self.index):
            raise VerifyException("the indices of a gather are numbers or tiles of numbers")
