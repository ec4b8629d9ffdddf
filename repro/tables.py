"""From record files to the rows of a table. Pure functions of files: no GPU, no clock."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.controls import AGAIN
from repro.floors import floor
from repro.opponents import absent, kind_of
from repro.rows import ROWS, SIZES
from stencil_dsl.testing import stats
from stencil_dsl.testing.records import read
from stencil_dsl.testing.sampling import used_times

PAPER = Path(__file__).parent / "paper"
MODULE = "repro/test_bricklib.py"
CEILINGS = "repro/test_ceilings.py"

COLUMNS = (
    *("stencil", "size", "dtype", "variant", "schedule", "ms", "ms_lo", "ms_hi", "gcells", "copy_ms"),
    *("ratio_to_copy", "ratio_to_floor", "paper_ms", "paper_ratio", "ratio_to_arr", "ratio_lo", "ratio_hi"),
    *("verdict", "regs", "spill_bytes", "max_rel_err"),
)
#: Order of variants within a row; others follow by name.
_ORDER = ("dsl", "arr", "arr-b8x8x8", "trans", "stream", "triton", "published", "cupy", "jax", "copy")
#: Reported beside the best block shape: the papers' own.
PAPER_BLOCK = "arr-b8x8x8"
#: The papers' grid: their figures stand beside ours at this size only.
PAPER_SIZE = 256


@dataclass(frozen=True)
class Table:
    """One table to draw: where it goes, what it holds.

    Attributes:
        folder: relative to the results folder.
        arch: what the kernels are compiled for.
        rows: records, one a row, size and variant; of a kind with several configurations the best.
        provenance: first lines of the record files that rows came from, oldest first.
        every: records of all configurations, the A/A controls among them.
        more: records of other test modules of the same folder, by module.
    """

    folder: Path
    arch: str
    rows: tuple[dict[str, Any], ...]
    provenance: tuple[dict[str, Any], ...]
    every: tuple[dict[str, Any], ...] = ()
    more: Mapping[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        return any(row.get("samples") for rows in (self.rows, *self.more.values()) for row in rows)


def load(results: Path) -> list[Table]:
    """All tables that the record files under a results folder hold, one a folder and architecture of the nine rows."""
    tables = []
    for records in sorted(results.glob("*/records")):
        rows: list[dict[str, Any]] = []
        first: dict[str, dict[str, Any]] = {}
        for file in sorted(records.glob("*.jsonl")):
            lines = list(read(file))
            first[file.name] = lines[0]
            rows += [
                row | {"file": file.name}
                for row in lines[1:]
                if row["kind"] == "variant" and row["module"].startswith("repro/")
            ]
        if not rows:
            continue
        device = next((p["device"]["arch"] for p in first.values() if p.get("device")), None)
        # Tables of tools may name an architecture of their own; they belong to the folder's first.
        archs = sorted({row["arch"] for row in rows if row["module"] == MODULE}) or sorted({r["arch"] for r in rows})
        for arch in archs:
            own = [row for row in rows if row["arch"] == arch or (arch == archs[0] and row["arch"] not in archs)]
            home = Path(records.parent.name)
            if home.name == "compile" or arch != (device or arch):
                home = Path("compile") / arch
            tables.append(_table(home, arch, own, first))
    return tables


def _table(home: Path, arch: str, rows: list[dict[str, Any]], first: Mapping[str, dict[str, Any]]) -> Table:
    every = sorted(select([row for row in rows if row["module"] == MODULE]), key=_place)
    more: dict[str, tuple[dict[str, Any], ...]] = {}
    for module in sorted({row["module"] for row in rows} - {MODULE}):
        more[module] = tuple(select([row for row in rows if row["module"] == module]))
    used = sorted({row["file"] for row in [*every, *(row for others in more.values() for row in others)]})
    return Table(home, arch, tuple(shown(every)), tuple(first[name] for name in used), tuple(every), more)


def shown(every: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the table: of each kind the configuration with the smallest median; the papers' block beside it."""
    found = []
    by_kind: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in every:
        if not row["variant"].endswith(AGAIN):
            by_kind.setdefault((row["question"], kind_of(row["variant"])), []).append(row)
    for (_, kind), rows in by_kind.items():
        best = min(rows, key=_median)
        found.append(best | {"variant": kind, "config": best["variant"]})
        found += [row for row in rows if row["variant"] == PAPER_BLOCK]
    return sorted(found, key=_place)


