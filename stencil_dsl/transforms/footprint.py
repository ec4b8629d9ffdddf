"""Pass `footprint`: which neighbours each field is read at, as a box of offsets per field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from stencil_dsl.transforms import analysis


def _ints(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(values))


@dataclass(frozen=True)
class FootprintPass(ModulePass):
    """Store `footprint`, `halo_lo` and `halo_hi` on every stencil.apply.

    `footprint` has one entry per field operand: `{lo = array<i64: ...>, hi = array<i64: ...>}`, the least
    and the greatest offset on each axis, or `unit` for a field that the body does not read. The two sides are
    independent (an upwind stencil is not padded on the far side). `halo_lo` and `halo_hi` are the
    non-negative widths, in points, that cover all fields.

    Every access in the body counts, so run `stencil-dce` first: a dead access must not widen the halo, but
    one that is still in the body would be loaded.
    """

    name = "footprint"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in analysis.applies(op):
            boxes: list[Attribute] = [
                DictionaryAttr({"lo": _ints(box[0]), "hi": _ints(box[1])}) if box else UnitAttr()
                for box in analysis.footprint(apply)
            ]
            halo = analysis.halo_of(apply)
            apply.attributes["footprint"] = ArrayAttr(boxes)
            apply.attributes["halo_lo"] = _ints([lo for lo, _ in halo])
            apply.attributes["halo_hi"] = _ints([hi for _, hi in halo])
