"""The Markdown report of a table: what was run on what, the figures with the published ones beside, the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import more_tables
from repro.acoustic import tables as acoustic
from repro.controls import verdicts
from repro.floors import floor, rates
from repro.opponents import absent
from repro.rows import ROWS
from repro.sections import grid, sections
from repro.tables import CEILINGS, Table, cells, paper_figures, problems


def markdown(table: Table, plots: Sequence[Path], folder: Path) -> str:
    """The report's text. It names no time of drawing, so the same records give the same bytes."""
    pictures = {plot.stem: plot.relative_to(folder).as_posix() for plot in plots}
    parts = [_heading(table), _provenance(table)]
    wrong = problems(table)
    if wrong:
        parts.append("**What failed:**\n\n" + "\n".join(f"- {line}" for line in wrong))
    if table.rows:
        parts += [_rows(table), _reading(table)]
        parts += [_picture(name, pictures) for name in _CAPTIONS if name in pictures]
    parts += [part for part in (_floors(table), _controls(table), _configurations(table)) if part]
    parts += sections(table)
    for spec in more_tables.SPECS:
        part = _more(spec, table)
        if part:
            parts += [f"## {spec.title}", f"{spec.text} All columns: `{spec.stem}.csv`.", part]
            parts += [_picture(spec.stem, pictures)] if spec.stem in pictures else []
    for part, names in acoustic.report(table):
        parts += [part, *(_picture(name, pictures) for name in names if name in pictures)]
    parts.append(DIFFERENCES)
    return "\n\n".join(parts) + "\n"


def _picture(name: str, pictures: Mapping[str, str]) -> str:
    caption = _CAPTIONS.get(name) or more_plots_captions()[name]
    return f"![{caption}]({pictures[name]})\n\n*{caption}*"


def more_plots_captions() -> dict[str, str]:
    from repro.more_plots import CAPTIONS

    return CAPTIONS


