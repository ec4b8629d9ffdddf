"""The acoustic wave's tables from records: whole steps, a run of steps, kernels alone, the triad."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from repro.acoustic.model import INNER_BYTES, INNER_FLOPS, LAYER_BYTES, LAYER_FLOPS, Cube
from repro.sections import grid
from repro.tables import Table, csv_of, of_question, paper, ratio
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

MODULE = "repro/test_acoustic.py"
PROFILE_BYTES = 24
"""Compulsory bytes a cell of the layer in the compiler's kernels: their damping is stored along the axes only."""

_TIME = ("ms_per_step", "ms_lo", "ms_hi", "gpts")
_AGAINST = ("over_triton", "over_triton_lo", "over_triton_hi", "verdict")
_BUILD = ("regs", "spill_bytes", "max_rel_err", "failure")
COLUMNS: dict[str, tuple[str, ...]] = {
    "acoustic": (
        *("size", "init", "variant", "schedule", "steps", *_TIME, *_AGAINST, "zero_over_random"),
        *("paper_over_triton", "paper_zero_over_random", *_BUILD),
    ),
    "acoustic_series": ("size", "after", "variant", "steps", *_TIME, *_AGAINST, "failure"),
    "acoustic_kernels": (
        *("size", "kernels", "variant", "ms", "ms_lo", "ms_hi", "gpts", "bytes_a_point", "gb_per_s", "ratio_to_copy"),
        *("flops_a_point", "flops_a_byte", "gflops", *_AGAINST, "dram_bytes", "flops_a_dram_byte", "l2_hit_pct"),
        *("l1_hit_pct", *_BUILD),
    ),
    "acoustic_triad": ("random_share", "ms", "ms_lo", "ms_hi", "gb_per_s", "over_full", "paper_over_full", "failure"),
}
TITLES = {
    "acoustic": (
        "The acoustic wave",
        "Whole steps of Minimod's acoustic wave in float32, from rest and from random fields; throughput is n³ over "
        "the time of a step. `over_triton` is throughput over that of the Triton kernels in the same rounds, beside "
        "the published ratio on a B580 (*dsl* beside TinyTC, *shared* beside SYCL, *plain* beside OpenMP).",
    ),
    "acoustic_series": (
        "The acoustic wave, step by step",
        "The last `steps` steps up to the given one, from rest: whether throughput changes as the wave fills the cube.",
    ),
    "acoustic_kernels": (
        "The acoustic wave's kernels",
        "The kernel of the inner box and the six of the layer by themselves, over a copy of 16 or 28 bytes a cell of "
        "the box. Operations are counted as written; bytes are compulsory ones. The compiler's inner box is up to "
        "three cells narrower along z, which its slabs compute instead; cells a second count what was computed.",
    ),
    "acoustic_triad": (
        "Triad by share of random data",
        "c = a + 3 b in float32 where a share of every 128 elements is random: a device that compresses its memory is "
        "faster over less random data.",
    ),
}
_PUBLISHED = {"dsl": "tinytc", "dsl-apart": "tinytc", "triton": "triton", "shared": "shared", "plain": "plain"}
_INIT = {"zero": "zero_gpts", "random": "random_gpts"}

Row = Mapping[str, Any]


def records(table: Table, test: str) -> list[dict[str, Any]]:
    """Records of one test function that hold something."""
    found = [r for r in table.more.get(MODULE, ()) if r["node"].split("::")[-1].split("[")[0] == test]
    return [r for r in found if r.get("facts") or r.get("samples") or r.get("failure")]


def lines(table: Table) -> dict[str, list[dict[str, str]]]:
    """Stem of a file to its lines; tables without any are left out."""
    makers: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, str]]]] = {
        "acoustic": _steps,
        "acoustic_series": _series,
        "acoustic_kernels": _kernels,
        "acoustic_triad": _triad,
    }
    tests = {"acoustic": "test_step", "acoustic_series": "test_series", "acoustic_kernels": "test_kernel"}
    found = {stem: make(records(table, tests.get(stem, "test_triad"))) for stem, make in makers.items()}
    return {stem: of for stem, of in found.items() if of}


