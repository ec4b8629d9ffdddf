"""Counts on level 3: what the steady state of a kernel does for each cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block

from stencil_dsl.dialects import tile
from stencil_dsl.schedule.problem import Lowered


@dataclass(frozen=True)
class Counts:
    """Per cell of the interior, in the main loop (or the whole body where there is none).

    Attributes:
        loads: elements loaded.
        load_instructions: tile loads times elements over cells, counting a pair as one.
        arithmetic: floating point instructions, a fused multiply-add as one.
        operations: elementwise operations by name, before fusing.
        carried: tiles carried through the loop, for one compute tile each.
        live: tiles that are loaded or carried in a trip: a bound on what registers must hold.
    """

    loads: float
    load_instructions: float
    arithmetic: float
    operations: dict[str, float]
    carried: int
    live: int


def _body(lowered: Lowered) -> tuple[Block, int]:
    """The block that runs most often, and how many tiles it carries."""
    kernel = next(op for op in lowered.module.ops if isinstance(op, tile.KernelOp))
    entry = kernel.body.block
    for op in entry.ops:
        if isinstance(op, scf.ForOp):
            return op.body.block, len(op.iter_args)
    return entry, 0


def _fused(block: Block) -> int:
    """Multiplications that become part of an addition."""
    fused = 0
    for op in block.ops:
        if not (isinstance(op, tile.MapOp) and op.kind.data in ("add", "sub")):
            continue
        for operand in op.args:
            owner = operand.owner
            if isinstance(owner, tile.MapOp) and owner.kind.data == "mul" and len(list(operand.uses)) == 1:
                fused += 1
                break
    return fused


def count(lowered: Lowered) -> Counts:
    """Count a lowered kernel."""
    block, carried = _body(lowered)
    operations: Counter[str] = Counter()
    stored = loaded = loads = map_elements = 0
    for op in block.ops:
        if isinstance(op, tile.StoreOp):
            stored += prod(op.tile.type.extents)  # type: ignore[attr-defined]
        elif isinstance(op, tile.LoadOp):
            loaded += prod(op.result.type.extents)  # type: ignore[attr-defined]
            loads += 1
        elif isinstance(op, tile.MapOp):
            operations[op.kind.data] += 1
            map_elements = prod(op.result.type.extents)  # type: ignore[attr-defined]
    outputs = len({p.index for p in lowered.params if p.kind == "output"})
    cells = stored / max(1, outputs)
    tiles = cells / map_elements if map_elements else 1.0
    free = operations["neg"] + operations["abs"]
    arithmetic = sum(operations.values()) - _fused(block) - free
    return Counts(
        loads=loaded / cells,
        load_instructions=loaded / cells / lowered.pair,
        arithmetic=arithmetic / tiles,
        operations={k: v / tiles for k, v in sorted(operations.items())},
        carried=carried,
        live=carried + loads * lowered.pair,
    )
