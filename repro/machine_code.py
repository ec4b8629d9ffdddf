"""sass.csv: what the machine code of every kernel is made of, the hand-written and generated baselines among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from repro.tables import Table, csv_of

#: Column -> instruction classes that it counts, with all their widths.
GROUPS = {
    "LDG": ("LDG",),
    "STG": ("STG",),
    "LDS_STS": ("LDS", "STS", "LDSM", "STSM"),
    "LDL_STL": ("LDL", "STL"),
    "SHFL": ("SHFL",),
    "DFMA": ("DFMA",),
    "DADD_DMUL": ("DADD", "DMUL"),
    "FFMA": ("FFMA",),
    "FADD_FMUL": ("FADD", "FMUL"),
    "TMA": ("UTMALDG", "UTMASTG", "UBLKCP"),
}
#: Column -> exact class: how wide global loads and stores are, in bits a thread.
WIDTHS = {
    f"{name}_{width}": (f"{name}.E.{width}", f"{name}.{width}") for name in ("LDG", "STG") for width in (32, 64, 128)
}
COLUMNS = (
    *("question", "arch", "variant", "schedule", "kernels", "registers", "threads", "shared_bytes", "stack_bytes"),
    *(
        "spill_bytes",
        "instructions",
        "branches",
        "barriers",
        *GROUPS,
        *WIDTHS,
        "other",
        "loop_instructions",
        "text_hash",
    ),
)
#: Columns of the report's table: the rest is in the file.
SHOWN = (
    *("question", "variant", "registers", "shared_bytes", "spill_bytes", "instructions", "branches", "barriers"),
    *("LDG_128", "LDG_64", "STG_128", "STG_64", "LDS_STS", "SHFL", "DFMA", "DADD_DMUL"),
)


def lines(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One line a kernel that was compiled and disassembled; a launch of several kernels is their sum."""
    found = []
    for row in rows:
        facts = row.get("facts") or {}
        if facts.get("classes"):
            found.append(_line(row, facts))
    return found


def _line(row: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, str]:
    several = facts.get("kernels")
    kernels = several if isinstance(several, list) else [facts]  # a series of the probes is summed already
    count = several if isinstance(several, int) else len(kernels)
    classes: dict[str, int] = {}
    for kernel in kernels:
        for name, n in (kernel.get("classes") or {}).items():
            classes[name] = classes.get(name, 0) + n
    out = {"question": row["question"], "arch": row["arch"], "variant": row["variant"], "kernels": str(count)}
    out["schedule"] = str(row.get("config") or facts.get("schedule", ""))
    for name in ("registers", "threads", "shared_bytes", "stack_bytes"):
        out[name] = _text(max((k[name] for k in kernels if k.get(name) is not None), default=None))
    for name in ("spill_bytes", "instructions", "branches", "barriers", "loop_instructions"):
        known = [k[name] for k in kernels if k.get(name) is not None]
        out[name] = _text(sum(known) if known else None)
    counted = 0
    for column, names in GROUPS.items():
        number = sum(n for key, n in classes.items() if key.split(".")[0] in names)
        out[column], counted = str(number), counted + number
    for column, names in WIDTHS.items():
        out[column] = str(sum(classes.get(name, 0) for name in names))
    out["other"] = str(sum(classes.values()) - counted)
    out["text_hash"] = str(facts.get("text_hash") or "")[:12]
    return out


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    return csv_of(COLUMNS, lines(rows))


def of(table: Table) -> list[Mapping[str, Any]]:
    """All records of a table in its order: the nine rows with every configuration, then the other modules."""
    return [*table.every, *(row for rows in table.more.values() for row in rows)]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
