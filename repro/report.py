"""The Markdown report of a table: what was run on what, the figures with the published ones beside, the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.rows import ROWS
from repro.tables import Table, cells, paper_figures, problems


def markdown(table: Table, plots: Sequence[Path], folder: Path) -> str:
    """The report's text. It names no time of drawing, so the same records give the same bytes."""
    parts = [_heading(table), _provenance(table), _rows(table), _reading(table)]
    wrong = problems(table)
    if wrong:
        parts.insert(1, "**Rows that failed:**\n\n" + "\n".join(f"- {line}" for line in wrong))
    for plot in plots:
        parts.append(f"![{_CAPTIONS[plot.stem]}]({plot.relative_to(folder).as_posix()})\n\n*{_CAPTIONS[plot.stem]}*")
    return "\n\n".join(parts) + "\n"


_CAPTIONS = {
    "ratio_to_copy": "Time over the time of a copy of the row's compulsory bytes, timed in the same run. Hollow: as "
    "published. Filled: measured, with the interval of the median ratio. Shaded: the tie band.",
    "roofline": "Operations per second over operations per compulsory byte; the lines are the copies of this run.",
    "registers": "Registers per thread of each row's kernel.",
    "published": "The published ratios. Times are measured with --gpu.",
}


def _heading(table: Table) -> str:
    if not table.timed:
        return f"# The nine rows, compiled for {table.arch}\n\nNo device: registers, spills and values only."
    devices = sorted({p["device"]["name"] for p in table.provenance if p.get("device")})
    return f"# The nine rows on {', '.join(devices)}"


def _provenance(table: Table) -> str:
    """One line a record file that the table draws on."""
    lines = ["| measured | commit | device | tools | Python |", "|---|---|---|---|---|"]
    for first in table.provenance:
        versions: Mapping[str, str] = first["versions"]
        tools = _tool_set(table) or {
            name: versions[name] for name in ("cuda_tile", "tileiras", "nvvm", "ptxas") if name in versions
        }
        device = first.get("device")
        lines.append(
            f"| {first['utc']} | {first['commit']} | {_device(device)} | "
            f"{', '.join(f'{name} {version}' for name, version in tools.items())} | {first['python']} |"
        )
    return "\n".join(lines)


def _tool_set(table: Table) -> dict[str, str]:
    """The tools that made the kernels, as the cubins' cache entries say: on a GPU machine no tool is installed."""
    for row in table.rows:
        if "tool_set" in row.get("facts", {}):
            tools = row["facts"]["tool_set"]
            return {name: tools[name] for name in ("cuda_tile", "tileiras", "nvvm", "ptxas") if name in tools}
    return {}


def _device(device: Mapping[str, Any] | None) -> str:
    if not device:
        return "none"
    extra = [f"driver {device['driver']}"] if device.get("driver") else []
    extra += [f"{device['power_limit_w']:.0f} W"] if device.get("power_limit_w") else []
    extra += [f"ECC {'on' if device['ecc'] else 'off'}"] if device.get("ecc") is not None else []
    return ", ".join([device["name"], *extra])


def _rows(table: Table) -> str:
    if table.timed:
        head = ("row", "N", "variant", "schedule", "ms", "interval", "GCell/s", "% of copy", "ratio to copy")
        head += ("published ratio, 256³", "regs", "spill B", "max rel. err")
    else:
        head = (
            "row",
            "N",
            "schedule",
            "regs",
            "spill B",
            "instructions",
            "max rel. err",
            "published ms, 256³",
        )
        head += ("published ratio",)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table.rows:
        if row["variant"] == "copy" and not row.get("samples"):
            continue
        lines.append("| " + " | ".join(_timed(row, table) if table.timed else _compiled(row, table)) + " |")
    return "\n".join(lines)


def _timed(row: Mapping[str, Any], table: Table) -> list[str]:
    c = cells(row, table)
    share = f"{100 * float(c['copy_ms']) / float(c['ms']):.1f}" if c["copy_ms"] and c["ms"] else ""
    interval = f"{c['ms_lo']} .. {c['ms_hi']}" if c["ms"] else ""
    figures = paper_figures(c["stencil"], c["variant"])
    out = [
        ROWS[c["stencil"]].label,
        c["size"],
        c["variant"],
        c["schedule"],
        c["ms"],
        interval,
        c["gcells"],
        share,
    ]
    out += [
        c["ratio_to_copy"],
        f"{figures[1]:.2f}" if figures else "",
        c["regs"],
        c["spill_bytes"],
        _error(row, c),
    ]
    return out


def _compiled(row: Mapping[str, Any], table: Table) -> list[str]:
    c = cells(row, table)
    figures = paper_figures(c["stencil"], c["variant"])
    instructions = row.get("facts", {}).get("instructions")
    out = [ROWS[c["stencil"]].label, c["size"], c["schedule"], c["regs"], c["spill_bytes"]]
    out += ["" if instructions is None else str(instructions), _error(row, c)]
    return out + ([f"{figures[0]:.3f}", f"{figures[1]:.2f}"] if figures else ["", ""])


def _error(row: Mapping[str, Any], c: Mapping[str, str]) -> str:
    if row.get("failure"):
        return "failed"
    return c["max_rel_err"] if not row.get("values") or row["values"]["ok"] else f"WRONG {c['max_rel_err']}"


def _reading(table: Table) -> str:
    text = (
        "float64, one sweep. Errors are relative to the largest magnitude of the reference. Published figures: "
        "RTX PRO 4000 Blackwell, CUDA 13.2, 256³ (`repro/paper/`); compare ratios, not milliseconds. "
        "The published copy moves 16 bytes a point; for iso3dfd and CNS it is scaled by their 32 and 104."
    )
    if table.timed:
        dropped = sum(row.get("dropped", 0) for row in table.rows)
        throttled = sum(bool(row.get("throttled")) for row in table.rows)
        flushed = sorted({row["l2"] for row in table.rows if row.get("l2")})
        text += (
            " Times: median over interleaved rounds with its 95 % order-statistic interval; "
            f"{dropped} throttled rounds were dropped, {throttled} rows were measured on a card that throttled "
            f"throughout. L2 before a launch: {', '.join(flushed)}."
        )
    return text
