"""Pass `temporal-blocking`: one step of a program becomes several, of which most cells are computed in one sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.boundary import OPEN
from stencil_dsl.dialects.timestep import PieceOp, StepOp, SweepOp, YieldOp
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import read_faces
from stencil_dsl.transforms.pipeline import PassManager

Margin = tuple[tuple[int, int], ...]
"""Per axis the cells next to the face before and the face behind."""


@dataclass(frozen=True)
class TemporalBlockingPass(ModulePass):
    """Make `steps` steps of one.

    Across periodic faces the interior goes on as it is, so that a composed kernel (see `compose-steps`) is right up to
    them. Across any other face the boundary holds in between too: cells whose value depends on what lies beyond it are
    computed by single steps, on slabs that become thinner from step to step:

        %u_step1 = timestep.sweep partial ...  slabs      all cells that later slabs read
        %u_next  = timestep.sweep ...          slabs of single steps, and the inner box by the composed kernel

    Runs behind `boundary` and in front of `insert-fills`.

    Attributes:
        steps: how many.
        align: the inner box starts and ends at multiples of so many cells from the faces along the last axis, so that
            its rows can start on cache lines; slabs along this axis are thicker for it.

    Raises:
        StencilError: where the step is not one linear stencil with constant coefficients that advances one field.
    """

    name = "temporal-blocking"

    steps: int = 2
    align: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.steps < 1 or self.align < 1:
            raise StencilError(f"steps and align are at least 1, got {self.steps} and {self.align}")
        step = steps.the_step(op)
        if self.steps > 1:
            _block(op, step, the_sweep(step), self.steps, self.align)


def the_sweep(step: StepOp) -> SweepOp:
    """The only sweep of a step that several steps can be made of.

    Raises:
        StencilError: where there is none.
    """
    ops = list(step.body.block.ops)
    sweep = ops[0]
    whole = isinstance(sweep, SweepOp) and len(sweep.pieces) == 1 and sweep.pieces[0].box is None
    if len(ops) != 2 or not whole or len(step.state) != 1:
        raise StencilError(
            "several steps in one sweep need one stencil that advances one field over the whole interior"
        )
    assert isinstance(sweep, SweepOp)
    return sweep


def reach(module: ModuleOp, step: StepOp) -> Margin:
    """Cells before and behind, per axis, that one step reads across faces that are not periodic."""
    sweep = the_sweep(step)
    kernel = steps.callee(module, sweep.pieces[0].callee.string_value())
    faces = read_faces(step, step.value_names()[0]) or ((OPEN, OPEN),) * step.ndim
    found = []
    for axis, pair in enumerate(faces):
        along = [offset[axis] for offset in kernel.offsets(0)]
        periodic = pair[0].kind.data == "periodic"
        found.append((0, 0) if periodic else (max(0, -min(along)), max(0, *along, 0)))
    return tuple(found)


def margin(one: Margin, count: int, later: int, align: int = 1) -> Margin:
    """How thick the slabs of single steps are, `count` steps in all, where `later` of them still follow."""
    found = []
    for axis, (lo, hi) in enumerate(one):
        unit = align if axis == len(one) - 1 else 1
        before, behind = (-(-count * width // unit) * unit for width in (lo, hi))
        found.append((before + later * hi * (lo > 0), behind + later * lo * (hi > 0)))
    return tuple(found)


def slabs(thick: Margin) -> list[list[tuple[int, int]]]:
    """Boxes that hold the cells next to faces: along the first axis all of them, along the next what is left."""
    boxes = []
    for axis, (lo, hi) in enumerate(thick):
        inside = [(a, -b) for a, b in thick[:axis]]
        outside = [(0, 0)] * (len(thick) - axis - 1)
        boxes += [[*inside, (0, lo), *outside]] if lo else []
        boxes += [[*inside, (-hi, 0), *outside]] if hi else []
    return boxes


def _block(module: ModuleOp, step: StepOp, sweep: SweepOp, count: int, align: int) -> None:
    piece, name = sweep.pieces[0], step.value_names()[1]
    callee = piece.callee.string_value()
    wide, one = _composed(module, callee, count), reach(module, step)
    block, state = step.body.block, step.body.block.args[0]
    scalars = [s.data for s in piece.scalars]
    now: SSAValue = state
    for number in range(1, count):
        thick = margin(one, count, count - number, align)
        boxes = slabs(thick)
        if not boxes:
            break
        made = f"{name}_step{number}"
        new = _sweep(made, state, [(callee, now, scalars, box) for box in boxes], partial=True)
        block.insert_op_before(new, sweep)
        _same_faces(step, made)
        now = new.results_[0]
        now.name_hint = made
    thick = margin(one, count, 0, align)
    inner = [(lo, -hi) for lo, hi in thick] if any(map(any, thick)) else None
    rest = [(callee, now, scalars, box) for box in slabs(thick)]
    last = _sweep(name, state, [(wide, state, [], inner), *rest])
    block.insert_op_before(last, sweep)
    last.results_[0].name_hint = sweep.results_[0].name_hint
    sweep.results_[0].replace_all_uses_with(last.results_[0])
    sweep.detach()
    sweep.erase()
    assert isinstance(block.last_op, YieldOp)
    if callee not in steps.called(module):
        steps.callee(module, callee).function.detach()


Part = tuple[str, SSAValue, Sequence[str], Sequence[tuple[int, int]] | None]


def _sweep(gives: str, state: SSAValue, parts: Sequence[Part], partial: bool = False) -> SweepOp:
    body = Block([PieceOp(callee, [field], scalars, [gives], box) for callee, field, scalars, box in parts])
    return SweepOp([gives], [state.type], Region(body), partial=partial)


def _composed(module: ModuleOp, callee: str, count: int) -> str:
    """Add the kernel of `count` steps at once; its name."""
    function = steps.callee(module, callee).function
    alone = ModuleOp([function.clone()])
    PassManager.from_spec(f"compose-steps{{steps={count}}},footprint,roofline").run(alone)
    wide = next(op for op in alone.body.block.ops if isinstance(op, func.FuncOp))
    wide.detach()
    name = f"{callee}_{count}_steps"
    wide.properties["sym_name"] = StringAttr(name)
    block = function.parent
    assert block is not None
    block.insert_op_before(wide, function)
    return name


def _same_faces(step: StepOp, name: str) -> None:
    """An intermediate field has the faces of the field that it is a later value of."""
    attr = step.attributes.get("boundary")
    known = dict(attr.data) if isinstance(attr, DictionaryAttr) else {}
    first = step.value_names()[0]
    steps.set_origin(step, name, first)
    if first in known:
        step.attributes["boundary"] = DictionaryAttr({**known, name: known[first]})
