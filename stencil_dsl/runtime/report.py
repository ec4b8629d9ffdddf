"""`Kernel.report`: what a kernel does a cell, as written and after scheduling, and what it compiled to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.dialects import tile

if TYPE_CHECKING:
    pass

AXES = {1: "z", 2: "xz", 3: "xyz"}
# Signs and logic are no floating-point work, as in the pass roofline.
FREE = frozenset({"neg", "and", "or", "xor", "not"})


@dataclass(frozen=True)
class Work:
    """What one cell costs in the part of a level-3 kernel that does most of the work.

    Attributes:
        place: "loop" (one trip of the main loop) or "kernel" (a kernel without loop).
        cells: output cells that one trip, or one block, computes.
        operations: kind -> operations a cell.
        loads: elements loaded a cell.
    """

    place: str
    cells: int
    operations: dict[str, float]
    loads: float

    @property
    def flops(self) -> float:
        """Floating-point operations a cell."""
        return sum(n for kind, n in self.operations.items() if kind not in FREE)


def count_work(module: ModuleOp) -> Work:
    """Count the elementwise operations and loads of a level-3 module, in its largest loop if it has one."""
    kernel = next(op for op in module.walk() if isinstance(op, tile.KernelOp))
    loops = [op for op in kernel.walk() if isinstance(op, scf.ForOp)]
    region = max((op.body for op in loops), key=_size, default=kernel.body)
    operations: Counter[str] = Counter()
    loaded, stored = 0, Counter[str]()
    for op in region.walk():
        if isinstance(op, tile.MapOp):
            operations[op.kind.data] += _elements(op.result.type)
        elif isinstance(op, tile.LoadOp):
            loaded += _elements(op.result.type)
        elif isinstance(op, tile.StoreOp):
            stored[_array(op)] += _elements(op.tile.type)
    cells = max(stored.values(), default=0) or 1
    # An output may be several parameters (one a row and trip), and several outputs are stored a cell.
    outputs = {name.rstrip("_0123456789") for name in stored}
    cells = sum(stored.values()) // max(1, len(outputs)) or cells
    per_cell = {kind: n / cells for kind, n in operations.most_common()}
    return Work("loop" if loops else "kernel", cells, per_cell, loaded / cells)
