"""Pass `fold-constants`: compute what is known at compile time, and drop operations that do nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IntegerAttr, ModuleOp, i1
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.meaning import NUMPY_COMPARISON, NUMPY_FUNCTION


def constant_value(value: SSAValue) -> float | bool | None:
    """The number behind an arith.constant of type f64, f32 or i1; None for every other value."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    attr = value.owner.value
    if isinstance(attr, FloatAttr) and isinstance(attr.type, Float32Type | Float64Type):
        return float(attr.value.data)
    if isinstance(attr, IntegerAttr) and attr.type == i1:
        return bool(attr.value.data)
    return None


def _is(value: SSAValue, number: float) -> bool:
    """True for the constant `number`, the sign of a zero included."""
    found = constant_value(value)
    return isinstance(found, float) and found == number and math.copysign(1.0, found) == math.copysign(1.0, number)


def _compute(op: Operation, operands: Sequence[float | bool]) -> float | bool | None:
    """The value of `op` on constants, in float64; None where nothing is to be folded."""
    import numpy as np

    if isinstance(op, arith.CmpfOp):
        predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
        name = NUMPY_COMPARISON.get(predicate)
    else:
        name = NUMPY_FUNCTION.get(op.name)
    if name is None:
        return None
    if name in ("maximum", "minimum") and operands[0] == operands[1] == 0.0:
        # Where the two zeros differ in sign, NumPy and IEEE 754-2019 part ways.
        first, second = (math.copysign(1.0, x) for x in operands)
        return operands[0] if first == second else None
    with np.errstate(all="ignore"):
        result = getattr(np, name)(*(np.bool_(x) if isinstance(x, bool) else np.float64(x) for x in operands))
    if result.dtype == np.bool_:
        return bool(result)
    # IEEE fixes neither sign nor payload of a fresh NaN: leave its making to the machine that runs the code.
    return None if np.isnan(result) else float(result)


def _replacement(op: Operation) -> SSAValue | None:
    """An existing value that has the bits of `op`'s result for every operand, signed zeros and NaN included.

    x + 0.0 is not among them (it turns -0.0 into +0.0), nor x * 0.0, nor x - x.
    """
    match op:
        case arith.MulfOp():
            if _is(op.rhs, 1.0):
                return op.lhs
            return op.rhs if _is(op.lhs, 1.0) else None
        case arith.DivfOp():
            return op.lhs if _is(op.rhs, 1.0) else None
        case arith.SubfOp():
            return op.lhs if _is(op.rhs, 0.0) else None
        case arith.AddfOp():
            if _is(op.rhs, -0.0):
                return op.lhs
            return op.rhs if _is(op.lhs, -0.0) else None
        case arith.NegfOp():
            inner = op.operand.owner
            return inner.operand if isinstance(inner, arith.NegfOp) else None
        case arith.SelectOp():
            condition = constant_value(op.cond)
            return None if condition is None else (op.lhs if condition else op.rhs)
    return None


def _constant(value: float | bool, like: SSAValue) -> arith.ConstantOp:
    if isinstance(value, bool):
        return arith.ConstantOp(IntegerAttr(int(value), i1))
    assert isinstance(like.type, Float32Type | Float64Type)
    # FloatAttr rounds to its type: the one rounding of the result.
    return arith.ConstantOp(FloatAttr(value, like.type))


def fold(apply: stencil.ApplyOp) -> bool:
    """Fold constants in the body of one apply; True if anything changed. Leaves dead operations behind."""
    block = apply.region.block
    changed = False
    for op in list(block.ops):
        if len(op.results) != 1 or not op.operands or op.regions:
            continue
        result = op.results[0]
        if result.first_use is None:
            continue
        new = _replacement(op)
        if new is None:
            operands = [value for o in op.operands if (value := constant_value(o)) is not None]
            if len(operands) < len(op.operands):
                continue
            number = _compute(op, operands)
            if number is None:
                continue
            constant = _constant(number, result)
            constant.result.name_hint = result.name_hint
            block.insert_op_before(constant, op)
            new = constant.result
        result.replace_all_uses_with(new)
        changed = True
    return changed


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """Evaluate operations on constants in float64 and round the result to the element type once.

    Sums, products, quotients and square roots therefore get the very bits that the operation has in the
    element type (rounding float64 to float32 afterwards is harmless for them); the other functions of `math`
    get the float64 value, rounded, which in float32 may be one unit closer than a float32 library function.

    Also dropped: x * 1, x / 1, x - 0.0, x + (-0.0), -(-x) and a select whose condition is known.
    """

    name = "fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in analysis.applies(op):
            if fold(apply):
                analysis.forget_facts(apply)
