"""Golden facts: what each variant compiled to with one exact tool set, and the gate that notices a change.

Golden files lie beside the test module: ``golden/<module>-<arch>-<tool set>.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

#: Metric -> by how much it may grow: a share of the golden value, and an absolute amount (the larger counts).
THRESHOLDS: dict[str, tuple[float, int]] = {
    "registers": (0.0, 4),
    "stack_bytes": (0.0, 0),
    "shared_bytes": (0.0, 0),
    "threads": (0.0, 0),
    "barriers": (0.0, 0),
    "instructions": (0.02, 4),
    "branches": (0.0, 0),
    "spill_bytes": (0.0, 0),
    "spill_loads": (0.0, 0),
    "spill_stores": (0.0, 0),
    "loop_spills": (0.0, 0),
}
_EXACT = ("classes", "text_hash")
#: Order and names of the tools in a tool set's key.
_TOOLS = ("tileiras", "nvvm", "ptxas", "cuda_tile")


def tool_set_key(tool_set: Mapping[str, str]) -> str:
    """One word for an exact tool set: the versions in a fixed order."""
    return "-".join(str(tool_set.get(tool) or tool_set.get(tool.replace("_", "-"), "unknown")) for tool in _TOOLS)


def golden_path(root: Path, record: Mapping[str, Any]) -> Path:
    """Where the golden facts of a record's module, architecture and tool set lie."""
    module = root / record["module"]
    return module.parent / "golden" / f"{module.stem}-{record['arch']}-{tool_set_key(record['facts']['tool_set'])}.json"


def entry_name(record: Mapping[str, Any]) -> str:
    return f"{record['question']}, {record['variant']}"


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are kept: thresholds' metrics, instruction classes and the hash of .text."""
    return {name: record["facts"][name] for name in (*THRESHOLDS, *_EXACT) if name in record["facts"]}


def differences(golden: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(what fails, what is worth a note), each as "metric old -> new"."""
    bad: list[str] = []
    notes: list[str] = []
    for metric, (share, amount) in THRESHOLDS.items():
        old, new = golden.get(metric), now.get(metric)
        if old is None or new is None or old == new:
            continue
        text = f"{metric} {old} -> {new}"
        (bad if new > old + max(share * old, amount) else notes).append(text)
    changed = _class_changes(golden.get("classes") or {}, now.get("classes") or {})
    if changed:
        notes.append("classes: " + ", ".join(changed))
    if not bad and not notes and golden.get("text_hash") != now.get("text_hash"):
        notes.append(".text differs, all metrics are equal")
    return bad, notes


def _class_changes(old: Mapping[str, int], new: Mapping[str, int]) -> list[str]:
    names = sorted(set(old) | set(new))
    return [
        f"{name} {old.get(name, 0)} -> {new.get(name, 0)}" for name in names if old.get(name, 0) != new.get(name, 0)
    ]


def gate(config: pytest.Config, record: Mapping[str, Any]) -> None:
    """With --golden, compares a record with its golden entry: fails, notes (as a warning), or skips
    unknown tool sets.
    """
    if not config.option.golden or "tool_set" not in record.get("facts", {}):
        return
    path = golden_path(config.rootpath, record)
    versions = tool_set_key(record["facts"]["tool_set"])
    label = f"{entry_name(record)}, {record['arch']}, {versions}"
    command = f"pytest {record['module']} --arch {record['arch']} --update-golden"
    entries = json.loads(path.read_text(encoding="utf-8"))["variants"] if path.exists() else {}
    if entry_name(record) not in entries:
        what = "this variant has" if entries else "this tool set has"
        pytest.skip(f"{label}: {what} no golden facts; record them with: {command}")
    bad, notes = differences(entries[entry_name(record)], facts_of(record))
    if bad:
        pytest.fail(f"{label}: {', '.join(bad + notes)}\naccept it with: {command}", pytrace=False)
    if notes:
        import warnings

        warnings.warn(pytest.PytestWarning(f"{label}: {', '.join(notes)}"), stacklevel=2)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --update-golden, the controller merges the facts of this run into the golden files."""
    from stencil_dsl.testing.records import recorder_of

    recorder = recorder_of(session.config)
    if recorder is None or not session.config.option.update_golden:
        return
    files: dict[Path, list[dict[str, Any]]] = {}
    for row in recorder.rows:
        if row["kind"] == "variant" and "tool_set" in row.get("facts", {}):
            files.setdefault(golden_path(session.config.rootpath, row), []).append(row)
    for path, rows in files.items():
        old = json.loads(path.read_text(encoding="utf-8"))["variants"] if path.exists() else {}
        variants = old | {entry_name(row): facts_of(row) for row in rows}
        content = {"arch": rows[0]["arch"], "tool_set": rows[0]["facts"]["tool_set"], "variants": variants}
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(part, path)
