"""Pass `roofline`: operations, loads and compulsory bytes per grid point."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.meaning import NUMPY_FUNCTION

# Free: a sign is an operand modifier, and i1 logic is no floating-point work.
FREE = frozenset({"arith.negf", "arith.andi", "arith.ori", "arith.xori"})
COUNTED = (frozenset(NUMPY_FUNCTION) | {"arith.cmpf"}) - FREE

_SUM = (arith.AddfOp, arith.SubfOp)


def varying_values(apply: stencil.ApplyOp) -> set[SSAValue]:
    """Values of the body that depend on a field; all others are the same at every point (coefficients)."""
    varying: set[SSAValue] = set(analysis.field_arguments(apply))
    for op in apply.region.block.ops:
        if any(o in varying for o in op.operands):
            varying.update(op.results)
    return varying


def _terms(value: SSAValue) -> list[SSAValue]:
    """The terms of a sum, through additions, subtractions and signs; a value that is no sum is one term."""
    terms: list[SSAValue] = []
    stack = [value]
    while stack:
        op = stack.pop().owner
        if isinstance(op, _SUM):
            stack += [op.rhs, op.lhs]
        elif isinstance(op, arith.NegfOp):
            stack.append(op.operand)
        elif isinstance(op, Operation):
            terms.append(op.results[0])
    return terms


def _has_coefficient(term: SSAValue, varying: set[SSAValue]) -> bool:
    """True for coefficient * x, x * coefficient, x / coefficient and for a coefficient alone."""
    op = term.owner
    if term not in varying:
        return True
    if isinstance(op, arith.MulfOp):
        return op.lhs not in varying or op.rhs not in varying
    return isinstance(op, arith.DivfOp) and op.rhs not in varying


def flops(apply: stencil.ApplyOp) -> int:
    """Floating-point operations per point, as the body stands."""
    return sum(op.name in COUNTED for op in apply.region.block.ops)


def flops_per_access(apply: stencil.ApplyOp) -> int:
    """Floating-point operations per point if every term of a weighted sum had a coefficient of its own.

    `c * (a + b)` counts as `c * a + c * b`. Where some terms under a coefficient have one already
    (`c * (a - 6 * b)`) theirs absorbs it; where all have one, the outer product stays as written.
    """
    varying = varying_values(apply)
    extra = 0
    for op in apply.region.block.ops:
        if not isinstance(op, arith.MulfOp) or (op.lhs in varying) == (op.rhs in varying):
            continue
        terms = _terms(op.lhs if op.lhs in varying else op.rhs)
        bare = sum(not _has_coefficient(t, varying) for t in terms)
        extra += max(bare - 1, 0)
    return flops(apply) + extra


@dataclass(frozen=True)
class RooflinePass(ModulePass):
    """Store `roofline = {flops, flops_per_access, accesses, bytes}`, all i64 per grid point.

    `flops`: each addition, subtraction, product, quotient, minimum, maximum, absolute value, comparison,
    select and function of `math` is one; constants, signs and logic are free. `flops_per_access`: the same
    with coefficients distributed over the sums that they multiply, the convention of tables that count
    2 * accesses - 1 for a linear stencil. `accesses`: distinct (field, offset) pairs. `bytes`: every field
    that is read moves once and every output moves once, whatever the caches do.

    The body is counted as it stands: run `stencil-cse` and `stencil-dce` first.
    """

    name = "roofline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in analysis.applies(op):
            accesses = analysis.accesses(apply)
            arrays = len({field for field, _ in accesses}) + len(apply.res)
            facts = {
                "flops": flops(apply),
                "flops_per_access": flops_per_access(apply),
                "accesses": len(accesses),
                "bytes": arrays * analysis.element_type(apply).size,
            }
            apply.attributes["roofline"] = DictionaryAttr({k: IntegerAttr(v, i64) for k, v in facts.items()})
