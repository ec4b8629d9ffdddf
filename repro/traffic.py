"""traffic.csv: bytes, hit rates, issue slots and occupancy as Nsight Compute counted them (`--ncu`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from repro.tables import csv_of

#: Columns that are metrics of a record, with their digits.
_PLAIN = {
    "dram_read_bytes": 0,
    "dram_write_bytes": 0,
    "l2_bytes": 0,
    "l1_bytes": 0,
    "l2_hit_pct": 1,
    "l1_hit_pct": 1,
    "issue_slots_pct": 1,
    "occupancy_pct": 1,
    "dram_throughput_pct": 1,
    "l2_throughput_pct": 1,
    "lsu_instructions": 0,
    "exchanges": 0,
}
COLUMNS = (
    *("question", "variant", "schedule", "kernels", "ncu_ms", *_PLAIN, "compulsory_bytes"),
    *("dram_over_compulsory", "l2_bytes_a_point", "l1_bytes_a_point"),
    *("exchanges_a_point", "unavailable", "failure"),
)
#: Columns of the report's table.
SHOWN = (
    *("question", "variant", "dram_over_compulsory", "l2_bytes_a_point", "l1_bytes_a_point", "l2_hit_pct"),
    *("l1_hit_pct", "issue_slots_pct", "occupancy_pct", "dram_throughput_pct", "exchanges_a_point"),
    "failure",
)


def lines(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One line a variant that was profiled, or that Nsight Compute refused."""
    return [_line(row, row["profile"]) for row in rows if row.get("profile")]


def _line(row: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, str]:
    out = dict.fromkeys(COLUMNS, "")
    out |= {"question": row["question"], "variant": row["variant"], "compulsory_bytes": str(row["bytes"])}
    out["schedule"] = str((row.get("facts") or {}).get("schedule", ""))
    if "failure" in profile:
        return out | {"failure": profile["failure"].splitlines()[0][:160]}
    metrics, points = profile["metrics"], prod(row["shape"])
    out["kernels"] = str(len(profile["kernels"]))
    out["unavailable"] = " ".join(profile["unavailable"])
    for name, digits in _PLAIN.items():
        if name in metrics:
            out[name] = f"{metrics[name]:.{digits}f}"
    if "ns" in metrics:
        out["ncu_ms"] = f"{metrics['ns'] / 1e6:.5f}"
    if {"dram_read_bytes", "dram_write_bytes"} <= set(metrics) and row["bytes"]:
        moved = metrics["dram_read_bytes"] + metrics["dram_write_bytes"]
        out["dram_over_compulsory"] = f"{moved / row['bytes']:.3f}"
    for level in ("l2", "l1"):
        if f"{level}_bytes" in metrics:
            out[f"{level}_bytes_a_point"] = f"{metrics[f'{level}_bytes'] / points:.1f}"
    if "exchanges" in metrics:
        out["exchanges_a_point"] = f"{metrics['exchanges'] / points:.2f}"
    return out


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    return csv_of(COLUMNS, lines(rows))
