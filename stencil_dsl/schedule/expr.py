"""A stencil's expression as a hash-consed graph: equal subexpressions are one node, whatever path led to them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, math, stencil
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from stencil_dsl.errors import StencilError

Offset = tuple[int, ...]

_OPS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MulfOp: "mul",
    arith.DivfOp: "div",
    arith.NegfOp: "neg",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.SelectOp: "select",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    math.AbsFOp: "abs",
    math.SqrtOp: "sqrt",
    math.ExpOp: "exp",
    math.LogOp: "log",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.FloorOp: "floor",
    math.PowFOp: "pow",
}
# Ordered comparisons, and unordered inequality: what Python's operators mean for floating point numbers.
_PREDICATES = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}


class Node:
    """One operation, access, scalar or constant. Compare with `is`: a graph never holds two equal nodes."""

    __slots__ = ("args", "field", "id", "offset", "op", "planes", "value")

    def __init__(self, id: int, op: str, args: tuple[Node, ...], value: Any, field: int, offset: Offset):
        self.id, self.op, self.args, self.value, self.field, self.offset = id, op, args, value, field, offset
        planes: frozenset[int] = frozenset({offset[0]}) if op == "access" else frozenset()
        for arg in args:
            planes |= arg.planes
        self.planes: frozenset[int] = planes

    @property
    def uniform(self) -> bool:
        """The same for all cells: made of constants and run-time scalars."""
        return not self.planes

    def __repr__(self) -> str:
        if self.op == "access":
            return f"f{self.field}{list(self.offset)}"
        if self.op in ("const", "scalar", "bool"):
            return f"{self.op}({self.value})"
        return f"{self.op}({', '.join(map(repr, self.args))})"


@dataclass
class Graph:
    """The expressions of one stencil.

    Attributes:
        outputs: one node an output, in the order of the function's results.
        plans: how the expressions are split for streaming, by whether sums may be reassociated; see `plan`.
        counts: what trips of the streaming loop hold; see `streaming.count`.
        strips: schedules of strips; see `ranking.strip_schedule`.
    """

    ndim: int
    outputs: tuple[Node, ...] = ()
    plans: dict[bool, Any] = field(default_factory=dict)
    counts: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    strips: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _nodes: dict[tuple[Any, ...], Node] = field(default_factory=dict)

    def _intern(self, op: str, args: tuple[Node, ...] = (), value: Any = None, fld: int = -1, off: Offset = ()) -> Node:
        # Constants are told apart by their bits: 0.0 and -0.0 are equal but not the same.
        stamp = struct.pack("<d", value) if op == "const" else value
        key = (op, tuple(a.id for a in args), stamp, fld, off)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(len(self._nodes), op, args, value, fld, off)
        return node

    def access(self, fld: int, offset: Sequence[int]) -> Node:
        return self._intern("access", fld=fld, off=tuple(offset))

    def const(self, value: float) -> Node:
        return self._intern("const", value=float(value))

    def scalar(self, index: int) -> Node:
        return self._intern("scalar", value=index)

    def boolean(self, value: bool) -> Node:
        return self._intern("bool", value=bool(value))

    def op(self, op: str, *args: Node) -> Node:
        return self._intern(op, args)

    def rewrite(self, node: Node, leaf: Callable[[Node], Node], memo: dict[int, Node] | None = None) -> Node:
        """The same expression with every access replaced."""
        memo = {} if memo is None else memo
        stack = [node]
        while stack:
            top = stack[-1]
            if top.id in memo or top.uniform:
                memo.setdefault(top.id, top)
                stack.pop()
            elif top.op == "access":
                memo[top.id] = leaf(top)
            elif missing := [a for a in top.args if a.id not in memo]:
                stack += missing
            else:
                memo[top.id] = self.op(top.op, *(memo[a.id] for a in top.args))
        return memo[node.id]

    def shift(self, node: Node, by: Sequence[int]) -> Node:
        """The same expression read `by` cells further along each axis."""
        if not any(by):
            return node
        return self.rewrite(
            node, lambda a: self.access(a.field, tuple(o + d for o, d in zip(a.offset, by, strict=True)))
        )

    @staticmethod
    def from_apply(apply: stencil.ApplyOp) -> Graph:
        """Read the body of a `stencil.apply` whose operands are fields followed by scalars.

        Raises:
            StencilError: for an operation no schedule knows.
        """
        graph = Graph(apply.get_rank())
        block = apply.region.block
        temps = [a for a in block.args if isinstance(a.type, stencil.TempType)]
        values: dict[SSAValue, Node] = {}
        for index, arg in enumerate(a for a in block.args if a not in temps):
            values[arg] = graph.scalar(index)
        for op in block.ops:
            if isinstance(op, stencil.ReturnOp):
                graph.outputs = tuple(values[a] for a in op.arg)
            else:
                values[op.results[0]] = graph._read(op, values, temps)
        return graph

    def _read(self, op: Operation, values: dict[SSAValue, Node], temps: list[Any]) -> Node:
        if isinstance(op, stencil.AccessOp):
            return self.access(temps.index(op.temp), tuple(op.offset))
        if isinstance(op, arith.ConstantOp):
            if isinstance(op.value, FloatAttr):
                return self.const(op.value.value.data)
            assert isinstance(op.value, IntegerAttr)
            return self.boolean(bool(op.value.value.data))
        args = [values[o] for o in op.operands]
        if isinstance(op, arith.CmpfOp):
            return self.op(_PREDICATES[op.predicate.value.data], *args)
        if type(op) not in _OPS:
            raise StencilError(
                f"{op.name} inside stencil.apply is not supported; known: {sorted(o.name for o in _OPS)}"
            )
        return self.op(_OPS[type(op)], *args)


def accesses(nodes: Sequence[Node]) -> list[Node]:
    """The distinct accesses below some nodes, in order of evaluation."""
    seen: set[int] = set()
    found: list[Node] = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op == "access":
            found.append(node)
        stack += reversed(node.args)
    return found
