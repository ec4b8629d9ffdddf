"""Level 3: the `tile` dialect, a block-level program over array views and tiles of values.

One `tile.kernel` is what every block of the grid runs. Views are rectangular windows of arrays, addressed in units
of whole tiles (index k of a tile of extent T starts at element k*T). Loops are `scf.for` with carried tiles, guards
are `scf.if`, index arithmetic is `arith` on `index`; everything that touches an element of a tile is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.tile_gather import CellsOp, GatherOp, WrapOp
from stencil_dsl.dialects.tile_types import ArrayType, TileType

UNARY = ("neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "not")
# min and max propagate NaN, as NumPy's do; minnum and maxnum prefer the number, as the hardware does.
BINARY = ("add", "sub", "mul", "div", "min", "max", "minnum", "maxnum", "pow", "and", "or", "xor")
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
ARITY = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY + COMPARE, 2), "select": 3}


def _ints(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(values))


@irdl_op_definition
class KernelOp(IRDLOperation):
    """What each block runs. `hints` of the compiler (occupancy, worker warps) are properties; see `Schedule`."""

    name = "tile.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    occupancy = opt_prop_def(IntegerAttr.constr(i32))
    warps = opt_prop_def(IntegerAttr.constr(i32))
    body = region_def("single_block")
    assembly_format = "$sym_name (`occupancy` $occupancy^)? (`warps` $warps^)? attr-dict-with-keyword $body"
    traits = traits_def(SymbolOpInterface(), NoTerminator())

    def __init__(self, name: str, body: Region, occupancy: int | None, warps: int | None):
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name)}
        if occupancy is not None:
            properties["occupancy"] = IntegerAttr(occupancy, 32)
        if warps is not None:
            properties["warps"] = IntegerAttr(warps, 32)
        super().__init__(properties=properties, regions=[body])


@irdl_op_definition
class BlockIdOp(IRDLOperation):
    """The block's index along one axis of the grid."""

    name = "tile.block_id"
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(IndexType())
    assembly_format = "$axis attr-dict"
    traits = traits_def(Pure())

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, 32)}, result_types=[IndexType()])


@irdl_op_definition
class ExtentOp(IRDLOperation):
    """The extent of an array along one axis, where it is not known at compile time."""

    name = "tile.extent"
    array = operand_def(ArrayType)
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(IndexType())
    assembly_format = "$array `axis` $axis attr-dict `:` type($array)"
    traits = traits_def(Pure())

    def __init__(self, array: SSAValue, axis: int):
        super().__init__(operands=[array], properties={"axis": IntegerAttr(axis, 32)}, result_types=[IndexType()])


