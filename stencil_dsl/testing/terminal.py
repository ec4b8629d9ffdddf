"""What a run prints: a header with what is measured on what, a table a question, the ledger of claims,
the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from stencil_dsl.testing import stats
from stencil_dsl.testing.grouping import MEMBER
from stencil_dsl.testing.options import settings
from stencil_dsl.testing.records import recorder_of
from stencil_dsl.testing.sampling import used_times

_SHOWN: pytest.StashKey[bool] = pytest.StashKey()


def pytest_report_header(config: pytest.Config) -> list[str]:
    chosen = settings(config)
    asked = chosen.gpu or config.option.arch or config.option.toolkit or config.option.golden
    return _header(config) if asked else []  # sessions that have nothing to do with the harness stay quiet


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """The header again for sessions that gave no option: only now is it known that they measure something."""
    if config.stash.get(_SHOWN, False) or not any(MEMBER in item.stash for item in items):
        return []
    return _header(config)


def _header(config: pytest.Config) -> list[str]:
    from stencil_dsl.testing.device import describe, missing
    from stencil_dsl.testing.provenance import versions

    config.stash[_SHOWN] = True
    chosen = settings(config)
    known = versions()
    tools = ", ".join(f"{name} {known[name]}" for name in ("cuda_tile", "tileiras", "nvvm", "ptxas") if name in known)
    lines = [f"stencil: {' '.join(chosen.archs)}; {tools or 'no toolkit wheels: kernels come from the cache'}"]
    if chosen.toolkits != (None,):
        lines[0] += f"; toolkits {' '.join(map(str, chosen.toolkits))}"
    if chosen.gpu:
        device = (chosen.device_class, chosen.device_number)
        info = describe(*device)
        lines.append(
            f"stencil: {info.name}, driver {info.driver}" if info else f"stencil: no device: {missing(*device)}"
        )
    recorder = recorder_of(config)
    if recorder and recorder.resumed_from:
        lines.append(f"stencil: continuing {recorder.resumed_from.name}")
    return lines


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    recorder = recorder_of(config)
    if recorder is None or not recorder.rows:
        return
    write = terminalreporter.write_line
    variants = [row for row in recorder.rows if row["kind"] == "variant"]
    for module in dict.fromkeys(row["module"] for row in variants):
        terminalreporter.section(module, sep="-")
        for line in table([row for row in variants if row["module"] == module]):
            write(line)
    if recorder.path is not None:
        try:
            shown = recorder.path.relative_to(config.invocation_params.dir)
        except ValueError:
            shown = recorder.path
        write(f"records: {shown}")


_COLUMNS = (
    "question",
    "variant",
    "arch",
    "regs",
    "spill B",
    "smem B",
    "instr",
    "LDG",
    "BAR",
    "max err",
    "ms",
    "interval",
    "ratio",
    "verdict",
)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as aligned text; columns that nobody filled are left out."""
    cells = [row_cells(row, rows) for row in rows]
    names = [name for name in _COLUMNS if any(cell.get(name) for cell in cells)]
    if any(row.get("failure") for row in rows):
        names.append("failure")
    grid = [names] + [[cell.get(name, "") for name in names] for cell in cells]
    widths = [max(len(line[i]) for line in grid) for i in range(len(names))]
    left = {"question", "variant", "arch", "verdict", "failure"}
    return [
        "  ".join(t.ljust(w) if n in left else t.rjust(w) for t, w, n in zip(line, widths, names, strict=True)).rstrip()
        for line in grid
    ]


def row_cells(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """One record as text cells; the ratio is against the question's baseline in the same run."""
    facts = row.get("facts", {})
    classes = facts.get("classes") or {}
    variant = row["variant"] if row["toolkit"] is None else f"{row['variant']}@{row['toolkit']}"
    cells = {"question": row["question"], "variant": variant, "arch": row["arch"]}
    for name, fact in (
        ("regs", "registers"),
        ("spill B", "spill_bytes"),
        ("smem B", "shared_bytes"),
        ("instr", "instructions"),
        ("BAR", "barriers"),
    ):
        if fact in facts:
            cells[name] = str(facts[fact])
    if classes:
        cells["LDG"] = str(sum(count for name, count in classes.items() if name.startswith("LDG")))
    values = row.get("values")
    if values:
        cells["max err"] = f"{values['max_rel_err']:.1e}" if values["ok"] else "WRONG"
    if row.get("samples"):
        own = stats.interval(used_times(row["samples"]))
        cells["ms"], cells["interval"] = f"{own.median:.4f}", f"{own.lo:.4f}..{own.hi:.4f}"
        other = baseline_of(row, rows)
        if other is not None:
            ratio = stats.ratio(used_times(row["samples"]), used_times(other["samples"]))
            cells["ratio"], cells["verdict"] = f"{ratio.median:.3f}", stats.verdict(ratio)
    if row.get("failure"):
        cells["failure"] = row["failure"].splitlines()[0][:90]
    return cells


def baseline_of(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The record of the question's baseline variant that was timed in the same run, unless it is the row
    itself.
    """
    for other in rows:
        same = other.get("run") == row.get("run") and other["question"] == row["question"]
        if same and other["variant"] == row["baseline"] != row["variant"] and other.get("samples"):
            return other
    return None
