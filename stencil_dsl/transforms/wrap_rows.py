"""Pass `wrap-rows`: across periodic faces of the last axis a sweep reads the row's other end, not ghost cells.

Ghost cells of that axis lie one sector a row all over memory: to fill them costs more than those of all other faces
together, and to read them as much again. A row's other end is in the caches when the row is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.timestep import StepOp, SweepOp
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.analysis import set_periodic_rows
from stencil_dsl.transforms.boundary import read_faces


@dataclass(frozen=True)
class WrapRowsPass(ModulePass):
    """Store the attribute `periodic_rows` on every `stencil.apply` that steps sweep: one truth value a field operand.

    A field's rows are periodic for a kernel that reads neighbours along them, where they are so in all uses of it: both
    faces along the last axis are periodic, the piece covers whole rows, and no cell is read further away than `reach`.
    Fields that no step changes keep their ghost cells, which are filled once.

    Attributes:
        extent: cells of a row.
        reach: distance along a row up to which neighbours are read by index; no more than `extent` is.
    """

    name = "wrap-rows"

    extent: int
    reach: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in [o for o in op.walk() if isinstance(o, StepOp)]:
            uses: dict[str, dict[int, bool]] = {}
            lasting = steps.constants(step)
            for sweep in step.body.block.ops:
                if not isinstance(sweep, SweepOp):
                    continue
                for value, kernel, index, box in steps.reads(op, sweep):
                    farthest = max((abs(offset[-1]) for offset in kernel.offsets(index)), default=0)
                    near = 0 < farthest <= min(self.extent, self.reach)
                    fits = near and value not in lasting and _periodic(step, value) and self._whole(box)
                    known = uses.setdefault(kernel.name, {})
                    known[index] = known.get(index, True) and fits
            for name, found in uses.items():
                kernel = steps.callee(op, name)
                if any(found.values()):
                    rows = [found.get(i, False) for i in range(len(kernel.fields))]
                    set_periodic_rows(kernel.apply, rows)

    def _whole(self, box: steps.Ranges | None) -> bool:
        return box is None or (box[-1][0] in (0, -self.extent) and box[-1][1] in (0, self.extent))


def _periodic(step: StepOp, value: SSAValue) -> bool:
    faces = read_faces(step, steps.field_name(step, value))
    return faces is not None and all(f.kind.data == "periodic" for f in faces[-1])