@irdl_op_definition
class SliceOp(IRDLOperation):
    """The window [start, start + extent) of a view along one axis; the extent is static, or an operand."""

    name = "tile.slice"
    array = operand_def(ArrayType)
    size = opt_operand_def(IndexType())
    axis = prop_def(IntegerAttr.constr(i32))
    start = prop_def(IntegerAttr.constr(i64))
    extent = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(ArrayType)
    assembly_format = (
        "$array `axis` $axis `from` $start (`extent` $extent^)? (`size` $size^)? attr-dict"
        " `:` type($array) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(self, array: SSAValue, axis: int, start: int, extent: int | SSAValue):
        size: list[SSAValue] = []
        properties: dict[str, Attribute] = {
            "axis": IntegerAttr(axis, 32),
            "start": IntegerAttr(start, i64),
        }
        if isinstance(extent, int):
            properties["extent"] = IntegerAttr(extent, i64)
        else:
            size.append(extent)
        super().__init__(operands=[array, size], properties=properties, result_types=[array.type])

    def verify_(self) -> None:
        if self.start.value.data < 0:
            raise VerifyException("a slice starts at a non-negative element; widen the halo")
        if (self.extent is None) == (self.size is None):
            raise VerifyException("a slice has either a static extent or a size operand")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A tile of a view at an index in tile space; `checked` loads test every element against the view."""

    name = "tile.load"
    array = operand_def(ArrayType)
    index = var_operand_def(IndexType())
    checked = prop_def(BoolAttr)
    latency = opt_prop_def(IntegerAttr.constr(i32))
    result = result_def(TileType)
    assembly_format = (
        "$array `[` $index `]` `checked` $checked (`latency` $latency^)? attr-dict `:` type($array) `->` type($result)"
    )

    def __init__(
        self,
        array: SSAValue,
        index: Sequence[SSAValue],
        shape: Sequence[int],
        checked: bool,
        latency: int | None,
    ):
        assert isinstance(array.type, ArrayType)
        properties: dict[str, Attribute] = {"checked": IntegerAttr(int(checked), IntegerType(1))}
        if latency is not None:
            properties["latency"] = IntegerAttr(latency, 32)
        super().__init__(
            operands=[array, list(index)],
            properties=properties,
            result_types=[TileType(shape, array.type.element)],
        )

    def verify_(self) -> None:
        assert isinstance(self.array.type, ArrayType) and isinstance(self.result.type, TileType)
        rank = self.array.type.rank.data
        if len(self.index) != rank or len(self.result.type.extents) != rank:
            raise VerifyException("a load's index and tile have the rank of its view")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write a tile to a view; a `checked` store leaves out the elements outside the view."""

    name = "tile.store"
    tile = operand_def(TileType)
    array = operand_def(ArrayType)
    index = var_operand_def(IndexType())
    checked = prop_def(BoolAttr)
    assembly_format = "$tile `,` $array `[` $index `]` `checked` $checked attr-dict `:` type($tile) `,` type($array)"

    def __init__(self, tile: SSAValue, array: SSAValue, index: Sequence[SSAValue], checked: bool):
        super().__init__(
            operands=[tile, array, list(index)],
            properties={"checked": IntegerAttr(int(checked), IntegerType(1))},
        )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tile filled with one exact value."""

    name = "tile.constant"
    value = prop_def(FloatAttr)
    result = result_def(TileType)
    assembly_format = "$value attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, value: FloatAttr, type: TileType):
        super().__init__(properties={"value": value}, result_types=[type])


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A tile filled with a run-time scalar."""

    name = "tile.splat"
    scalar = operand_def(Attribute)
    result = result_def(TileType)
    assembly_format = "$scalar attr-dict `:` type($scalar) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, scalar: SSAValue, type: TileType):
        super().__init__(operands=[scalar], result_types=[type])


@irdl_op_definition
class MapOp(IRDLOperation):
    """One elementwise operation: `tile.map "add"(%a, %b)`; names are those of the stencil's expression."""

    name = "tile.map"
    kind = prop_def(StringAttr)
    args = var_operand_def(TileType)
    result = result_def(TileType)
    assembly_format = "$kind `(` $args `)` attr-dict `:` type($args) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, kind: str, args: Sequence[SSAValue], type: TileType):
        super().__init__(operands=[list(args)], properties={"kind": StringAttr(kind)}, result_types=[type])

    def verify_(self) -> None:
        arity = ARITY.get(self.kind.data)
        if arity is None:
            raise VerifyException(f"unknown elementwise operation {self.kind.data!r}; known: {', '.join(ARITY)}")
        if len(self.args) != arity:
            raise VerifyException(f"{self.kind.data!r} takes {arity} operands, got {len(self.args)}")


@irdl_op_definition
class ExtractOp(IRDLOperation):
    """An aligned part of a tile, at an index in units of the part."""

    name = "tile.extract"
    tile = operand_def(TileType)
    index = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TileType)
    assembly_format = "$tile $index attr-dict `:` type($tile) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, tile: SSAValue, index: Sequence[int], shape: Sequence[int]):
        assert isinstance(tile.type, TileType)
        super().__init__(
            operands=[tile],
            properties={"index": _ints(index)},
            result_types=[TileType(shape, tile.type.element)],
        )


@irdl_op_definition
class CatOp(IRDLOperation):
    """Two tiles of one shape, side by side along an axis."""

    name = "tile.cat"
    _T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(TileType)
    assembly_format = "$lhs `,` $rhs `axis` $axis attr-dict `:` type($lhs) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, axis: int):
        assert isinstance(lhs.type, TileType)
        shape = list(lhs.type.extents)
        shape[axis] *= 2
        super().__init__(
            operands=[lhs, rhs],
            properties={"axis": IntegerAttr(axis, 32)},
            result_types=[TileType(shape, lhs.type.element)],
        )


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same values in row-major order under other extents."""

    name = "tile.reshape"
    tile = operand_def(TileType)
    result = result_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, tile: SSAValue, shape: Sequence[int]):
        assert isinstance(tile.type, TileType)
        super().__init__(operands=[tile], result_types=[TileType(shape, tile.type.element)])


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Host side: run a kernel over a grid of blocks."""

    name = "tile.launch"
    kernel = prop_def(FlatSymbolRefAttrConstr)
    grid = prop_def(DenseArrayBase.constr(i64))
    args = var_operand_def()
    assembly_format = "$kernel `grid` $grid `(` $args `)` attr-dict `:` type($args)"

    def __init__(self, kernel: str, grid: Sequence[int], args: Sequence[SSAValue]):
        super().__init__(
            operands=[list(args)],
            properties={"kernel": SymbolRefAttr(kernel), "grid": _ints(grid)},
        )


Tile = Dialect(
    "tile",
    [
        KernelOp,
        BlockIdOp,
        ExtentOp,
        SliceOp,
        LoadOp,
        StoreOp,
        ConstantOp,
        SplatOp,
        MapOp,
        ExtractOp,
        CatOp,
        ReshapeOp,
        CellsOp,
        WrapOp,
        GatherOp,
        LaunchOp,
    ],
    [ArrayType, TileType],
)