def csv_texts(table: Table) -> dict[str, str]:
    """File name to text."""
    found = {}
    for stem, of in lines(table).items():
        found[f"{stem}.csv"] = csv_of(COLUMNS[stem], of)
    return found


def report(table: Table) -> list[tuple[str, tuple[str, ...]]]:
    """Sections of the report as text, each with the names of the figures below it."""
    found = []
    for stem, of in lines(table).items():
        title, text = TITLES[stem]
        columns = [c for c in COLUMNS[stem] if not c.endswith(("_lo", "_hi")) and any(line[c] for line in of)]
        cells = grid([c.replace("_", " ") for c in columns], [[line[c] for c in columns] for line in of])
        names = ("acoustic_roofline",) if stem == "acoustic_kernels" else (stem,)
        found.append((f"## {title}\n\n{text} All columns: `{stem}.csv`.\n\n{cells}", names))
    return found


def ceilings(table: Table) -> dict[str, float]:
    """What the triad's question measured: bytes ("triad") and float32 operations ("fma") a second."""
    found = {}
    for row in records(table, "test_triad"):
        if not row.get("samples"):
            continue
        seconds = stats.interval(used_times(row["samples"])).median / 1e3
        if row["variant"] == "multiply-adds":
            found["fma"] = row["facts"]["flops"] / seconds
        elif row["variant"] == "random-1-of-1":
            found["triad"] = row["facts"]["amount"] / seconds
    return found


def _blank(stem: str, row: Row) -> dict[str, str]:
    facts, values, out = row.get("facts") or {}, row.get("values"), dict.fromkeys(COLUMNS[stem], "")
    filled = {"variant": row["variant"], "schedule": facts.get("schedule", ""), "steps": str(facts.get("steps", ""))}
    filled["regs"], filled["spill_bytes"] = (str(facts.get(k, "")) for k in ("registers", "spill_bytes"))
    if values:
        filled["max_rel_err"] = f"{values['max_rel_err']:.2e}" if values["ok"] else f"WRONG {values['max_rel_err']:.2e}"
    if row.get("failure"):
        filled["failure"] = row["failure"].splitlines()[0][:160]
    return out | {k: v for k, v in filled.items() if k in out}


def _time(row: Row, out: dict[str, str], points: int, steps: int) -> None:
    """Time of a step and cells a second."""
    time = stats.interval(used_times(row["samples"]))
    out["ms_per_step"], out["ms_lo"], out["ms_hi"] = (f"{t / steps:.5f}" for t in (time.median, time.lo, time.hi))
    out["gpts"] = f"{points * steps / time.median / 1e6:.2f}"


def _against_triton(row: Row, out: dict[str, str], rows: Sequence[Row]) -> None:
    """Throughput over Triton's; the verdict is on times, as everywhere."""
    found = ratio(row, of_question(row, rows, "triton")) if row["variant"] not in ("triton", "copy") else None
    if found:
        out["over_triton"], out["over_triton_lo"] = f"{1 / found.median:.3f}", f"{1 / found.hi:.3f}"
        out["over_triton_hi"], out["verdict"] = f"{1 / found.lo:.3f}", stats.verdict(found)


