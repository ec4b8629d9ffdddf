"""Merge level-2 modules into one whose apply computes all their outputs; fields and scalars are matched by name."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, stencil
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region, SSAValue

from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms.analysis import field_names, output_names, scalar_names, the_apply


def fuse_modules(modules: Sequence[ModuleOp], name: str) -> ModuleOp:
    """One module for several.

    Raises:
        StencilError: for an empty list, stencils of different rank, or a name that is a field in one and a scalar in
            another.
    """
    if not modules:
        raise StencilError("compile_fused needs at least one stencil")
    ranks = {the_apply(m).get_rank() for m in modules}
    if len(ranks) > 1:
        raise StencilError(f"stencils of different rank cannot be fused, got ranks {sorted(ranks)}")
    fields = list(dict.fromkeys(n for m in modules for n in field_names(m)))
    scalars = list(dict.fromkeys(n for m in modules for n in scalar_names(m)))
    if both := set(fields) & set(scalars):
        raise StencilError(f"{sorted(both)} are fields in one stencil and scalars in another; rename one")
    outputs = [n for m in modules for n in output_names(m)]
    if len(set(outputs)) < len(outputs):
        raise StencilError(f"fused stencils need outputs of distinct names, got {outputs}")
    first = the_apply(modules[0])
    temp = first.res[0].type
    types = [temp] * len(fields) + [temp.element_type] * len(scalars)
    body = Block(arg_types=types)
    for arg, arg_name in zip(body.args, fields + scalars, strict=True):
        arg.name_hint = hint_of(arg_name)
    where = dict(zip(fields + scalars, body.args, strict=True))
    results: list[SSAValue] = []
    for module in modules:
        apply = the_apply(module)
        names = [*field_names(module), *scalar_names(module)]
        values: dict[SSAValue, SSAValue] = {a: where[n] for a, n in zip(apply.region.block.args, names, strict=True)}
        for op in apply.region.block.ops:
            if isinstance(op, stencil.ReturnOp):
                results += [values[a] for a in op.arg]
            else:
                body.add_op(op.clone(values))
    body.add_op(stencil.ReturnOp.build(operands=[results]))
    outer = Block(arg_types=types)
    for arg, arg_name in zip(outer.args, fields + scalars, strict=True):
        arg.name_hint = hint_of(arg_name)
    apply = stencil.ApplyOp(list(outer.args), Region(body), [temp] * len(results))
    outer.add_ops([apply, func.ReturnOp(*apply.res)])
    function = func.FuncOp(name, (types, [temp] * len(results)), Region(outer))
    for key, names in (("fields", fields), ("scalars", scalars), ("outputs", outputs)):
        function.attributes[key] = ArrayAttr(StringAttr(n) for n in names)
    return ModuleOp([function])