def _median(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Failures and wrong values last; without times the order is kept."""
    wrong = bool(row.get("failure")) or not (row.get("values") or {"ok": True})["ok"]
    times = used_times(row["samples"]) if row.get("samples") else []
    return wrong, stats.interval(times).median if times else float("inf")


def select(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record per question and variant: of each question the run that measured most variants, then the newest.

    What needs an installation of its own does not count, and comes from the newest run that had it. Rows are in the
    order they were written; records of another run never mix into a question's ratios.
    """
    by_question: dict[str, dict[tuple[str, str], dict[str, dict[str, Any]]]] = {}
    for row in rows:
        if row["toolkit"] is None or all(r["toolkit"] for r in rows):
            runs = by_question.setdefault(row["question"], {})
            runs.setdefault((row["file"], row.get("run", "")), {})[row["variant"]] = row
    chosen = []
    for runs in by_question.values():
        order = {name: None for variants in runs.values() for name in variants}
        best: dict[str, dict[str, Any]] = {}
        for variants in runs.values():
            if _own(variants) >= _own(best):
                best = variants
        best = dict(best)
        # Variants that failed or that nothing times (another run id, or none) still belong to the row.
        for variants in runs.values():
            for name, row in variants.items():
                if name not in best and "samples" not in row:
                    best[name] = row
        for variants in runs.values():
            best |= {n: r for n, r in variants.items() if kind_of(n) == "published" and _elsewhere(r, best.get(n))}
        chosen += [_profiled(best[name], runs.values()) for name in order if name in best]
    return chosen


def _own(variants: Mapping[str, dict[str, Any]]) -> int:
    """How many variants a run measured of those that come with this project."""
    return sum(kind_of(name) != "published" for name in variants)


def _elsewhere(row: Mapping[str, Any], kept: Mapping[str, Any] | None) -> bool:
    return bool(row.get("samples")) and not (kept or {}).get("samples")


def _profiled(row: dict[str, Any], runs: Iterable[Mapping[str, dict[str, Any]]]) -> dict[str, Any]:
    """The record with what Nsight Compute counted on the same machine code, which is often a run of its own."""
    code = (row.get("facts") or {}).get("text_hash")
    for variants in runs:
        other = variants.get(row["variant"], {})
        if "profile" not in row and "profile" in other and code and other["facts"].get("text_hash") == code:
            row = row | {"profile": other["profile"]}
    return row


def _place(row: Mapping[str, Any]) -> tuple[int, int, int, str]:
    params = row["params"]
    variant = row["variant"]
    rank = _ORDER.index(variant) if variant in _ORDER else len(_ORDER)
    return list(ROWS).index(params["stencil"]), SIZES.index(params["size"]), rank, variant


def paper(name: str) -> list[dict[str, str]]:
    """A table of published figures."""
    with (PAPER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def paper_figures(stencil: str, variant: str) -> tuple[float, float] | None:
    """(ms, ratio to a copy) as published, or None.

    The published copy moves 16 bytes a point; for rows that move more it is scaled by their compulsory bytes.
    """
    column = f"{'dsl' if kind_of(variant) == 'published' else kind_of(variant)}_ms"
    for row in paper("bricklib"):
        if row["stencil"] == stencil and row.get(column):
            ms = float(row[column])
            (copy,) = paper("copy")
            return ms, ms / (float(copy["ms"]) * ROWS[stencil].bytes / float(copy["bytes_per_point"]))
    return None


def of_question(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], variant: str) -> Mapping[str, Any] | None:
    """The record of another variant that the same run timed on the same question."""
    for other in rows:
        if other["question"] == row["question"] and other["variant"] == variant and other.get("samples"):
            return other if other.get("run") == row.get("run") else None
    return None


def ratio(row: Mapping[str, Any], other: Mapping[str, Any] | None) -> stats.Interval | None:
    """Of times taken in turns; None where one is missing, or they are of different runs."""
    if other is None or not row.get("samples") or row.get("run") != other.get("run"):
        return None
    return stats.ratio(used_times(row["samples"]), used_times(other["samples"]))


def cells(row: Mapping[str, Any], table: Table) -> dict[str, str]:
    """One line of bricklib.csv as text; what a tier did not measure is empty."""
    params, facts, values = row["params"], row.get("facts", {}), row.get("values")
    out = dict.fromkeys(COLUMNS, "")
    out |= {
        "stencil": params["stencil"],
        "size": str(params["size"]),
        "dtype": row["dtype"],
        "variant": row["variant"],
    }
    out["schedule"] = "not installed" if absent(row) else facts.get("schedule") or row.get("config", "")
    out["regs"], out["spill_bytes"] = _text(facts.get("registers")), _text(facts.get("spill_bytes"))
    if values:
        out["max_rel_err"] = f"{values['max_rel_err']:.2e}"
    published = paper_figures(params["stencil"], row["variant"]) if params["size"] == PAPER_SIZE else None
    if published:
        out["paper_ms"], out["paper_ratio"] = f"{published[0]:.3f}", f"{published[1]:.3f}"
    if row.get("samples"):
        time = stats.interval(used_times(row["samples"]))
        out |= {"ms": f"{time.median:.5f}", "ms_lo": f"{time.lo:.5f}", "ms_hi": f"{time.hi:.5f}"}
        if row["variant"] != "copy":
            out["gcells"] = f"{params['size'] ** 3 / time.median / 1e6:.2f}"
        copy = of_question(row, table.rows, "copy")
        if copy is not None:
            out["copy_ms"] = f"{stats.interval(used_times(copy['samples'])).median:.5f}"
        to_copy = ratio(row, copy)
        if to_copy and row["variant"] != "copy":
            out["ratio_to_copy"] = f"{to_copy.median:.4f}"
        lowest = floor(row, table.rows, table.more.get(CEILINGS, ()))
        if lowest and row["variant"] != "copy":
            out["ratio_to_floor"] = f"{time.median / lowest.ms:.3f}"
        to_arr = ratio(row, of_question(row, table.rows, "arr"))
        if to_arr and row["variant"] not in ("arr", PAPER_BLOCK, "copy"):
            out |= {
                "ratio_to_arr": f"{to_arr.median:.4f}",
                "ratio_lo": f"{to_arr.lo:.4f}",
                "ratio_hi": f"{to_arr.hi:.4f}",
                "verdict": stats.verdict(to_arr),
            }
    return out


def floors_text(table: Table) -> str:
    """floors.csv: what bounds each row, by the ceilings of the run that timed it."""
    columns = ("stencil", "size", "hbm_ms", "l2_ms", "fp64_ms", "floor_ms", "bound", "l1_ms_one_load_an_access")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in table.rows:
        f = (
            floor(row, table.rows, table.more.get(CEILINGS, ()))
            if row["variant"] == "dsl" and row.get("samples")
            else None
        )
        if f:
            times = [f"{t:.5f}" for t in (f.hbm, f.l2, f.fp64, f.ms)]
            writer.writerow([row["params"]["stencil"], row["params"]["size"], *times, f.bound, f"{f.l1:.5f}"])
    return text.getvalue()


def csv_of(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """A table as text: the header, then a line each."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def csv_text(table: Table, rows: Sequence[dict[str, Any]] | None = None) -> str:
    """bricklib.csv, or the same columns of other rows. Records that hold nothing (a copy without a device) are left
    out.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in table.rows if rows is None else rows:
        if row.get("facts") or row.get("samples") or row.get("failure"):
            writer.writerow(cells(row, table))
    return text.getvalue()


def problems(table: Table) -> list[str]:
    """Rows that failed or whose values are wrong, with the reason. A tool that refuses is a result, not a failure."""
    found = []
    others = [row for module, rows in table.more.items() if module != "repro/test_tools.py" for row in rows]
    for row in [*table.every, *others]:
        values = row.get("values")
        if absent(row):
            continue
        if row.get("failure"):
            found.append(f"{row['question']}, {row['variant']}, {row['arch']}: {row['failure'].splitlines()[0]}")
        elif values and not values["ok"]:
            found.append(f"{row['question']}, {row['variant']}, {row['arch']}: wrong values: {values['why']}")
    return found


def _text(value: Any) -> str:
    return "" if value is None else str(value)