_CAPTIONS = {
    "ratio_to_copy": "Time over the time of a copy of the row's compulsory bytes, timed in the same run. Hollow: as "
    "published. Filled: measured, with the interval of the median ratio. Shaded: the tie band.",
    "ratio_to_arr": "Time over that of the best hand-written array kernel of the same run, with the interval of the "
    "median ratio. Hollow: the published ratio of the published compiler.",
    "variants": "The best configuration of each kind over a copy of the row's compulsory bytes.",
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
        head += ("published, 256³", "ratio to floor", "ratio to arr", "interval of it", "verdict")
        head += ("regs", "spill B", "max rel. err")
    else:
        head = (
            "row",
            "N",
            "variant",
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
        c["ratio_to_floor"],
        c["ratio_to_arr"],
        f"{c['ratio_lo']} .. {c['ratio_hi']}" if c["ratio_to_arr"] else "",
        c["verdict"],
        c["regs"],
        c["spill_bytes"],
        _error(row, c),
    ]
    return out


def _compiled(row: Mapping[str, Any], table: Table) -> list[str]:
    c = cells(row, table)
    figures = paper_figures(c["stencil"], c["variant"])
    instructions = row.get("facts", {}).get("instructions")
    out = [ROWS[c["stencil"]].label, c["size"], c["variant"], c["schedule"], c["regs"], c["spill_bytes"]]
    out += ["" if instructions is None else str(instructions), _error(row, c)]
    return out + ([f"{figures[0]:.3f}", f"{figures[1]:.2f}"] if figures else ["", ""])


def _error(row: Mapping[str, Any], c: Mapping[str, str]) -> str:
    if row.get("failure"):
        return "" if absent(row) else "failed"
    return c["max_rel_err"] if not row.get("values") or row["values"]["ok"] else f"WRONG {c['max_rel_err']}"


def _reading(table: Table) -> str:
    text = (
        "float64, one sweep. Errors are relative to the largest magnitude of the reference. Published figures: "
        "RTX PRO 4000 Blackwell, CUDA 13.2, 256³ (`repro/paper/`); compare ratios, not milliseconds. "
        "The published copy moves 16 bytes a point; for iso3dfd and CNS it is scaled by their 32 and 104."
    )
    if table.timed:
        # Rounds are a group's: every variant of a question says the same.
        dropped = sum({row["question"]: row.get("dropped", 0) for row in table.rows}.values())
        throttled = sum(bool(row.get("throttled")) for row in table.rows)
        flushed = sorted({row["l2"] for row in table.rows if row.get("l2")})
        text += (
            " Times: median over interleaved rounds with its 95 % order-statistic interval; "
            f"{dropped} throttled rounds were dropped, {throttled} rows were measured on a card that throttled "
            f"throughout. L2 before a launch: {', '.join(flushed)}."
        )
    return text


def _floors(table: Table) -> str:
    """Ceilings and what bounds each row."""
    measured = {file: found for file in _files(table) if (found := rates(table.more.get(CEILINGS, ()), file))}
    if not measured:
        return ""
    parts = ["## Ceilings and floors"]
    words = {"copy": "copy", "triad": "triad", "l2": "reads from L2", "l1": "reads from L1", "fma": "multiply-adds"}
    for found in measured.values():
        texts = [
            f"{words[kind]} {rate / 1e12:.2f} {'T/s' if kind == 'fma' else 'TB/s'}"
            for kind, rate in found.items()
            if kind in words
        ]
        parts.append("Measured in the same run: " + ", ".join(texts) + ".")
    lines = []
    for row in table.rows:
        f = floor(row, table.rows, table.more.get(CEILINGS, ())) if row["variant"] == "dsl" else None
        if f:
            of = row["params"]
            times = [f"{t:.4f}" for t in (f.hbm, f.l2, f.fp64, f.ms)]
            lines.append([ROWS[of["stencil"]].label, str(of["size"]), *times, f.bound, f"{f.l1:.4f}"])
    head = ("row", "N", "device memory, ms", "L2, ms", "fp64, ms", "floor, ms", "bound", "L1 with one load an access")
    parts.append(grid(head, lines))
    parts.append(
        "The floor is the largest of compulsory bytes over the fastest copy, the same bytes over L2, and operations "
        "(equal partial sums formed once) over the multiply-add rate. One load an access is no bound for kernels that "
        "share loads; the last column says what it would cost."
    )
    return "\n\n".join(parts)


def _files(table: Table) -> list[str]:
    return sorted({row["file"] for row in table.more.get(CEILINGS, ())})


def _controls(table: Table) -> str:
    """The same kernel twice."""
    found = verdicts(table.every)
    if not found:
        return ""
    ties = sum(c.verdict == "tie" for c in found)
    lines = [[c.question, f"{c.ratio.median:.4f}", f"{c.ratio.lo:.4f} .. {c.ratio.hi:.4f}", c.verdict] for c in found]
    head = ("question", "again / first", "interval", "verdict")
    text = f"The DSL's kernel timed twice in the same rounds: {ties} of {len(found)} pairs are ties."
    return f"## A/A control\n\n{text}\n\n{grid(head, lines)}"


def _configurations(table: Table) -> str:
    """How many configurations took part, and the best of each kind at each row."""
    if len(table.every) <= len(table.rows):
        return ""
    text = (
        f"{len(table.every)} variants were measured; the table above shows the best of each kind, with its "
        "configuration under *schedule*, and the papers' 8x8x8 blocks beside the best block shape. "
        "`baselines.csv` has every configuration with its time, registers and spills."
    )
    return f"## Configurations of the baselines\n\n{text}"


def _more(spec: more_tables.Spec, table: Table) -> str:
    """A table of `more_tables` with the columns that hold something."""
    lines = more_tables.lines(spec, table)
    if not lines:
        return ""
    left_out = {"arch", "dtype", "ms_lo", "ms_hi", "branches"} if spec.stem not in ("stacks", "pairings") else set()
    left_out |= {"copy_ms", "stencil"}
    columns = [c for c in lines[0] if c not in left_out and any(line[c] for line in lines)]
    return grid([c.replace("_", " ") for c in columns], [[line[c] for c in columns] for line in lines])


DIFFERENCES = """## What differs from the published study, and why

- The published figures are of an RTX PRO 4000 Blackwell, whose float64 rate is 1/64 of float32: wide stencils are bound
  by arithmetic there. On a data-centre GPU they are bound by memory and by loads, so ratios to a copy are much smaller.
- The published kernels load every access. Here sums of several planes stay open in registers and neighbours share
  loads; the shifted schedule, which is the published one, stands beside it where a table says so.
- *Arr* is ours, in the style of the papers, with the best of seven block shapes. *Trans* is our own generator after the
  papers' description, not bricklib's; *stream* has no counterpart there.
- *published* is the published compiler itself, compiled by the tools that compile the DSL's kernels, not by those of
  the study. It chooses among its tiles by timing them only where its own environment has the device.
- CUDA 13.2 does not compile for sm_90. Kernels come from 13.5 unless a table names another release.
- The expressions of the random table are our own draws; those of the study are not printed."""
