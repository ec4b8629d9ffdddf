"""From the graph of a stencil's outputs to the level-1 IR.

Operations follow the order in which the program was read; nodes that no output reaches are left out,
so a value that is computed and not used reads no field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from stencil_dsl.dialects import source
from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.frontend.values import Node

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil

_TWO_OPERANDS: dict[str, type[source.BinaryOp | source.CompareOp | source.BooleanOp]] = {
    "binary": source.BinaryOp,
    "compare": source.CompareOp,
    "boolean": source.BooleanOp,
}
_MAX_F32 = 3.4028235677973366e38  # from here on, rounding to float32 gives infinity


def build_module(stencil: Stencil, dtype: str) -> ModuleOp:
    """A module with the `source.stencil` of a Stencil in the given dtype."""
    element = source.ELEMENT_TYPES[dtype]
    types = [source.FieldType(stencil.ndim, element) for _ in stencil.fields]
    names = (*stencil.fields, *stencil.scalars)
    block = Block(arg_types=[*types, *(element for _ in stencil.scalars)])
    arguments: dict[str, SSAValue] = dict(zip(names, block.args, strict=True))
    for name, argument in arguments.items():
        argument.name_hint = _hint(name)
    values: dict[Node, SSAValue] = {}
    for node in reachable(stencil.results):
        if node.category == "scalar":
            values[node] = arguments[node.kind]
            continue
        op = _operation(node, dtype, arguments, [values[o] for o in node.operands])
        block.add_op(op)
        values[node] = op.results[0]
        values[node].name_hint = _hint(node.hint)
    block.add_op(source.YieldOp([values[node] for node in stencil.results]))
    lists = {
        "fields": stencil.fields,
        "scalars": stencil.scalars,
        "indices": stencil.indices,
        "outputs": stencil.outputs,
    }
    op = source.StencilOp(stencil.name, lists, Region(block), stencil.span.short)
    module = ModuleOp([op])
    module.verify()
    return module


def reachable(results: Iterable[Node]) -> list[Node]:
    """The nodes that the results need, in the order in which the program was read."""
    pending, seen = list(results), set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(node.operands)
    return sorted(seen, key=lambda node: node.serial)


def _operation(node: Node, dtype: str, arguments: dict[str, SSAValue], operands: list[SSAValue]) -> Operation:
    place = node.span.short
    if node.category == "access":
        return source.AccessOp(arguments[node.kind], node.payload, place)
    if node.category == "constant":
        if dtype == "float32" and abs(node.payload) >= _MAX_F32:
            raise node.span.error(
                f"the constant {node.payload} overflows float32", "compile for float64, or scale the constant"
            )
        return source.ConstantOp(node.payload, source.ELEMENT_TYPES[dtype], place)
    if node.category == "unary":
        return source.UnaryOp(node.kind, operands[0], place)
    if node.category == "select":
        condition, first, second = operands
        return source.SelectOp(condition, first, second, place)
    left, right = operands
    return _TWO_OPERANDS[node.category](node.kind, left, right, place)


def _hint(name: str | None) -> str | None:
    """A Python name as the name of an IR value, where the IR can spell it."""
    return hint_of(name) if name is not None and name.isascii() else None
