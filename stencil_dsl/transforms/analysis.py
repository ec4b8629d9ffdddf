"""Read helpers on level-2 modules: what a pass, a schedule or a reader of the IR may ask.

All of them take the IR as it is and change nothing, except `forget_facts`, which drops attributes that a
rewrite has made stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import func, stencil
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float32Type,
    Float64Type,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue

from stencil_dsl.errors import StencilError

# Attributes that passes leave on stencil.apply for later readers. They describe the body, so a pass that
# rewrites the body drops them and the pipeline computes them again.
FACTS = ("footprint", "halo_lo", "halo_hi", "roofline")

Offset = tuple[int, ...]
Footprint = tuple[tuple[Offset, Offset] | None, ...]


def applies(module: ModuleOp) -> Iterator[stencil.ApplyOp]:
    """Every stencil.apply of the module, in program order."""
    for op in module.walk():
        if isinstance(op, stencil.ApplyOp):
            yield op


def the_apply(module: ModuleOp) -> stencil.ApplyOp:
    """The one stencil.apply of a level-2 module; StencilError if there is none or more than one."""
    found = list(applies(module))
    if len(found) != 1:
        raise StencilError(
            f"expected a level-2 module with exactly one stencil.apply, found {len(found)}"
            + ("; run the pass lower-source first" if not found else "")
        )
    return found[0]


def the_func(module: ModuleOp) -> func.FuncOp:
    """The function around the one stencil.apply; StencilError if the apply stands outside a function."""
    op: Operation | None = the_apply(module)
    while op is not None and not isinstance(op, func.FuncOp):
        op = op.parent_op()
    if op is None:
        raise StencilError("the stencil.apply of a level-2 module must stand inside a func.func")
    return op


def _names(module: ModuleOp, key: str) -> tuple[str, ...]:
    function = the_func(module)
    attr = function.attributes.get(key)
    if not isinstance(attr, ArrayAttr) or not all(isinstance(a, StringAttr) for a in attr):
        raise StencilError(
            f"func.func @{function.sym_name.data} needs an attribute {key!r} that is an array of strings"
        )
    return tuple(a.data for a in attr if isinstance(a, StringAttr))


def field_names(module: ModuleOp) -> tuple[str, ...]:
    """Names of the fields, in the order of the function's arguments and of the apply's operands."""
    return _names(module, "fields")


def scalar_names(module: ModuleOp) -> tuple[str, ...]:
    """Names of the run-time scalars, which follow the fields."""
    return _names(module, "scalars")


def output_names(module: ModuleOp) -> tuple[str, ...]:
    """Names of the results, in the order of the apply's results."""
    return _names(module, "outputs")


def field_arguments(apply: stencil.ApplyOp) -> tuple[SSAValue, ...]:
    """Block arguments of the apply that are fields (read or not), in order."""
    return tuple(a for a in apply.region.block.args if isinstance(a.type, stencil.StencilType))


def periodic_rows(apply: stencil.ApplyOp, fields: int) -> tuple[bool, ...]:
    """For each of so many fields, whether cells beyond a row's ends mean its other end (pass `wrap-rows`)."""
    attr = apply.attributes.get("periodic_rows")
    if attr is None:
        return (False,) * fields
    if not isinstance(attr, ArrayAttr) or len(attr) != fields:
        raise StencilError(f"the attribute periodic_rows needs one truth value for each of {fields} fields, got {attr}")
    return tuple(isinstance(a, IntegerAttr) and bool(a.value.data) for a in attr)


def set_periodic_rows(apply: stencil.ApplyOp, rows: Sequence[bool]) -> None:
    """Say of every field operand whether its rows are periodic."""
    apply.attributes["periodic_rows"] = ArrayAttr(BoolAttr.from_bool(r) for r in rows)


def scalar_arguments(apply: stencil.ApplyOp) -> tuple[SSAValue, ...]:
    """Block arguments of the apply that are run-time scalars, in order."""
    return tuple(a for a in apply.region.block.args if not isinstance(a.type, stencil.StencilType))


