"""Pass `stencil-cse`: compute every distinct value of a stencil body once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from stencil_dsl.transforms import analysis

# a + b and b + a, a * b and b * a give the same bits in IEEE arithmetic, and bitwise logic on i1 commutes
# too. Minimum and maximum are left alone: they differ in the sign of a zero (on NumPy, by argument order).
COMMUTATIVE: tuple[type[Operation], ...] = (
    arith.AddfOp,
    arith.MulfOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)

# a < b is b > a, exactly: predicates by number with their operands exchanged.
_SWAPPED = {
    arith.CMPF_COMPARISON_OPERATIONS.index(a): arith.CMPF_COMPARISON_OPERATIONS.index(b)
    for a, b in (
        ("ogt", "olt"), ("oge", "ole"), ("olt", "ogt"), ("ole", "oge"),
        ("ugt", "ult"), ("uge", "ule"), ("ult", "ugt"), ("ule", "uge"),
    )
}  # fmt: skip


def _key(op: Operation, number: dict[SSAValue, int]) -> Hashable:
    """Equal keys mean equal values. Operands are numbered in order of definition, to sort them stably."""
    operands = [number[o] for o in op.operands]
    # Inherent facts may be properties or attributes, and an absent fastmath flag means "none".
    facts = {k: v for k, v in (op.attributes | op.properties).items() if k not in ("fastmath", "loc_hint")}
    fastmath = op.properties.get("fastmath", op.attributes.get("fastmath"))
    if fastmath is not None and fastmath != arith.FastMathFlagsAttr("none"):
        facts["fastmath"] = fastmath
    if isinstance(op, stencil.AccessOp):
        return (op.name, operands[0], analysis.offset_of(op))
    if isinstance(op, arith.CmpfOp):
        predicate = op.predicate.value.data
        if operands[0] > operands[1]:
            operands.reverse()
            predicate = _SWAPPED.get(predicate, predicate)
        facts.pop("predicate")
        return (op.name, predicate, tuple(operands), frozenset(facts.items()))
    if isinstance(op, COMMUTATIVE):
        operands.sort()
    types = tuple(r.type for r in op.results)
    return (op.name, tuple(operands), types, frozenset(facts.items()))


def merge_equal_ops(apply: stencil.ApplyOp) -> bool:
    """Let the first of several equal pure operations serve all their users; True if anything merged.

    One forward sweep suffices: operands are numbered by the operation that is kept for them.
    """
    block = apply.region.block
    number: dict[SSAValue, int] = {arg: i for i, arg in enumerate(block.args)}
    known: dict[Hashable, Operation] = {}
    changed = False
    for op in list(block.ops):
        # Operations with regions, or with effects, keep their place; their results still get numbers.
        mergeable = op.has_trait(Pure) and not op.regions and op.results and op.next_op is not None
        mergeable = mergeable and all(o in number for o in op.operands)
        kept = known.setdefault(_key(op, number), op) if mergeable else op
        if kept is not op:
            for old, new in zip(op.results, kept.results, strict=True):
                old.replace_all_uses_with(new)
            block.erase_op(op)
            changed = True
            continue
        for result in op.results:
            number[result] = len(number)
    return changed


@dataclass(frozen=True)
class StencilCsePass(ModulePass):
    """Common subexpressions inside stencil.apply, accesses included; every value keeps its bits.

    Sums and products are matched in either operand order, comparisons also when both sides are exchanged.
    Nothing is reassociated: (a + b) + c and a + (b + c) stay different. The text of what is kept does not
    change, so operands stay in the order in which they were written.
    """

    name = "stencil-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in analysis.applies(op):
            if merge_equal_ops(apply):
                analysis.forget_facts(apply)
