"""Builds level-3 operations with value numbering: what was computed in an enclosing block is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stencil_dsl.dialects import tile
from stencil_dsl.schedule.expr import Node

_INDEX_OPS = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "min": arith.MinSIOp,
    "div": arith.FloorDivSIOp,
    "ceildiv": arith.CeilDivSIOp,
}


class TileBuilder:
    """Appends operations to the innermost open block.

    Args:
        block: body of the kernel.
        element: element type of all tiles.
        shape: extents of a compute tile.
        fast: NaN need not propagate through min and max.
    """

    def __init__(self, block: Block, element: Attribute, shape: Sequence[int], fast: bool = False) -> None:
        self.fast = fast
        self.blocks = [block]
        self.known: list[dict[tuple, SSAValue]] = [{}]
        self.element = element
        self.type = tile.TileType(shape, element)

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Append an operation; its result, if it has one, gets the name hint."""
        self.blocks[-1].add_op(op)
        if op.results:
            if hint:
                op.results[0].name_hint = hint
            return op.results[0]
        return None  # type: ignore[return-value]

    def once(self, key: tuple, make: Callable[[], Operation], hint: str | None = None) -> SSAValue:
        """The value known under a key, or a new operation's."""
        for scope in reversed(self.known):
            if key in scope:
                return scope[key]
        value = self.known[-1][key] = self.emit(make(), hint)
        return value

    def outer(self, key: tuple, make: Callable[[], Operation], hint: str | None = None) -> SSAValue:
        """Like `once`, but in the kernel's outermost block: for what no loop changes."""
        if key not in self.known[0]:
            op = make()
            self.blocks[0].add_op(op)
            op.results[0].name_hint = hint
            self.known[0][key] = op.results[0]
        return self.known[0][key]

    # -- index arithmetic

    def index(self, value: int) -> SSAValue:
        return self.once(
            ("index", value),
            lambda: arith.ConstantOp(IntegerAttr(value, IndexType())),
        )

    def iop(self, op: str, lhs: SSAValue, rhs: SSAValue | int, hint: str | None = None) -> SSAValue:
        right = self.index(rhs) if isinstance(rhs, int) else rhs
        return self.once(("iop", op, lhs, right), lambda: _INDEX_OPS[op](lhs, right), hint)

    def block_id(self, axis: int, hint: str) -> SSAValue:
        return self.once(("bid", axis), lambda: tile.BlockIdOp(axis), hint)

    # -- tiles

    def constant(self, value: float) -> SSAValue:
        # Constants are shared by the whole kernel, so they live in its outermost block.
        key = ("const", value, str(value))
        if key not in self.known[0]:
            op = tile.ConstantOp(FloatAttr(value, self.element), self.type)
            first = self.blocks[0].first_op
            if first is None:
                self.blocks[0].add_op(op)
            else:
                self.blocks[0].insert_op_before(op, first)
            self.known[0][key] = op.result
        return self.known[0][key]

    def map(self, op: str, *args: SSAValue) -> SSAValue:
        key = ("map", op, *args)
        if op in ("add", "mul", "min", "max", "and", "or", "xor") and id(args[0]) > id(args[1]):
            key = ("map", op, args[1], args[0])
        return self.once(key, lambda: tile.MapOp(op, args, self.type))

    def add(self, lhs: SSAValue | None, rhs: SSAValue) -> SSAValue:
        return rhs if lhs is None else self.map("add", lhs, rhs)

    def scaled_add(self, acc: SSAValue | None, factor: float, value: SSAValue) -> SSAValue:
        """acc + factor * value, in the form that becomes one instruction."""
        if factor == 1.0:
            return self.add(acc, value)
        if factor == -1.0:
            return self.map("neg", value) if acc is None else self.map("sub", acc, value)
        # A product of its own each time: only a single use becomes part of a fused multiply-add.
        product = self.emit(tile.MapOp("mul", [self.constant(factor), value], self.type))
        return self.add(acc, product)

    def expression(
        self,
        node: Node,
        leaf: Callable[[Node], SSAValue],
        scalars: Sequence[SSAValue],
        context: Hashable = None,
    ) -> SSAValue:
        """An expression in the order of its operands.

        Args:
            leaf: gives the value of an access.
            context: names the place it is evaluated at (row, plane, ...); equal nodes are one value within it.
        """
        key = ("node", context, node.id)
        for scope in reversed(self.known):
            if key in scope:
                return scope[key]
        value = self.known[-1][key] = self._evaluate(node, leaf, scalars, context)
        return value

    def _evaluate(
        self, node: Node, leaf: Callable[[Node], SSAValue], scalars: Sequence[SSAValue], context: Hashable
    ) -> SSAValue:
        if node.op == "access":
            return leaf(node)
        if node.op == "const":
            return self.constant(node.value)
        if node.op == "scalar":
            scalar = scalars[node.value]
            return self.once(("splat", scalar), lambda: tile.SplatOp(scalar, self.type))
        if node.op == "bool":
            one, zero = self.constant(1.0), self.constant(0.0)
            return self.map("gt", one, zero) if node.value else self.map("gt", zero, one)
        args = [self.expression(a, leaf, scalars, context) for a in node.args]
        op = {"min": "minnum", "max": "maxnum"}.get(node.op, node.op) if self.fast else node.op
        return self.map(op, *args)

    # -- control flow

    @contextmanager
    def loop(
        self, low: SSAValue, high: SSAValue, step: int, carried: Sequence[SSAValue], hint: str
    ) -> Iterator[tuple[SSAValue, list[SSAValue], list[SSAValue], list[SSAValue]]]:
        """A loop with carried tiles.

        Yields:
            (induction variable, values at the start of a trip, a list to fill with those at its end, a list that
            holds the loop's results after the block is left).
        """
        block = Block(arg_types=[IndexType(), *(c.type for c in carried)])
        block.args[0].name_hint = hint
        for arg, start in zip(block.args[1:], carried, strict=True):
            arg.name_hint = start.name_hint
        step_value = self.index(step)
        ends: list[SSAValue] = []
        results: list[SSAValue] = []
        self.blocks.append(block)
        self.known.append({})
        yield block.args[0], list(block.args[1:]), ends, results
        block.add_op(scf.YieldOp(*ends))
        self.blocks.pop()
        self.known.pop()
        op = scf.ForOp(low, high, step_value, list(carried), Region(block))
        self.blocks[-1].add_op(op)
        for result, start in zip(op.results, carried, strict=True):
            result.name_hint = start.name_hint
        results.extend(op.results)
