"""Pass `halo-exchange`: ghost cells along cut axes come from other ranks, while the inner part is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stencil_dsl.dialects.comm import StartOp, WaitOp
from stencil_dsl.dialects.timestep import FillOp, SweepOp, ints
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.insert_fills import needs


@dataclass(frozen=True)
class HaloExchangePass(ModulePass):
    """Insert `comm.start` for every field that is read beyond a cut, waited for by the sweep that reads first.

    It takes the place of the field's `timestep.fill`, if there is one. Fields that are read beyond faces along other
    axes only keep theirs.

    Attributes:
        axes: axes along which the interior is cut.
        overlap: let the sweep compute its inner part before it waits; else wait at once.
    """

    name = "halo-exchange"

    axes: tuple[int, ...] = (0,)
    overlap: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        step = steps.the_step(op)
        if not set(self.axes) <= set(range(step.ndim)):
            raise StencilError(f"axes {self.axes} to exchange along are not axes of a {step.ndim}-D step")
        fills = {o.field: o for o in step.body.block.ops if isinstance(o, FillOp)}
        lasting = steps.constants(step)
        waiting: dict[SweepOp, list[StartOp]] = {}
        for value, need in needs(op, step, self.axes).items():
            axes = [axis for axis in sorted(self.axes) if need.lo[axis] or need.hi[axis]]
            if not axes:
                continue
            outer = _remove(fills.get(value), step.ndim)
            start = StartOp(value, (need.lo, need.hi), outer, axes, need.corners, value in lasting)
            step.body.block.insert_op_before(start, need.first)
            if value not in lasting:
                waiting.setdefault(need.first, []).append(start)
        for sweep, starts in waiting.items():
            if self.overlap:
                self._attach(sweep, starts)
            else:
                step.body.block.insert_ops_before([WaitOp(s.token) for s in starts], sweep)

    def _attach(self, sweep: SweepOp, starts: Sequence[StartOp]) -> None:
        """Let the sweep wait; its margins are the widest of what travels."""
        ndim = len(starts[0].lo.get_values())
        margins = []
        for side in ("lo", "hi"):
            found = [[int(w) for w in getattr(s, side).get_values()] for s in starts]
            axes = [set(map(int, s.axes.get_values())) for s in starts]
            margins.append([max(w[a] * (a in cut) for w, cut in zip(found, axes, strict=True)) for a in range(ndim)])
        new = SweepOp(
            [n.data for n in sweep.gives],
            [r.type for r in sweep.results_],
            sweep.detach_region(0),
            dict(zip([n.data for n in sweep.kept], sweep.onto, strict=True)),
            [s.token for s in starts],
            partial=sweep.partial is not None,
        )
        new.properties["margin_lo"], new.properties["margin_hi"] = map(ints, margins)
        block = sweep.parent
        assert block is not None
        block.insert_op_before(new, sweep)
        for old, result in zip(sweep.results_, new.results_, strict=True):
            old.replace_all_uses_with(result)
            result.name_hint = old.name_hint
        sweep.detach()
        sweep.erase()


def _remove(fill: FillOp | None, ndim: int) -> tuple[list[int], list[int]]:
    """Take a fill out; gives its widths, which are what the faces of the whole interior need."""
    if fill is None:
        return [0] * ndim, [0] * ndim
    widths = [int(w) for w in fill.lo.get_values()], [int(w) for w in fill.hi.get_values()]
    fill.detach()
    fill.erase()
    return widths
