"""Pass `fuse-sweeps`: sweeps that do not depend on each other become one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.comm import StartOp
from stencil_dsl.dialects.timestep import FillOp, PieceOp, StepOp, SweepOp, names, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.fuse import fuse_modules
from stencil_dsl.transforms.pipeline import PassManager

CLEAN_UP = "stencil-cse,stencil-dce,footprint,roofline"


@dataclass(frozen=True)
class FuseSweepsPass(ModulePass):
    """Merge groups of sweeps, each of one kernel over the whole interior.

    Attributes:
        groups: entries "a b c", names of new fields; the sweeps that make them are merged, at the place of the last.

    Raises:
        StencilError: where a sweep of a group has several pieces, or one depends on another, or ghost cells are filled
            already.
    """

    name = "fuse-sweeps"

    groups: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        step = steps.the_step(op)
        if self.groups and any(isinstance(o, FillOp | StartOp) for o in step.body.block.ops):
            raise StencilError("fuse-sweeps comes before ghost cells are filled: put it in front of insert-fills")
        for group in self.groups:
            sweeps = [_maker(step, name) for name in group.split()]
            merge(op, step, list(dict.fromkeys(sweeps)))


def _maker(step: StepOp, name: str) -> SweepOp:
    for op in step.body.block.ops:
        if isinstance(op, SweepOp) and name in texts(op.gives):
            return op
    raise StencilError(f"no sweep makes a field {name!r}")


def mergeable(sweep: Operation) -> bool:
    """Whether an operation is a sweep of one kernel over the whole interior."""
    return isinstance(sweep, SweepOp) and len(sweep.pieces) == 1 and sweep.pieces[0].box is None and not sweep.onto


def depends(step: StepOp, later: SweepOp, earlier: SweepOp) -> bool:
    """Whether one sweep reads, directly or through others, what another makes."""
    makers: dict[SSAValue, Operation] = {r: op for op in step.body.block.ops for r in op.results}
    pending, seen = [later], set[Operation]()
    while pending:
        for value in (*pending[0].inputs(), *pending.pop(0).onto):
            maker = makers.get(value)
            if maker is earlier:
                return True
            if isinstance(maker, SweepOp) and maker not in seen:
                seen.add(maker)
                pending.append(maker)
    return False


def merge(module: ModuleOp, step: StepOp, sweeps: Sequence[SweepOp]) -> SweepOp:
    """Replace sweeps by one; raises like the pass."""
    if len(sweeps) < 2:
        return sweeps[0]
    for sweep in sweeps:
        if not mergeable(sweep):
            raise StencilError(f"the sweep that makes {texts(sweep.gives)} is no single kernel over the whole interior")
        for other in sweeps:
            if other is not sweep and depends(step, sweep, other):
                raise StencilError(f"{texts(sweep.gives)} cannot join {texts(other.gives)}: it is computed from it")
    ordered = sorted(sweeps, key=step.body.block.get_operation_index)
    function = merged_function(module, step, ordered)
    module.body.block.insert_op_before(function, step)
    values = dict(step.named_values())
    fields = [values[name] for name in steps.callee(module, function.sym_name.data).fields]
    scalars = steps.callee(module, function.sym_name.data).scalars
    gives = [name for sweep in ordered for name in texts(sweep.pieces[0].gives)]
    piece = PieceOp(function.sym_name.data, fields, scalars, gives)
    results = {n: r for sweep in ordered for n, r in zip(texts(sweep.gives), sweep.results_, strict=True)}
    new = SweepOp(gives, [results[n].type for n in gives], Region(Block([piece])))
    step.body.block.insert_op_after(new, ordered[-1])
    for name, result in zip(gives, new.results_, strict=True):
        results[name].replace_all_uses_with(result)
        result.name_hint = name
    for sweep in ordered:
        sweep.detach()
        sweep.erase()
    _sort(step.body.block)
    for each in list(module.body.block.ops):
        if isinstance(each, func.FuncOp) and each.sym_name.data not in steps.called(module):
            each.detach()
            each.erase()
    return new


def _sort(block: Block) -> None:
    """Put operations behind those whose results they read, in their order otherwise."""
    waiting, last = list(block.ops)[:-1], block.last_op
    assert last is not None
    for op in waiting:
        op.detach()
    while waiting:
        made = {r for op in waiting for r in op.results}
        ready = next(op for op in waiting if made.isdisjoint(_operands(op)))
        waiting.remove(ready)
        block.insert_op_before(ready, last)


def _operands(op: Operation) -> list[SSAValue]:
    return [*op.inputs(), *op.onto] if isinstance(op, SweepOp) else list(op.operands)


def merged_function(module: ModuleOp, step: StepOp, sweeps: Sequence[SweepOp]) -> func.FuncOp:
    """One kernel for several; its parameters are called as the fields and scalars of the step are."""
    parts = []
    for sweep in sweeps:
        piece = sweep.pieces[0]
        function = steps.callee(module, piece.callee.string_value()).function.clone()
        function.attributes["fields"] = names([steps.field_name(step, v) for v in piece.fields])
        function.attributes["scalars"] = piece.scalars
        function.attributes["outputs"] = piece.gives
        parts.append(ModuleOp([function]))
    symbols = [p.callee.string_value() for sweep in sweeps for p in sweep.pieces]
    merged = fuse_modules(parts, "_".join(symbols))
    PassManager.from_spec(CLEAN_UP).run(merged)
    result = merged.body.block.first_op
    assert isinstance(result, func.FuncOp)
    result.detach()
    return result
