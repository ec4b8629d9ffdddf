"""Pass `select-outputs`: keep some results of a stencil, and the fields and scalars that those need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, stencil
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.dce import StencilDcePass


@dataclass(frozen=True)
class SelectOutputsPass(ModulePass):
    """Keep the outputs with the given positions, in that order."""

    name = "select-outputs"

    outputs: tuple[int, ...] = (0,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = analysis.output_names(op)
        bad = [i for i in self.outputs if not 0 <= i < len(names)]
        if bad or not self.outputs or len(set(self.outputs)) < len(self.outputs):
            raise StencilError(f"outputs to keep are distinct positions in 0..{len(names) - 1}, got {self.outputs}")
        fields, scalars = analysis.field_names(op), analysis.scalar_names(op)
        apply = analysis.the_apply(op)
        returned = apply.region.block.last_op
        assert isinstance(returned, stencil.ReturnOp)
        kept = [returned.arg[i] for i in self.outputs]
        returned.detach()
        apply.region.block.add_op(stencil.ReturnOp.build(operands=[kept]))
        returned.erase()
        StencilDcePass().apply(ctx, op)
        used = [a for a in apply.region.block.args if list(a.uses)]
        by_name = dict(zip(apply.region.block.args, (*fields, *scalars), strict=True))
        _rebuild(op, apply, used, [by_name[a] for a in used], [names[i] for i in self.outputs], fields)


def _rebuild(
    module: ModuleOp,
    apply: stencil.ApplyOp,
    used: Sequence[SSAValue],
    used_names: list[str],
    outputs: list[str],
    fields: tuple[str, ...],
) -> None:
    """A function of only the arguments in use, around the same body."""
    old = analysis.the_func(module)
    types = [a.type for a in used]
    body, outer = Block(arg_types=types), Block(arg_types=types)
    mapping: dict[SSAValue, SSAValue] = dict(zip(used, body.args, strict=True))
    for block in (body, outer):
        for arg, arg_name in zip(block.args, used_names, strict=True):
            arg.name_hint = hint_of(arg_name)
    for inner in apply.region.block.ops:
        body.add_op(inner.clone(mapping))
    temp = apply.res[0].type
    new = stencil.ApplyOp(list(outer.args), Region(body), [temp] * len(outputs))
    outer.add_ops([new, func.ReturnOp(*new.res)])
    function = func.FuncOp(old.sym_name.data, FunctionType.from_lists(types, [temp] * len(outputs)), Region(outer))
    groups = {
        "fields": [n for n in used_names if n in fields],
        "scalars": [n for n in used_names if n not in fields],
        "outputs": outputs,
    }
    for key, names in groups.items():
        function.attributes[key] = ArrayAttr(StringAttr(n) for n in names)
    module.body.block.insert_op_before(function, old)
    old.detach()
    old.erase(safe_erase=False)
