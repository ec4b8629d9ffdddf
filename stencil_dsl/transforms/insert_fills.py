"""Pass `insert-fills`: before a field is read beyond the interior, its ghost cells are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.comm import StartOp
from stencil_dsl.dialects.timestep import FillOp, StepOp, SweepOp
from stencil_dsl.transforms import steps


@dataclass
class Need:
    """Ghost cells of one field that a step reads.

    Attributes:
        first: the first sweep that reads them.
        corners: some cell is read beyond several faces at a time.
    """

    first: SweepOp
    lo: list[int]
    hi: list[int]
    corners: bool = field(default=False)


@dataclass(frozen=True)
class InsertFillsPass(ModulePass):
    """Insert one `timestep.fill` for each field whose ghost cells a step reads, before the first sweep that does.

    Widths are the union of the footprints of all that read the field. A field that the step leaves as it is gets
    filled once. Fields that the step already fills or exchanges are left alone.
    """

    name = "insert-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for child in list(op.walk()):
            if isinstance(child, StepOp):
                self._insert(op, child)

    def _insert(self, module: ModuleOp, step: StepOp) -> None:
        block = step.body.block
        done = {o.field for o in block.ops if isinstance(o, FillOp | StartOp)}
        lasting = steps.constants(step)
        for value, need in needs(module, step).items():
            if value not in done:
                fill = FillOp(value, need.lo, need.hi, need.corners, value in lasting)
                block.insert_op_before(fill, need.first)


def needs(module: ModuleOp, step: StepOp, cut: Sequence[int] = ()) -> dict[SSAValue, Need]:
    """Ghost cells that a step reads, by field, in the order in which they are first read.

    Args:
        cut: axes along which the interior will be cut, so that ghost cells may lie anywhere.
    """
    found: dict[SSAValue, Need] = {}
    for sweep in step.body.block.ops:
        if not isinstance(sweep, SweepOp):
            continue
        for value, kernel, index, box in steps.reads(module, sweep):
            offsets = kernel.beyond(index)
            lo, hi = widths(offsets, box, step.ndim, cut)
            if not any(lo) and not any(hi):
                continue
            need = found.setdefault(value, Need(sweep, [0] * step.ndim, [0] * step.ndim))
            need.lo = list(map(max, need.lo, lo))
            need.hi = list(map(max, need.hi, hi))
            need.corners |= any(sum(map(bool, offset)) > 1 for offset in offsets)
    return found


def widths(
    offsets: Sequence[tuple[int, ...]], box: Sequence[tuple[int, int]] | None, ndim: int, cut: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """Per axis how far a stencil reads beyond the interior when it runs on a box of it.

    A bound that is counted from the other end may lie anywhere, so it saves nothing; nor does one along an axis that
    will be cut.
    """
    lo, hi = [0] * ndim, [0] * ndim
    for offset in offsets:
        for axis, distance in enumerate(offset):
            lo[axis] = max(lo[axis], -distance)
            hi[axis] = max(hi[axis], distance)
    for axis, (first, last) in enumerate(box or ()):
        if axis in cut:
            continue
        lo[axis] = max(0, lo[axis] - max(0, first))
        hi[axis] = max(0, hi[axis] + min(0, last))
    return lo, hi