def element_type(apply: stencil.ApplyOp) -> Float32Type | Float64Type:
    """The one element type of all fields and results; StencilError for other types or a mixture."""
    found: list[Attribute] = []
    for value in (*apply.res, *field_arguments(apply)):
        if isinstance(value.type, stencil.StencilType) and value.type.element_type not in found:
            found.append(value.type.element_type)
    if len(found) != 1 or not isinstance(found[0], Float32Type | Float64Type):
        raise StencilError(f"a stencil works in one element type, f64 or f32; found {', '.join(map(str, found))}")
    return found[0]


def dtype_name(apply: stencil.ApplyOp) -> str:
    """'float64' or 'float32'."""
    return "float64" if isinstance(element_type(apply), Float64Type) else "float32"


def offset_of(access: stencil.AccessOp) -> Offset:
    """The offset (dx, dy, dz) of an access, one entry per axis of the apply.

    StencilError for an access to a field of fewer dimensions than the stencil.
    """
    offset = tuple(access.offset)
    # The parser spells the identity mapping out, the constructor leaves it away: both mean the same.
    mapping = tuple(access.offset_mapping) if access.offset_mapping is not None else tuple(range(len(offset)))
    apply = access.parent_op()
    while apply is not None and not isinstance(apply, stencil.ApplyOp):
        apply = apply.parent_op()
    rank = apply.get_rank() if apply is not None else len(offset)
    if mapping != tuple(range(rank)):
        raise StencilError(
            f"stencil.access with {len(offset)} indices in a stencil of {rank} dimensions: "
            "every field must have all dimensions of the stencil"
        )
    return offset


def accesses(apply: stencil.ApplyOp) -> list[tuple[int, Offset]]:
    """Distinct (field index, offset) pairs that the body reads, in first-use order."""
    index = {value: i for i, value in enumerate(field_arguments(apply))}
    seen: dict[tuple[int, Offset], None] = {}
    for op in apply.region.walk():
        if isinstance(op, stencil.AccessOp) and op.temp in index:
            seen.setdefault((index[op.temp], offset_of(op)))
    return list(seen)


def footprint(apply: stencil.ApplyOp) -> Footprint:
    """Per field the least and the greatest offset on each axis, None for a field that is not read."""
    per_field: list[list[Offset]] = [[] for _ in field_arguments(apply)]
    for i, offset in accesses(apply):
        per_field[i].append(offset)
    return tuple(
        (tuple(map(min, zip(*offsets, strict=True))), tuple(map(max, zip(*offsets, strict=True)))) if offsets else None
        for offsets in per_field
    )


def halo_of(apply: stencil.ApplyOp) -> tuple[tuple[int, int], ...]:
    """Per axis the widths (low side, high side), in points, that cover every field's footprint."""
    lo, hi = [0] * apply.get_rank(), [0] * apply.get_rank()
    for box in footprint(apply):
        for axis, (low, high) in enumerate(zip(*box, strict=True) if box else ()):
            lo[axis] = max(lo[axis], -low)
            hi[axis] = max(hi[axis], high)
    return tuple(zip(lo, hi, strict=True))


def halo(module: ModuleOp) -> tuple[tuple[int, int], ...]:
    """Per axis (low, high) halo widths in points: the attributes of the pass footprint, else the body."""
    apply = the_apply(module)
    lo, hi = apply.attributes.get("halo_lo"), apply.attributes.get("halo_hi")
    if isinstance(lo, DenseArrayBase) and isinstance(hi, DenseArrayBase):
        return tuple((int(low), int(high)) for low, high in zip(lo.get_values(), hi.get_values(), strict=True))
    return halo_of(apply)


def roofline(module: ModuleOp) -> dict[str, int]:
    """The counts that the pass roofline stored, by name; StencilError if it has not run."""
    facts = the_apply(module).attributes.get("roofline")
    if not isinstance(facts, DictionaryAttr):
        raise StencilError("the stencil.apply has no roofline counts; run the pass roofline first")
    return {k: v.value.data for k, v in facts.data.items() if isinstance(v, IntegerAttr)}


def forget_facts(apply: stencil.ApplyOp) -> None:
    """Drop the attributes that earlier passes derived from the body: call it after changing the body."""
    for name in FACTS:
        apply.attributes.pop(name, None)
