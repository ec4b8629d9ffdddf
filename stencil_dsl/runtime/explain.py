"""The model's ranking as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.select import rank
from stencil_dsl.schedule.target import Target, target_for

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel

_COLUMNS = (
    "ms",
    "bound",
    "latency",
    "issue",
    "hbm",
    "l2",
    "l1",
    "loads",
    "flops",
    "regs",
    "blocks/SM",
    "rounds",
    "waves",
    "waste",
    "strips",
)


def explain(kernel: Kernel, count: int, target: Target | None = None) -> str:
    """A table of the best `count` candidates with the predicted time of each resource in milliseconds."""
    if kernel.shape is None:
        raise StencilError("ranking needs a shape; pass shape=... to compile")
    target = target or target_for(kernel.target)
    ranked = rank(kernel.definition, kernel.default_form(), kernel.options.order, target)
    rates = "measured" if target.measured else "assumed"
    lines = [
        f"{kernel.name} on {'x'.join(map(str, kernel.shape))} {kernel.dtype}, {target.name} ({target.sms} SMs,"
        f" {rates} {target.hbm / 1e12:.2f} TB/s): {len(ranked)} legal schedules, best {min(count, len(ranked))}",
        "  ".join(f"{c:>10}" for c in _COLUMNS) + "  schedule",
    ]
    for c in ranked[:count]:
        p = c.prediction
        cells: list[object] = [f"{p.seconds * 1e3:.3f}", p.bound]
        cells += [f"{t * 1e3:.3f}" for t in p.times.values()]
        cells += [f"{p.loads:.2f}", f"{p.arithmetic:.2f}", f"{p.registers}{'!' if p.spills else ''}"]
        cells += [p.resident, f"{p.batches:.1f}", f"{p.waves:.1f}", f"{p.waste:.2f}"]
        cells += [f"{p.strips * 1e3:.3f}"]
        mark = " *" if c.schedule == kernel.schedule else ""
        lines.append("  ".join(f"{v!s:>10}" for v in cells) + f"  {c.schedule}{mark}")
    lines.append(
        "times in ms for each resource alone, and for strips; ! more registers than the occupancy leaves; * in use"
    )
    return "\n".join(lines)
