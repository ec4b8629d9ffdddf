"""Emits a level-3 module as a Python file of one cuTile kernel and the host function that launches it.

The file is what gets compiled, what the interpreter runs, and what a person reads; it needs nothing of this package.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from stencil_dsl.dialects import simt, tile
from stencil_dsl.emit.calls import call, call_operand, library_lines
from stencil_dsl.emit.gathers import GATHERS, gather_operand
from stencil_dsl.emit.names import Namer
from stencil_dsl.schedule.problem import Lowered, Problem
from stencil_dsl.schedule.schedule import Schedule

_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_CALL = {"pow": "ct.pow", "select": "ct.where", "minnum": "ct.minimum", "maxnum": "ct.maximum"}
_INDEX = {
    arith.AddiOp: "{} + {}",
    arith.SubiOp: "{} - {}",
    arith.MuliOp: "{} * {}",
    arith.MinSIOp: "min({}, {})",
}
_INDEX |= {arith.FloorDivSIOp: "{} // {}", arith.CeilDivSIOp: "ct.cdiv({}, {})"}
_ATOM = 9
_INLINE_WIDTH = 96


@dataclass(frozen=True)
class Text:
    """An expression and how tightly it binds."""

    text: str
    level: int = _ATOM

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def float_bits(value: float, dtype: str) -> int:
    """The bits of a value as a signed integer of the same width."""
    return (
        struct.unpack("<q", struct.pack("<d", value))[0]
        if dtype == "float64"
        else struct.unpack("<i", struct.pack("<f", value))[0]
    )


def _in_float32(value: float) -> bool:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        return False


class Emitter:
    """Turns the kernel of one level-3 module into lines of Python."""

    def __init__(self, problem: Problem, schedule: Schedule, lowered: Lowered) -> None:
        self.problem, self.schedule, self.lowered = problem, schedule, lowered
        self.names = Namer()
        self.inlined: dict[SSAValue, Text] = {}
        # Tiles of one repeated value are emitted with extents of 1 and stretched where the shape matters.
        self.thin: set[SSAValue] = set()
        self.lines: list[str] = []
        self.depth = 1
        self.int_type = "ct.int64" if problem.dtype == "float64" else "ct.int32"

    # -- text of values

    def text(self, value: SSAValue) -> Text:
        return self.inlined[value] if value in self.inlined else Text(self.names.names[value])

    def ref(self, value: SSAValue) -> str:
        return self.text(value).text

    def full(self, value: SSAValue) -> str:
        """A tile of all its extents, for operations that do not stretch their operands."""
        if value not in self.thin:
            return self.ref(value)
        return f"ct.broadcast_to({self.ref(value)}, {self.shape(value)})"

    def index_tuple(self, values) -> str:
        items = [self.ref(v) for v in values]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def define(self, value: SSAValue, expr: Text, hint: str, inline: bool) -> None:
        """Name a value, or keep its text for its one use nearby."""
        if value in self.inlined:
            return
        uses = list(value.uses)
        same_block = len(uses) == 1 and uses[0].operation.parent_block() is value.owner.parent_block()  # type: ignore[union-attr]
        if inline and same_block and len(expr.text) <= _INLINE_WIDTH:
            self.inlined[value] = expr
        elif uses:
            self.line(f"{self.names.bind(value, hint)} = {expr.text}")

    # -- operations

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr)
            self.inlined[op.result] = Text(str(op.value.value.data))
        elif type(op) in _INDEX:
            self.index_op(op)
        elif isinstance(op, tile.StoreOp):
            check = "" if op.checked.value.data else ", check_bounds=False"
            index = self.index_tuple(op.index)
            self.line(f"ct.store({self.ref(op.array)}, {index}, {self.full(op.tile)}{check}, allow_tma=False)")
        elif isinstance(op, scf.ForOp):
            self.loop(op)
        elif isinstance(op, scf.YieldOp):
            self.carry(op)
        elif isinstance(op, simt.CallOp):
            call(self, op)
        else:
            value = op.results[0]
            expr, hint, inline = self.value_of(op)
            self.define(value, expr, hint, inline)

    def index_op(self, op: Operation) -> None:
        lhs, rhs = (self.text(o) for o in op.operands)
        form = _INDEX[type(op)]
        call = "(" in form
        text = form.format(lhs.at(0 if call else 2), rhs.at(0 if call else 3))
        self.define(op.results[0], Text(text, _ATOM if call else 1), "i", op.results[0].name_hint is None)

    def value_of(self, op: Operation) -> tuple[Text, str, bool]:
        """Text of a single-result operation, a name for it, and whether it may be folded into its use."""
        match op:
            case tile.BlockIdOp():
                return Text(f"ct.bid({op.axis.value.data})"), "b", False
            case tile.ExtentOp():
                return Text(f"{self.ref(op.array)}.shape[{op.axis.value.data}]"), "n", False
            case tile.SliceOp():
                feeds_slice = all(isinstance(u.operation, tile.SliceOp) for u in op.result.uses)
                return self.slice(op), "view", feeds_slice
            case tile.LoadOp():
                return self.load(op), "t_" + self.ref(op.array), False
            case tile.ConstantOp():
                self.thin.add(op.result)
                return self.constant(op)
            case tile.SplatOp():
                self.thin.add(op.result)
                return self.splat(op), "s", False
            case tile.MapOp():
                if all(a in self.thin for a in op.args):
                    self.thin.add(op.result)
                return self.map(op), "v", True
            case tile.ExtractOp():
                index = ", ".join(str(i) for i in op.index.get_values())
                text = f"ct.extract({self.ref(op.tile)}, ({index}), {self.shape(op.result)})"
                return Text(text), self.ref(op.tile) + "_" + index[-1], False
            case tile.CatOp():
                text = f"ct.cat(({self.full(op.lhs)}, {self.full(op.rhs)}), {op.axis.value.data})"
                return Text(text), "pair", True
            case tile.ReshapeOp():
                parts = any(isinstance(u.operation, tile.ExtractOp) for u in op.result.uses)
                text = f"ct.reshape({self.ref(op.tile)}, {self.shape(op.result)})"
                return Text(text), "pairs" if parts else "row", not parts
        text, hint = gather_operand(self, op) if isinstance(op, GATHERS) else call_operand(self, op)
        return Text(text), hint, False

    @staticmethod
    def shape(value: SSAValue) -> str:
        assert isinstance(value.type, tile.TileType)
        return str(value.type.extents)

    def slice(self, op: tile.SliceOp) -> Text:
        start = op.start.value.data
        if op.extent is not None:
            stop = str(start + op.extent.value.data)
        else:
            assert op.size is not None
            stop = f"{start} + {self.text(op.size).at(2)}" if start else self.ref(op.size)
        return Text(f"{self.ref(op.array)}.slice({op.axis.value.data}, {start}, {stop})")

    def load(self, op: tile.LoadOp) -> Text:
        options = "" if op.checked.value.data else ", check_bounds=False"
        if op.latency is not None:
            options += f", latency={op.latency.value.data}"
        index = self.index_tuple(op.index)
        return Text(f"ct.load({self.ref(op.array)}, {index}, {self.shape(op.result)}{options}, allow_tma=False)")

    def constant(self, op: tile.ConstantOp) -> tuple[Text, str, bool]:
        value = op.value.value.data
        if self.problem.dtype == "float32" or _in_float32(value):
            if value != value or value in (float("inf"), float("-inf")) or str(value) == "-0.0":
                return self.from_bits(value), "c", False
            self.inlined[op.result] = Text(repr(value), _ATOM if value >= 0 else 3)
            # A product's operand is enough; elsewhere a bare number would not be a tile.
            if all(isinstance(u.operation, tile.MapOp) and len(u.operation.args) == 2 for u in op.result.uses) and all(
                u.operation.operands[1 - u.index] is not op.result
                and not isinstance(u.operation.operands[1 - u.index].owner, tile.ConstantOp | tile.SplatOp)
                for u in op.result.uses
            ):
                return self.inlined[op.result], "c", True
            del self.inlined[op.result]
            rank = len(op.result.type.extents)  # type: ignore[attr-defined]
            dtype = f"ct.{self.problem.dtype}"
            return Text(f"ct.full({(1,) * rank}, {value!r}, dtype={dtype})"), "c", False
        return (
            self.from_bits(value),
            f"c_{value:.6g}".replace("-", "m").replace(".", "p").replace("+", ""),
            False,
        )

    def from_bits(self, value: float) -> Text:
        # cuTile rounds Python floats to float32 on their way in; integers arrive whole.
        rank = self.problem.ndim + (self.lowered.pair > 1)
        bits = float_bits(value, self.problem.dtype)
        full = f"ct.full({(1,) * rank}, {bits}, dtype={self.int_type})"
        return Text(f"ct.bitcast({full}, ct.{self.problem.dtype})")

    def splat(self, op: tile.SplatOp) -> Text:
        rank = self.problem.ndim + (self.lowered.pair > 1)
        full = f"ct.full({(1,) * rank}, {self.ref(op.scalar)}, dtype={self.int_type})"
        return Text(f"ct.bitcast({full}, ct.{self.problem.dtype})")

    def map(self, op: tile.MapOp) -> Text:
        kind, args = op.kind.data, [self.text(a) for a in op.args]
        if kind in _INFIX:
            sign, level = _INFIX[kind]
            return Text(f"{args[0].at(level)} {sign} {args[1].at(level + 1)}", level)
        if kind in _COMPARE or kind in _LOGIC:
            sign = _COMPARE.get(kind) or _LOGIC[kind]
            return Text(f"{args[0].at(_ATOM)} {sign} {args[1].at(_ATOM)}", 0)
        if kind == "neg":
            return Text(f"-{args[0].at(3)}", 3)
        if kind in ("min", "max"):
            return Text(f"ct.{kind}imum({args[0].text}, {args[1].text}, propagate_nan=True)")
        return Text(f"{_CALL.get(kind, 'ct.' + kind)}({', '.join(a.text for a in args)})")

    def loop(self, op: scf.ForOp) -> None:
        body = op.body.block
        for arg, start, result in zip(body.args[1:], op.iter_args, op.results, strict=True):
            name = self.names.bind(arg, "acc")
            self.names.names[result] = name
            self.line(f"{name} = {self.full(start)}")
        low, high, step = self.ref(op.lb), self.ref(op.ub), self.ref(op.step)
        bounds = f"{low}, {high}" + (f", {step}" if step != "1" else "")
        self.line(f"for {self.names.bind(body.args[0], 'x')} in range({bounds}):")
        self.depth += 1
        self.block(body)
        self.depth -= 1

    def carry(self, op: scf.YieldOp) -> None:
        loop = op.parent_op()
        assert isinstance(loop, scf.ForOp)
        targets = [self.names.names[a] for a in loop.body.block.args[1:]]
        ends = [self.ref(v) for v in op.operands]
        pairs = [(t, e) for t, e in zip(targets, ends, strict=True) if t != e]
        # All ends are computed before any is assigned: an end may be another's start.
        if len(pairs) == 1:
            self.line(f"{pairs[0][0]} = {pairs[0][1]}")
        elif pairs:
            temporaries = [self.names.fresh("next_" + t) for t, _ in pairs]
            for temporary, (_, end) in zip(temporaries, pairs, strict=True):
                self.line(f"{temporary} = {end}")
            for temporary, (target, _) in zip(temporaries, pairs, strict=True):
                self.line(f"{target} = {temporary}")

    # -- the file

    def kernel_lines(self) -> list[str]:
        kernel = next(op for op in self.lowered.module.ops if isinstance(op, tile.KernelOp))
        entry = kernel.body.block
        args = []
        for arg, param in zip(entry.args, self.lowered.params, strict=True):
            name = self.names.bind(arg, param.name)
            if param.kind == "scalar":
                args.append(f"{name}: ct.ScalarInt64" if self.problem.dtype == "float64" else name)
            else:
                flat = self.lowered.pair > 1 and (param.kind == "output" or param.single)
                static = "StaticOut" if flat else "Static"
                args.append(f"{name}: {static}" if self.schedule.static_shape else name)
        self.block(entry)
        hints = [f"occupancy={self.schedule.occupancy}"] * (self.schedule.occupancy is not None)
        hints += [f"num_worker_warps={self.schedule.warps}"] * (self.schedule.warps != 4)
        hints += [f"opt_level={self.schedule.opt_level}"] * (self.schedule.opt_level != 3)
        decorator = f"@ct.kernel({', '.join(hints)})" if hints else "@ct.kernel"
        return [decorator, f"def {kernel.sym_name.data}({', '.join(args)}):", *self.lines]


def emit(problem: Problem, schedule: Schedule, lowered: Lowered) -> str:
    """The Python file of a lowered stencil."""
    from stencil_dsl.emit.host import header_lines, host_lines

    emitter = Emitter(problem, schedule, lowered)
    kernel = emitter.kernel_lines()
    parts = [
        *library_lines(lowered, header_lines(problem, schedule, lowered)),
        "",
        "",
        *kernel,
        "",
        "",
        *host_lines(problem, lowered),
    ]
    return "\n".join(parts) + "\n"