def _steps(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    published = {p["variant"]: p for p in paper("acoustic")}
    found = []
    for row in rows:
        size, init = row["params"]["size"], row["params"]["init"]
        out = _blank("acoustic", row) | {"size": str(size), "init": init}
        named = published[_PUBLISHED[row["variant"]]]
        column = _INIT[init]
        out["paper_over_triton"] = f"{float(named[column]) / float(published['triton'][column]):.3f}"
        out["paper_zero_over_random"] = f"{float(named['zero_gpts']) / float(named['random_gpts']):.3f}"
        if row.get("samples"):
            _time(row, out, size**3, row["facts"]["steps"])
            _against_triton(row, out, rows)
        found.append(out)
    rates = {(o["size"], o["init"], o["variant"]): float(o["gpts"]) for o in found if o["gpts"]}
    for out in found:
        pair = [rates.get((out["size"], init, out["variant"])) for init in ("zero", "random")]
        if all(pair):
            out["zero_over_random"] = f"{pair[0] / pair[1]:.3f}"  # type: ignore[operator]
    return found


def _series(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for row in rows:
        size = row["shape"][0]
        out = _blank("acoustic_series", row) | {"size": str(size), "after": str(row["params"]["after"])}
        if row.get("samples"):
            _time(row, out, size**3, row["facts"]["steps"])
            _against_triton(row, out, rows)
        found.append(out)
    return found


def _kernels(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for row in rows:
        size, what = row["params"]["size"], row["params"]["what"]
        cube = Cube(size)
        whole = cube.inner_cells if what == "inner" else cube.cells - cube.inner_cells
        points = (row.get("facts") or {}).get("cells", whole)
        out = _blank("acoustic_kernels", row) | {"size": str(size), "kernels": what}
        nbytes, flops = (INNER_BYTES, INNER_FLOPS) if what == "inner" else (LAYER_BYTES, LAYER_FLOPS)
        if what == "layer" and row["variant"].startswith("dsl"):
            nbytes = PROFILE_BYTES
        copied = row["variant"] == "copy"
        out["bytes_a_point"] = str(nbytes)
        if not copied:
            out["flops_a_point"], out["flops_a_byte"] = str(flops), f"{flops / nbytes:.3f}"
        if row.get("samples"):
            time = stats.interval(used_times(row["samples"]))
            out |= {"ms": f"{time.median:.5f}", "ms_lo": f"{time.lo:.5f}", "ms_hi": f"{time.hi:.5f}"}
            out["gb_per_s"] = f"{nbytes * points / time.median / 1e6:.1f}"
            if not copied:
                out["gpts"] = f"{points / time.median / 1e6:.2f}"
                out["gflops"] = f"{flops * points / time.median / 1e6:.0f}"
                copy = ratio(row, of_question(row, rows, "copy"))
                out["ratio_to_copy"] = f"{copy.median:.4f}" if copy else ""
            _against_triton(row, out, rows)
        _counted(row, out, flops * points)
        found.append(out)
    return found


def _counted(row: Row, out: dict[str, str], flops: int) -> None:
    """What Nsight Compute counted, where it was asked."""
    metrics = (row.get("profile") or {}).get("metrics", {})
    if {"dram_read_bytes", "dram_write_bytes"} <= set(metrics):
        moved = metrics["dram_read_bytes"] + metrics["dram_write_bytes"]
        out["dram_bytes"] = f"{moved:.0f}"
        if moved and row["variant"] != "copy":
            out["flops_a_dram_byte"] = f"{flops / moved:.3f}"
    for name in ("l2_hit_pct", "l1_hit_pct"):
        if name in metrics:
            out[name] = f"{metrics[name]:.1f}"


def _triad(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    published = {Fraction(p["random_share"]): float(p["gb_per_s"]) for p in paper("acoustic_triad")}
    found = []
    for row in rows:
        if row["variant"] == "multiply-adds":
            continue
        share = Fraction(*map(int, row["variant"].removeprefix("random-").split("-of-")))
        out = _blank("acoustic_triad", row) | {"random_share": str(share)}
        if share in published:
            out["paper_over_full"] = f"{published[share] / published[Fraction(1)]:.3f}"
        if row.get("samples"):
            time = stats.interval(used_times(row["samples"]))
            out |= {"ms": f"{time.median:.5f}", "ms_lo": f"{time.lo:.5f}", "ms_hi": f"{time.hi:.5f}"}
            out["gb_per_s"] = f"{row['facts']['amount'] / time.median / 1e6:.1f}"
            full = ratio(row, of_question(row, rows, "random-1-of-1"))
            out["over_full"] = f"{1 / full.median:.4f}" if full else ""
        found.append(out)
    return found
