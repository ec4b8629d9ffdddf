"""The ledger of claims: what each claim was found to be, by tool set and device, in ``results/claims.csv``.

A run replaces the rows that it measured again and keeps all others, so that a file holds several tool sets side by
side, and an upgrade shows which verdicts went stale.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

COLUMNS = ("claim", "tier", "arch", "tools", "device", "verdict", "why", "text", "source", "probe")
#: What tells one row from another.
_KEY = ("claim", "tier", "arch", "tools", "device")
Row = dict[str, str]


def rows_of(records: Sequence[Mapping[str, Any]], device: str = "") -> list[Row]:
    """Ledger rows of a run's claim records; the tool set is read from its variant records."""
    tools = _tools(records)
    rows = []
    for record in records:
        if record["kind"] != "claim":
            continue
        row = {name: str(record[name]) for name in ("claim", "tier", "arch", "verdict", "why", "text", "source")}
        row["tools"] = record.get("tools") or tools.get(record["toolkit"], record["toolkit"] or "unknown")
        row["device"] = "" if record["tier"] == "code" else device
        row["probe"] = record["node"].split("::")[0]
        rows.append(row)
    return rows


def _tools(records: Iterable[Mapping[str, Any]]) -> dict[str | None, str]:
    """Toolkit as asked for -> exact version of its tileiras (most variants agree; some name toolkits of their own)."""
    seen: dict[str | None, Counter[str]] = {}
    for record in records:
        versions = record.get("facts", {}).get("tool_set") if record["kind"] == "variant" else None
        if versions and versions.get("tileiras"):
            seen.setdefault(record["toolkit"], Counter())[versions["tileiras"]] += 1
    # A composed toolkit is not its tileiras alone: it keeps the name that says all three.
    return {kit: kit if kit and "+" in kit else counts.most_common(1)[0][0] for kit, counts in seen.items()}


def merge(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """All rows, new ones in the place of old ones with the same key, in the order of claims and tools."""
    by_key = {tuple(row[name] for name in _KEY): row for row in (*old, *new)}
    return sorted(by_key.values(), key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return int(row["claim"]), row["tier"], row["arch"], row["device"], version(row["tools"])


def version(text: str) -> tuple[Any, ...]:
    """Sorts "13.10.1" behind "13.9.2", and compositions behind their base."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"[.+-]", text))


def rows_of_file(path: Path) -> list[Row]:
    """Ledger rows of a record file, ``<results>/<device or "compile">/records/<name>.jsonl``."""
    from stencil_dsl.testing import records

    device = path.absolute().parent.parent.name
    return rows_of(list(records.read(path)), "" if device == "compile" else device)


def read(path: Path) -> list[Row]:
    """Rows of a ledger file; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def text_of(rows: Iterable[Row]) -> str:
    """The file's content."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: row[name] for name in COLUMNS} for row in rows)
    return out.getvalue()


def changes(rows: Iterable[Row]) -> list[str]:
    """Verdicts that differ between neighbouring tool sets that could test the claim, one line each."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted((r for r in rows if r["verdict"] != "cannot be tested here"), key=_order):
        groups.setdefault((row["claim"], row["tier"], row["arch"], row["device"]), []).append(row)
    lines = []
    for (claim, tier, arch, device), found in groups.items():
        for before, after in zip(found, found[1:], strict=False):
            if before["verdict"] != after["verdict"]:
                place = f"{tier}, {device or arch}"
                step = f"{before['tools']} {before['verdict']} -> {after['tools']} {after['verdict']}"
                lines.append(f"{claim:>3}  {step} ({place}): {after['why']}")
    return lines


def summary(rows: Sequence[Row]) -> list[str]:
    """The ledger as a run prints it: claim by claim, each tier and tool set on a line."""
    lines: list[str] = []
    last = ""
    for row in sorted(rows, key=_order):
        if row["claim"] != last:
            lines.append(f"{row['claim']:>3}  {row['text']}")
            last = row["claim"]
        place = f"{row['tier']}, {row['device'] or row['arch']}, {row['tools']}"
        lines.append(f"     {row['verdict']} ({place}): {row['why']}")
    counts = Counter((row["tier"], row["verdict"]) for row in rows)
    for tier in dict.fromkeys(row["tier"] for row in rows):
        parts = [f"{n} {verdict}" for (of, verdict), n in sorted(counts.items()) if of == tier]
        lines.append(f"{tier}: {', '.join(parts)}")
    return lines


def write(path: Path, rows: Iterable[Row]) -> None:
    """Writes the file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text_of(rows), encoding="utf-8")
    os.replace(part, path)


def run_rows(config: pytest.Config) -> list[Row]:
    """Ledger rows of this run (on the controller); empty where it judged no claim."""
    from stencil_dsl.testing.records import recorder_of

    recorder = recorder_of(config)
    return rows_of(recorder.rows, recorder.folder.parent.name) if recorder is not None and recorder.rows else []


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    from stencil_dsl.testing.options import settings

    rows = run_rows(session.config)
    if rows:
        path = settings(session.config).results / "claims.csv"
        write(path, merge(read(path), rows))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    from stencil_dsl.testing.options import settings

    rows = run_rows(config)
    if not rows:
        return
    terminalreporter.section("claims", sep="-")
    for line in summary(rows):
        terminalreporter.write_line(line)
    path = settings(config).results / "claims.csv"
    mine = {row["claim"] for row in rows}
    moved = changes(row for row in read(path) if row["claim"] in mine)
    if moved:
        terminalreporter.section("verdicts that changed between tool sets", sep="-")
        for line in moved:
            terminalreporter.write_line(line)
