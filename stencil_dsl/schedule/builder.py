"""Builds level-3 operations with value numbering: what was computed in an enclosing block is not computed again.

Lowerings talk to a builder only through its methods, so that a second kind of builder (`counting`) can say what a
schedule would emit without making any operation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region

from stencil_dsl.dialects import tile
from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.schedule.expr import Node

Value = Any
"""An SSA value, or whatever stands for one in another builder."""

_INDEX_OPS = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "min": arith.MinSIOp,
    "div": arith.FloorDivSIOp,
    "ceildiv": arith.CeilDivSIOp,
}
_COMMUTATIVE = {"add", "mul", "min", "max", "minnum", "maxnum", "and", "or", "xor"}


class Numbering:
    """Value numbering and the expressions built on it; `_make` decides what a new value is.

    Args:
        shape: extents of a compute tile.
        fast: NaN need not propagate through min and max.
    """

    counting = False

    def __init__(self, arguments: Sequence[Value], shape: Sequence[int], fast: bool = False) -> None:
        self.arguments, self.shape, self.fast = list(arguments), tuple(shape), fast
        self.known: list[dict[tuple, Value]] = [{}]

    def _make(self, kind: str, make: Callable[[], Operation], hint: str | None = None, outer: bool = False) -> Value:
        raise NotImplementedError

    def hint(self, value: Value, name: str) -> None:
        """Suggest a name for a value that has none."""

    def loop(
        self, low: Value, high: Value, step: int, carried: Sequence[Value], hint: str
    ) -> AbstractContextManager[tuple[Value, list[Value], list[Value], list[Value]]]:
        """A loop with carried tiles; see `TileBuilder.loop`."""
        raise NotImplementedError

    def once(self, kind: str, key: tuple, make: Callable[[], Operation], hint: str | None = None) -> Value:
        """The value known under a key, or a new operation's."""
        for scope in reversed(self.known):
            if (kind, key) in scope:
                return scope[kind, key]
        value = self.known[-1][kind, key] = self._make(kind, make, hint)
        return value

    def outer(self, kind: str, key: tuple, make: Callable[[], Operation], hint: str | None = None) -> Value:
        """Like `once`, but in the kernel's outermost block: for what no loop changes."""
        if (kind, key) not in self.known[0]:
            self.known[0][kind, key] = self._make(kind, make, hint, outer=True)
        return self.known[0][kind, key]

    # -- index arithmetic

    def index(self, value: int) -> Value:
        return self.once("index", (value,), lambda: arith.ConstantOp(IntegerAttr(value, IndexType())))

    def iop(self, op: str, lhs: Value, rhs: Value | int, hint: str | None = None) -> Value:
        right = self.index(rhs) if isinstance(rhs, int) and not self.counting else rhs
        return self.once("iop", (op, lhs, right), lambda: _INDEX_OPS[op](lhs, right), hint)

    def block_id(self, axis: int, hint: str) -> Value:
        return self.once("bid", (axis,), lambda: tile.BlockIdOp(axis), hint)

    def extent(self, array: Value, axis: int, hint: str) -> Value:
        return self.once("extent", (array, axis), lambda: tile.ExtentOp(array, axis), hint)

    # -- memory

    def slice(self, source: Value, axis: int, start: int, extent: int | Value, hint: str | None = None) -> Value:
        key = (source, axis, start, extent)
        return self.outer("slice", key, lambda: tile.SliceOp(source, axis, start, extent), hint)

    def load(
        self, view: Value, index: Sequence[Value], shape: Sequence[int], checked: bool, latency: int | None
    ) -> Value:
        return self.once("load", (view, *index), lambda: tile.LoadOp(view, index, shape, checked, latency))

    def cells(self, block: Value, axis: int, rank: int, extent: int, hint: str) -> Value:
        key = (block, axis, rank, extent)
        return self.outer("cells", key, lambda: tile.CellsOp(block, rank, axis, extent), hint)

    def wrap(self, cells: Value, shift: int, period: int, origin: int, hint: str) -> Value:
        key = (cells, shift, period, origin)
        return self.outer("wrap", key, lambda: tile.WrapOp(cells, shift, period, origin), hint)

    def gather(self, view: Value, index: Sequence[Value], shape: Sequence[int], checked: bool) -> Value:
        return self.once("load", (view, *index), lambda: tile.GatherOp(view, index, shape, checked))

    def store(self, value: Value, view: Value, index: Sequence[Value], checked: bool) -> None:
        self._make("store", lambda: tile.StoreOp(value, view, index, checked))

    # -- parts of tiles

    def extract(self, raw: Value, part: int) -> Value:
        """One lane of a tile of pairs."""
        at = [0] * (len(self.shape) - 1) + [part]
        return self.once("extract", (raw, part), lambda: tile.ExtractOp(raw, at, self.shape))

    def cat(self, lhs: Value, rhs: Value, axis: int) -> Value:
        return self._make("cat", lambda: tile.CatOp(lhs, rhs, axis))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        return self.once("reshape", (value, tuple(shape)), lambda: tile.ReshapeOp(value, shape))

    # -- values

    def constant(self, value: float) -> Value:
        raise NotImplementedError

    def splat(self, scalar: Value) -> Value:
        raise NotImplementedError

    def map_op(self, op: str, args: Sequence[Value]) -> Callable[[], Operation]:
        raise NotImplementedError

    def map(self, op: str, *args: Value) -> Value:
        key = (op, *args)
        if op in _COMMUTATIVE and hash(args[0]) > hash(args[1]):
            key = (op, args[1], args[0])
        return self.once("map", key, self.map_op(op, args))

    def add(self, lhs: Value | None, rhs: Value) -> Value:
        return rhs if lhs is None else self.map("add", lhs, rhs)

    def product(self, lhs: Value, rhs: Value) -> Value:
        """A product of its own each time: only a single use becomes part of a fused multiply-add."""
        return self._make("map", self.map_op("mul", (lhs, rhs)))

    def scaled_add(self, acc: Value | None, factor: float, value: Value) -> Value:
        """acc + factor * value, in the form that becomes one instruction."""
        if factor == 1.0:
            return self.add(acc, value)
        if factor == -1.0:
            return self.map("neg", value) if acc is None else self.map("sub", acc, value)
        return self.add(acc, self.product(self.constant(factor), value))

    def expression(
        self,
        node: Node,
        leaf: Callable[[Node], Value],
        scalars: Sequence[Value],
        context: Hashable = None,
    ) -> Value:
        """An expression in the order of its operands.

        Args:
            leaf: gives the value of an access.
            context: names the place it is evaluated at (row, plane, ...); equal nodes are one value within it.
        """
        # Iterative: sums of thousands of terms nest as deeply.
        stack = [node]
        while stack:
            top = stack[-1]
            if self._known_node(context, top) is not None:
                stack.pop()
                continue
            missing = [a for a in top.args if self._known_node(context, a) is None]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            self.known[-1]["node", (context, top.id)] = self._evaluate(top, leaf, scalars, context)
        return self._known_node(context, node)

    def _known_node(self, context: Hashable, node: Node) -> Value | None:
        key = ("node", (context, node.id))
        return next((scope[key] for scope in reversed(self.known) if key in scope), None)

    def _evaluate(
        self, node: Node, leaf: Callable[[Node], Value], scalars: Sequence[Value], context: Hashable
    ) -> Value:
        if node.op == "access":
            return leaf(node)
        if node.op == "const":
            return self.constant(node.value)
        if node.op == "scalar":
            return self.splat(scalars[node.value])
        if node.op == "bool":
            one, zero = self.constant(1.0), self.constant(0.0)
            return self.map("gt", one, zero) if node.value else self.map("gt", zero, one)
        args = [self._known_node(context, a) for a in node.args]
        op = {"min": "minnum", "max": "maxnum"}.get(node.op, node.op) if self.fast else node.op
        return self.map(op, *args)


