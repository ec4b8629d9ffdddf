"""The model's ranking as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.select import rank, rank_lanes
from stencil_dsl.schedule.target import Target, target_for

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.runtime.select import Candidate

_RESOURCES = ("latency", "issue", "hbm", "l2", "l1", "lsu")
_COLUMNS = (
    "ms",
    "bound",
    *_RESOURCES,
    "loads",
    "shuffles",
    "flops",
    "regs",
    "blocks/SM",
    "rounds",
    "waves",
    "waste",
    "strips",
)


def explain(kernel: Kernel, count: int, target: Target | None = None) -> str:
    """A table of the best `count` candidates with the predicted time of each resource in milliseconds.

    Schedules that shuffle follow in lines of their own, as many, with the same columns: they need a toolkit that links
    tile libraries, and the model tells them from the others less well than from each other.
    """
    if kernel.shape is None:
        raise StencilError("ranking needs a shape; pass shape=... to compile")
    target = target or target_for(kernel.target)
    asked = (kernel.definition, kernel.default_form(), kernel.options.order, target)
    ranked, lanes = rank(*asked), rank_lanes(*asked)
    rates = "measured" if target.measured else "assumed"
    lines = [
        f"{kernel.name} on {'x'.join(map(str, kernel.shape))} {kernel.dtype}, {target.name} ({target.sms} SMs,"
        f" {rates} {target.hbm / 1e12:.2f} TB/s): {len(ranked)} legal schedules, best {min(count, len(ranked))}",
        "  ".join(f"{c:>10}" for c in _COLUMNS) + "  schedule",
        *(_line(c, c.schedule == kernel.schedule) for c in ranked[:count]),
    ]
    if lanes:
        lines.append(f"{len(lanes)} more with shuffles, best {min(count, len(lanes))}")
        lines += [_line(c, c.schedule == kernel.schedule) for c in lanes[:count]]
    lines.append(
        "times in ms for each resource alone, and for strips; ! more registers than the occupancy leaves; * in use"
    )
    return "\n".join(lines)


def _line(c: Candidate, used: bool) -> str:
    p = c.prediction
    cells: list[object] = [f"{p.seconds * 1e3:.3f}", p.bound]
    cells += [f"{p.times[name] * 1e3:.3f}" if name in p.times else "-" for name in _RESOURCES]
    cells += [f"{p.loads:.2f}", f"{p.shuffles:.2f}", f"{p.arithmetic:.2f}", f"{p.registers}{'!' if p.spills else ''}"]
    cells += [p.resident, f"{p.batches:.1f}", f"{p.waves:.1f}", f"{p.waste:.2f}"]
    cells.append(f"{p.strips * 1e3:.3f}")
    return "  ".join(f"{v!s:>10}" for v in cells) + f"  {c.schedule}{' *' if used else ''}"
