"""`Kernel.report`: what a kernel does a cell, as written and after scheduling, and what it compiled to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region

from stencil_dsl.dialects import simt, tile
from stencil_dsl.errors import ToolchainError
from stencil_dsl.runtime.validate import TOLERANCE
from stencil_dsl.schedule.schedule import AXES
from stencil_dsl.tilelib import TileLibrary
from stencil_dsl.tilelib.simt import count_operations
from stencil_dsl.transforms import analysis

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.toolchain import Resources

# Signs and logic are no floating-point work, as in the pass roofline.
FREE = frozenset({"neg", "and", "or", "xor", "not"})


@dataclass(frozen=True)
class Work:
    """What a cell costs in the part of a level-3 kernel that does most of the work.

    Attributes:
        loop: counted in the main loop; otherwise the kernel has none and all of it was counted.
        cells: output cells that one trip of the loop, or one block, computes.
        operations: kind -> elementwise operations a cell, the most frequent first.
        loads: elements loaded a cell.
    """

    loop: bool
    cells: int
    operations: Mapping[str, float]
    loads: float

    @property
    def flops(self) -> float:
        """Floating-point operations a cell; signs and logic are free."""
        return sum(n for kind, n in self.operations.items() if kind not in FREE)


def count_work(module: ModuleOp, outputs: int) -> Work:
    """Count a level-3 module of a stencil with so many outputs: in its largest loop that stores, or as a whole."""
    kernel = next(op for op in module.walk() if isinstance(op, tile.KernelOp))
    loops = [op.body for op in kernel.walk() if isinstance(op, scf.ForOp)]
    loops = [body for body in loops if any(isinstance(op, tile.StoreOp) for op in body.walk())]
    region = max(loops, key=_operations, default=kernel.body)
    kinds: Counter[str] = Counter()
    loaded = stored = 0
    for op in region.walk():
        if isinstance(op, tile.MapOp):
            kinds[op.kind.data] += _elements(op.result.type)
        elif isinstance(op, simt.CallOp):
            for kind, count in _called(module, op).items():
                kinds[kind] += count
        elif isinstance(op, tile.LoadOp | tile.GatherOp):
            loaded += _elements(op.result.type)
        elif isinstance(op, tile.StoreOp):
            stored += _elements(op.tile.type)
    cells = stored // outputs
    return Work(bool(loops), cells, {kind: n / cells for kind, n in kinds.most_common()}, loaded / cells)


def _called(module: ModuleOp, call: simt.CallOp) -> Counter[str]:
    """Operations of a device function, of all threads of the block together."""
    written = next(o for o in module.ops if isinstance(o, simt.LibraryOp) and o.sym_name.data == call.library.data)
    described = TileLibrary.from_json(json.loads(written.description.data) | {"name": call.library.data})
    export = described.export(call.callee.data)
    text = next(c.text for c in described.code if f"@{export.symbol}(" in c.text)
    threads = export.invocations * export.participants
    return Counter({kind: n * threads for kind, n in count_operations(text, export.symbol).items()})


def _operations(region: Region) -> int:
    return sum(1 for _ in region.walk())


def _elements(type: object) -> int:
    assert isinstance(type, tile.TileType)
    return prod(type.extents)


def report(kernel: Kernel) -> str:
    """A summary for people; needs a shape, or a schedule without one.

    Facts of the machine code are left out, and the reason is given, where the kernel is neither in the cache
    nor can be compiled here.
    """
    d = kernel.definition
    lines = [
        f"{kernel.name}: {d.ndim}-D stencil, {kernel.dtype}, {kernel.target}",
        *_table(_choices(kernel)),
        "a cell, as written",
        *_table(_as_written(kernel)),
        "a cell, scheduled",
        *_table(_scheduled(kernel)),
        "machine code",
        *_table(_machine_code(kernel)),
        *_strips(kernel),
        "values",
        *_table(_tolerance(kernel)),
    ]
    return "\n".join(lines)


def _table(rows: Iterator[tuple[str, object]]) -> list[str]:
    return [f"  {name:<18} {value}" for name, value in rows]


def _choices(kernel: Kernel) -> Iterator[tuple[str, object]]:
    d = kernel.definition
    yield "shape", _extents(kernel.shape) if kernel.shape else "known at run time"
    yield "schedule", kernel.schedule
    for name, halo in zip(d.fields, d.field_halos, strict=True):
        widths = (f"{axis} {lo}+{hi}" for axis, (lo, hi) in zip(AXES[d.ndim], halo, strict=True))
        yield f"halo of {name}", ", ".join(widths) + " (before+behind)"


def _as_written(kernel: Kernel) -> Iterator[tuple[str, object]]:
    facts = analysis.roofline(kernel.definition.stencil)
    yield "accesses", f"{facts['accesses']} distinct (field, offset)"
    yield "compulsory bytes", f"{facts['bytes']} (each field read once, each output written once)"
    yield "flops", f"{facts['flops']} as written"
    if "flops_per_access" in facts:
        yield "", f"{facts['flops_per_access']} with a coefficient of its own at every access"


def _scheduled(kernel: Kernel) -> Iterator[tuple[str, object]]:
    work = count_work(kernel.lowered.module, len(kernel.definition.outputs))
    kinds = ", ".join(f"{_number(n)} {kind}" for kind, n in work.operations.items())
    yield "flops", f"{_number(work.flops)}" + (f" ({kinds})" if kinds else "")
    yield "loads", f"{_number(work.loads)} elements"
    place = "a trip of the main loop" if work.loop else "a block; there is no loop"
    yield "counted over", f"{work.cells} cells: {place}"


def _machine_code(kernel: Kernel) -> Iterator[tuple[str, object]]:
    grid = kernel.lowered.grid
    yield "grid", _extents(grid) if grid else "known at run time"
    try:
        use, versions = kernel.resources, kernel.entry.tool_versions
    except ToolchainError as error:
        yield "not compiled", str(error).splitlines()[0]
        return
    yield "threads", f"{use.threads} a block"
    yield "registers", f"{use.registers} a thread"
    yield "spills", _spills(use)
    yield "stack", f"{use.stack_bytes} bytes a thread"
    yield "shared memory", f"{use.shared_bytes} bytes a block"
    if use.classes:
        yield "instructions", f"{use.instructions}: {_classes(use.classes)}"
    if use.loop_classes:
        yield "largest loop", f"{use.loop_instructions}: {_classes(use.loop_classes)}"
    yield "tools", ", ".join(f"{tool} {version}" for tool, version in versions.items())


def _strips(kernel: Kernel) -> list[str]:
    """The kernels beside the main part's, which is what the rest of the report is of."""
    specs = kernel.partition.specs if kernel.shape is not None else ()
    if len(specs) < 2:
        return []
    lines = ["parts"]
    for n, spec in enumerate(specs):
        assert spec.form.shape is not None
        try:
            use = f", {kernel.entries[n].resources.registers} registers"
        except ToolchainError:
            use = ""
        lines += _table(iter([(_extents(spec.form.shape), f"{spec.schedule}{use}")]))
    return lines


def _spills(use: Resources) -> str:
    if use.spill_loads is None:
        return "not known: no nvdisasm here"
    if not use.spill_loads and not use.spill_stores:
        return "none"
    text = f"{use.spill_loads} loads, {use.spill_stores} stores, {use.spill_bytes} bytes"
    return text + f"; {use.loop_spills} of them in loops"


def _tolerance(kernel: Kernel) -> Iterator[tuple[str, object]]:
    schedule = kernel.schedule
    limit = f"{TOLERANCE[kernel.dtype]:g} of the largest magnitude"
    if schedule.order == "source":
        yield "order", "source: additions as written"
        yield "interpreter", "bit for bit those of the NumPy reference"
        yield "device", f"the compiler contracts multiply-add: within {limit}"
    else:
        yield "order", f"{schedule.order}: sums are reassociated"
        yield "both", f"within {limit} of the NumPy reference"


def _classes(classes: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(classes.items(), key=lambda c: (-c[1], c[0])))


def _extents(values: tuple[int, ...]) -> str:
    return " x ".join(map(str, values))


def _number(value: float) -> str:
    """Without digits that say nothing: 7, 4.5, 1.33."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