class TileBuilder(Numbering):
    """Appends operations to the innermost open block.

    Args:
        block: body of the kernel.
        element: element type of all tiles.
        loads_first: a loop's loads stand before its arithmetic, in the order of their first use.
    """

    def __init__(
        self,
        block: Block,
        element: AnyFloat,
        shape: Sequence[int],
        fast: bool = False,
        loads_first: bool = False,
    ) -> None:
        super().__init__(block.args, shape, fast)
        self.blocks = [block]
        self.loads_first = loads_first
        self.element = element
        self.type = tile.TileType(shape, element)

    def _make(self, kind: str, make: Callable[[], Operation], hint: str | None = None, outer: bool = False) -> Value:
        op = make()
        self.blocks[0 if outer else -1].add_op(op)
        if not op.results:
            return None
        if hint:
            op.results[0].name_hint = hint_of(hint)
        return op.results[0]

    def hint(self, value: Value, name: str) -> None:
        value.name_hint = value.name_hint or hint_of(name)

    def map_op(self, op: str, args: Sequence[Value]) -> Callable[[], Operation]:
        return lambda: tile.MapOp(op, args, self.type)

    def splat(self, scalar: Value) -> Value:
        return self.outer("splat", (scalar,), lambda: tile.SplatOp(scalar, self.type))

    def constant(self, value: float) -> Value:
        # Shared by the whole kernel, and told apart by sign: 0.0 == -0.0.
        key = ("const", (value, str(value)))
        if key not in self.known[0]:
            op = tile.ConstantOp(FloatAttr(value, self.element), self.type)
            first = self.blocks[0].first_op
            if first is None:
                self.blocks[0].add_op(op)
            else:
                self.blocks[0].insert_op_before(op, first)
            self.known[0][key] = op.result
        return self.known[0][key]

    @contextmanager
    def loop(
        self, low: Value, high: Value, step: int, carried: Sequence[Value], hint: str
    ) -> Iterator[tuple[Value, list[Value], list[Value], list[Value]]]:
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
        ends: list[Value] = []
        results: list[Value] = []
        self.blocks.append(block)
        self.known.append({})
        yield block.args[0], list(block.args[1:]), ends, results
        block.add_op(scf.YieldOp(*ends))
        if self.loads_first:
            _hoist_loads(block)
        self.blocks.pop()
        self.known.pop()
        op = scf.ForOp(low, high, step_value, list(carried), Region(block))
        self.blocks[-1].add_op(op)
        for result, start in zip(op.results, carried, strict=True):
            result.name_hint = start.name_hint
        results.extend(op.results)


def _hoist_loads(block: Block) -> None:
    early = [op for op in block.ops if isinstance(op, tile.LoadOp | tile.GatherOp | arith.ConstantOp)]
    first = next(op for op in block.ops if op not in early)
    for op in early:
        op.detach()
        block.insert_op_before(op, first)
