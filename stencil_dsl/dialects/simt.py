"""The `simt` dialect: calls of device functions from level 3, and what such functions need from memory.

A device function sees what one thread holds. Rows come as tiles whose elements lie in order over the lanes of the
warps; what a warp's first and last lanes miss is gathered separately.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, SymbolNameConstraint, i32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects.tile import TileType

WARP = 32


@irdl_op_definition
class LibraryOp(IRDLOperation):
    """A tile library, written out: its name and its description as JSON."""

    name = "simt.library"
    sym_name = prop_def(SymbolNameConstraint())
    description = prop_def(StringAttr)
    assembly_format = "$sym_name $description attr-dict"
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, description: str):
        super().__init__(properties={"sym_name": StringAttr(name), "description": StringAttr(description)})


@irdl_op_definition
class SlotOp(IRDLOperation):
    """A tile of any content, for an output parameter of a call."""

    name = "simt.slot"
    result = result_def(TileType)
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, type: TileType):
        super().__init__(result_types=[type])


@irdl_op_definition
class CallOp(IRDLOperation):
    """Call a function of a library; it does nothing but compute its results.

    The last operands stand for the results: a function's output parameters take a tile too, of any content.
    """

    name = "simt.call"
    library = prop_def(StringAttr)
    callee = prop_def(StringAttr)
    args = var_operand_def(TileType)
    res = var_result_def(TileType)
    assembly_format = "$callee `of` $library `(` $args `)` attr-dict `:` type($args) `->` type($res)"
    traits = traits_def(Pure())

    def __init__(self, library: str, callee: str, args: Sequence[SSAValue], results: Sequence[TileType]):
        super().__init__(
            operands=[list(args)],
            properties={"library": StringAttr(library), "callee": StringAttr(callee)},
            result_types=[list(results)],
        )

    def verify_(self) -> None:
        given = [a.type for a in self.args][-len(self.res) :] if self.res else []
        if given != [r.type for r in self.res]:
            raise VerifyException("the last operands of a call have the types of its results")


@irdl_op_definition
class HaloIndexOp(IRDLOperation):
    """For every lane, where along the contiguous axis lies what its warp misses of its neighbours.

    A warp holds `32 * footprint` elements. Its first `right` lanes get the index of the elements behind these, its
    last `left` lanes of those before; lanes between get their own. Each lane has `footprint` elements, this is the
    index of number `part`.
    """

    name = "simt.halo_index"
    block = operand_def(IndexType())
    origin = prop_def(IntegerAttr.constr(i32))
    footprint = prop_def(IntegerAttr.constr(i32))
    part = prop_def(IntegerAttr.constr(i32))
    left = prop_def(IntegerAttr.constr(i32))
    right = prop_def(IntegerAttr.constr(i32))
    result = result_def(TileType)
    assembly_format = (
        "$block `origin` $origin `footprint` $footprint `part` $part `left` $left `right` $right attr-dict"
        " `:` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(
        self, block: SSAValue, origin: int, footprint: int, part: int, left: int, right: int, shape: Sequence[int]
    ):
        numbers = {"origin": origin, "footprint": footprint, "part": part, "left": left, "right": right}
        super().__init__(
            operands=[block],
            properties={name: IntegerAttr(n, 32) for name, n in numbers.items()},
            result_types=[TileType(shape, IntegerType(32))],
        )

    def verify_(self) -> None:
        if self.left.value.data + self.right.value.data > WARP:
            raise VerifyException(f"a warp has {WARP} lanes for what lies on both sides of it")


Simt = Dialect("simt", [LibraryOp, SlotOp, CallOp, HaloIndexOp], [])
