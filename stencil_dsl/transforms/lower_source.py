"""Level 1 to level 2: Python's operators become the stencil, arith and math dialects.

A field is a value of the stencil dialect (`!stencil.temp`) from the start: `stencil.load` needs bounds,
and how large the arrays are is not known before a kernel is launched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, stencil
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects import source

# An integer power up to this exponent is a chain of multiplications; beyond, the library's pow.
MAX_UNROLLED_POWER = 64

_BINARY: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
    "pow": math.PowFOp,
}
_UNARY: dict[str, Callable[[SSAValue], Operation]] = {
    "neg": arith.NegfOp,
    "abs": math.AbsFOp,
    "sqrt": math.SqrtOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "tanh": math.TanhOp,
    "floor": math.FloorOp,
}
_BOOLEAN: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {"and": arith.AndIOp, "or": arith.OrIOp}
# Ordered predicates are false for NaN and the unordered "not equal" is true, as in Python.
_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


@dataclass(frozen=True)
class LowerSourcePass(ModulePass):
    """Replace every `source.stencil` by a `func.func` around one `stencil.apply`.

    The function takes all fields, then all scalars, and returns one `!stencil.temp` per output; its
    attributes `fields`, `scalars` and `outputs` hold the names. Conditions become `arith.select`, with
    both sides evaluated; integer powers up to 64 become multiplications.
    """

    name = "lower-source"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for child in list(op.walk()):
            if isinstance(child, source.StencilOp):
                block = child.parent
                assert block is not None
                block.insert_op_before(lower_stencil(child), child)
                child.detach()
                child.erase()


def lower_stencil(op: source.StencilOp) -> func.FuncOp:
    """The level-2 function of a level-1 stencil, which stays as it is."""
    body = op.body.block
    types = [_lower_type(argument.type) for argument in body.args]
    results = body.last_op
    assert isinstance(results, source.YieldOp)
    result_types = [stencil.TempType(IntAttr(len(op.indices)), value.type) for value in results.values]

    entry, inner = Block(arg_types=types), Block(arg_types=types)
    for block in (entry, inner):
        for argument, old in zip(block.args, body.args, strict=True):
            argument.name_hint = old.name_hint
    BodyLowering(inner, dict(zip(body.args, inner.args, strict=True))).run(body)
    apply = stencil.ApplyOp(list(entry.args), inner, result_types)
    entry.add_ops([apply, func.ReturnOp(*apply.res)])
    function = func.FuncOp(op.sym_name.data, (types, result_types), Region(entry))
    for key in ("fields", "scalars", "outputs"):
        names: ArrayAttr[StringAttr] = getattr(op, key)
        function.attributes[key] = names
    return function


def _lower_type(type: Attribute) -> Attribute:
    return stencil.TempType(type.ndim, type.element_type) if isinstance(type, source.FieldType) else type


class BodyLowering:
    """Lowers the operations of one body, in order, to the end of a block."""

    def __init__(self, block: Block, values: dict[SSAValue, SSAValue]) -> None:
        self.block = block
        self.values = values
        self.at: StringAttr | None = None

    def run(self, body: Block) -> None:
        for op in body.ops:
            if isinstance(op, source.ConstantOp):
                continue  # written before its first use, which an exponent may not have
            if isinstance(op, source.YieldOp):
                results = [self.value(operand) for operand in op.operands]
                self.block.add_op(stencil.ReturnOp(results))
                return
            self.define(op)

    def value(self, old: SSAValue) -> SSAValue:
        """The lowered form of a value."""
        if old not in self.values:
            assert isinstance(old.owner, source.ConstantOp)
            self.define(old.owner)
        return self.values[old]

    def define(self, op: Operation) -> None:
        """Lower one operation with one result."""
        exponent = unrolled_exponent(op)
        operands = [self.value(operand) for operand in (op.operands if exponent is None else op.operands[:1])]
        self.at = getattr(op, "at", None)
        result = self.lower(op, operands) if exponent is None else self.integer_power(operands[0], exponent)
        self.values[op.results[0]] = result
        if result.name_hint is None:
            result.name_hint = op.results[0].name_hint

    def add(self, op: Operation) -> SSAValue:
        """Append an operation with the place of the one being lowered."""
        if self.at is not None:
            file, line, column = self.at.data.rsplit(":", 2)
            op.location = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(int(column)))
        self.block.add_op(op)
        return op.results[0]

    def lower(self, op: Operation, operands: list[SSAValue]) -> SSAValue:
        """The level-2 value of one level-1 operation."""
        match op:
            case source.AccessOp():
                return self.add(stencil.AccessOp(operands[0], op.offsets))
            case source.ConstantOp():
                return self.add(arith.ConstantOp(op.value))
            case source.UnaryOp() if op.kind.data == "not":
                true = self.add(arith.ConstantOp(IntegerAttr(1, i1)))
                return self.add(arith.XOrIOp(operands[0], true))
            case source.UnaryOp():
                return self.add(_UNARY[op.kind.data](operands[0]))
            case source.BinaryOp():
                left, right = operands
                return self.add(_BINARY[op.kind.data](left, right))
            case source.CompareOp():
                return self.add(arith.CmpfOp(operands[0], operands[1], _PREDICATES[op.kind.data]))
            case source.BooleanOp():
                left, right = operands
                return self.add(_BOOLEAN[op.kind.data](left, right))
            case source.SelectOp():
                condition, first, second = operands
                return self.add(arith.SelectOp(condition, first, second))
        raise ValueError(f"lower-source: no level-2 form of {op.name}")

    def integer_power(self, base: SSAValue, exponent: int) -> SSAValue:
        """base**exponent by squaring; a negative exponent divides once, at the end."""
        if exponent <= 0:
            assert isinstance(base.type, Float64Type | Float32Type)
            one = self.add(arith.ConstantOp(FloatAttr(1.0, base.type)))
            if exponent == 0:
                return one
            return self.add(arith.DivfOp(one, self.integer_power(base, -exponent)))
        result: SSAValue | None = None
        while True:
            if exponent & 1:
                result = base if result is None else self.add(arith.MulfOp(result, base))
            exponent >>= 1
            if not exponent:
                assert result is not None
                return result
            base = self.add(arith.MulfOp(base, base))


def unrolled_exponent(op: Operation) -> int | None:
    """The exponent of a power that becomes multiplications, else None."""
    if isinstance(op, source.BinaryOp) and op.kind.data == "pow":
        exponent = op.rhs.owner
        if isinstance(exponent, source.ConstantOp):
            value = exponent.value.value.data
            if value.is_integer() and abs(value) <= MAX_UNROLLED_POWER:
                return int(value)
    return None
