"""Loads of single cells in an emitted file: the text of `tile.cells`, `tile.wrap` and `tile.gather`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.dialects import tile

if TYPE_CHECKING:
    from stencil_dsl.emit.cutile import Emitter

GATHERS = (tile.CellsOp, tile.WrapOp, tile.GatherOp)


def gather_operand(emitter: Emitter, op: tile.CellsOp | tile.WrapOp | tile.GatherOp) -> tuple[str, str]:
    """Text of an operation, and a name for its value."""
    match op:
        case tile.CellsOp():
            assert isinstance(op.result.type, tile.TileType)
            extents = op.result.type.extents
            n = extents[op.axis.value.data]
            first = f"{emitter.text(op.block).at(2)} * {n}" if n > 1 else emitter.ref(op.block)
            return f"ct.reshape(ct.arange({n}, dtype=ct.int32), {extents}) + {first}", "cells"
        case tile.WrapOp():
            return _wrapped(emitter.ref(op.cells), *(a.value.data for a in (op.shift, op.period, op.origin))), "wrapped"
    check = "" if op.checked.value.data else ", check_bounds=False"
    return f"ct.gather({emitter.ref(op.array)}, {emitter.index_tuple(op.index)}{check})", "t_" + emitter.ref(op.array)


def _wrapped(cells: str, shift: int, period: int, origin: int) -> str:
    """The compiler sees what lies side by side through a choice between two sums, and not through a remainder."""
    near = _plus(cells, shift + origin)
    if not shift:
        return near
    if shift < 0:
        return f"ct.where({cells} < {-shift}, {_plus(cells, shift + period + origin)}, {near})"
    return f"ct.where({cells} >= {period - shift}, {_plus(cells, shift - period + origin)}, {near})"


def _plus(text: str, number: int) -> str:
    return text if not number else f"{text} {'-' if number < 0 else '+'} {abs(number)}"
