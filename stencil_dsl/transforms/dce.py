"""Pass `stencil-dce`: remove operations of a stencil body whose values nobody uses."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from stencil_dsl.transforms import analysis


def remove_dead_ops(apply: stencil.ApplyOp) -> bool:
    """Remove pure operations without users from the body; True if there were any.

    One sweep from the back suffices: an operation's users stand behind it, so they are gone by the time
    the operation itself is looked at.
    """
    block = apply.region.block
    changed = False
    for op in reversed(list(block.ops)):
        if is_trivially_dead(op):
            block.erase_op(op)
            changed = True
    return changed


@dataclass(frozen=True)
class StencilDcePass(ModulePass):
    """Dead code elimination inside stencil.apply only.

    The operands of the apply stay as they are, also those that become unread: they are the kernel's
    signature. An access that dies here no longer widens the footprint.
    """

    name = "stencil-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in analysis.applies(op):
            if remove_dead_ops(apply):
                analysis.forget_facts(apply)
