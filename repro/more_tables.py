"""The tables beside the nine rows: composed steps, shapes, groupings, random expressions, row fold, tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from repro.opponents import kind_of
from repro.solver_tables import EXAMPLE_COLUMNS, LOOP_COLUMNS, loop_line, per_step
from repro.tables import Table, csv_of, of_question, paper, ratio
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

COLUMNS = (
    *("question", "arch", "dtype", "shape", "variant", "schedule", "ms", "ms_lo", "ms_hi", "gcells", "copy_ms"),
    *("ratio_to_copy", "against", "ratio", "ratio_lo", "ratio_hi", "verdict", "instructions", "branches", "loads"),
    *("shared_memory_instructions", "regs", "spill_bytes", "max_rel_err", "failure"),
)


@dataclass(frozen=True)
class Spec:
    """One table.

    Attributes:
        stem: of its file.
        title, text: heading and what a reader should know.
        module, test: which records: those of a test function of a module.
        against: the variant that `ratio` and `verdict` are against; a kind stands for its best configuration.
        extra: names of further columns, and what fills them from a record and its line.
    """

    stem: str
    title: str
    text: str
    module: str
    tests: tuple[str, ...]
    against: str
    columns: tuple[str, ...] = ()
    extra: Callable[[Mapping[str, Any], Mapping[str, str], list[dict[str, Any]]], dict[str, str]] | None = None


def _per_step(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """Time a step, and over a copy of the bytes that a sweep of one step must move."""
    steps = row["params"]["steps"]
    out = {"stencil": row["params"]["stencil"], "steps": str(steps)}
    if row.get("samples") and row["variant"] != "copy":
        out["ms_per_step"] = f"{float(line['ms']) / steps:.5f}"
        if line["ratio_to_copy"]:
            out["step_over_copy"] = f"{float(line['ratio_to_copy']) / steps:.4f}"
    return out


def _published_stack(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    release = row["variant"].removeprefix("stack-")
    for published in paper("stacks"):
        if release in published["stack"] and published.get(row["params"]["stencil"]):
            return {"paper_ms": published[row["params"]["stencil"]]}
    return {}


def _published_pairing(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    parts = row["variant"].split("-")
    tools = dict(zip(parts[::2], parts[1::2], strict=True))
    for p in paper("pairings"):
        named = (p["tileiras"].rsplit(".", 1)[0], p["libnvvm"], p["ptxas"])
        if named == (tools["tileiras"], tools["nvvm"], tools["ptxas"]):
            return {"paper_instructions": p["instructions"], "paper_branches": p["branches"], "paper_error": p["error"]}
    return {}


def _published_fold(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    named = {"shifted": "shifted", "fold-cat": "row fold TY=2 TZ=128"}.get(row["variant"])
    for p in paper("row_fold"):
        if p["stencil"] == "box-27" and p["emitter"] == named:
            return {"paper_ms": p["ms_lo"], "paper_shared_memory_instructions": p["shared_memory_instructions_lo"]}
    return {}


def _published_random(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The published ratios, and our own to the best brick kernel."""
    if row["variant"] != "dsl":
        return {}
    (p,) = (p for p in paper("random") if p["case"] == row["params"]["case"])
    out = {"paper_ratio": p["dsl_over_arr"], "paper_ratio_to_trans": p["dsl_over_trans"]}
    between = ratio(row, fastest(rows, row, "trans"))
    if between:
        out |= {"ratio_to_trans": f"{between.median:.4f}"}
        out |= {"ratio_to_trans_lo": f"{between.lo:.4f}", "ratio_to_trans_hi": f"{between.hi:.4f}"}
    return out


SPECS = (
    Spec(
        "steps",
        "Composed steps",
        "Sweeps of k steps of a linear stencil (`temporal_steps=k`); values are compared with k single steps. "
        "`step_over_copy` is the time of a step over a copy of the bytes that one step must move.",
        "repro/test_steps.py",
        ("test_steps",),
        "copy",
        ("stencil", "steps", "ms_per_step", "step_over_copy"),
        _per_step,
    ),
    Spec(
        "shapes",
        "Other stencils and extents",
        "Stencils that bricklib does not ship, float32, and extents that no tile divides. The ratio is against the "
        "shifted schedule, which loads every access.",
        "repro/test_shapes.py",
        ("test_shape",),
        "shifted",
    ),
    Spec(
        "groupings",
        "CNS groupings",
        "The same five outputs by one, two and five kernels; registers are the largest and instructions the sum over "
        "the kernels. Published (256³, RTX PRO 4000): fused 17.1 ms, two kernels 16.4 to 17.8 ms, five 17.4 ms.",
        "repro/test_groupings.py",
        ("test_grouping",),
        "fused",
    ),
    Spec(
        "lanes",
        "Neighbours from other lanes",
        "The shuffle schedule (device functions of a tile library) in several blockings, warps by rows of a block, "
        "and in the one that its model predicts fastest, against the schedule of the tables.",
        "repro/test_lanes.py",
        ("test_lanes",),
        "dsl",
    ),
    Spec(
        "random",
        "Random expressions",
        "Eight draws of the published kind (fields, radius, terms) with seeds of our own, not the published "
        "expressions; array kernels (*arr*) and brick kernels (*trans*) are generated from the same tree.",
        "repro/test_random.py",
        ("test_random",),
        "arr",
        ("paper_ratio", "ratio_to_trans", "ratio_to_trans_lo", "ratio_to_trans_hi", "paper_ratio_to_trans"),
        _published_random,
    ),
    Spec(
        "row_fold",
        "Row fold",
        "27-point box: one tall load whose rows are taken out and put together again, against one load an access and "
        "against rows that are each loaded once into registers.",
        "repro/test_tools.py",
        ("test_fold",),
        "shifted",
        ("paper_ms", "paper_shared_memory_instructions"),
        _published_fold,
    ),
    Spec(
        "stacks",
        "Compiler stacks",
        "One kernel (checked loads, extents at run time) by each release, for sm_120: 13.2 knows no sm_90. A release "
        "that is not installed is named as such.",
        "repro/test_tools.py",
        ("test_stack",),
        "stack-13.5",
        ("paper_ms",),
        _published_stack,
    ),
    Spec(
        "pairings",
        "Pairings of tools",
        "Tileiras, libnvvm and ptxas of different releases in one compile of the 27-point box.",
        "repro/test_tools.py",
        ("test_pairing", "test_newer_pairing"),
        "",
        ("paper_instructions", "paper_branches", "paper_error"),
        _published_pairing,
    ),
    Spec(
        "solvers",
        "Time loops",
        "A launch makes many steps; `ms_per_step` is the time of one. `ratio` is against the sweep alone, CuPy's "
        "launch of an empty kernel, the loop with ghost cells at the ends of rows, or one GPU; `ratio_to_copy` is a "
        "step against a copy of the bytes that it must move. The model of several GPUs is "
        "`stencil_dsl/solve/scaling.py`.",
        "repro/test_solvers.py",
        ("test_step", "test_rows", "test_host", "test_scaling"),
        "",
        LOOP_COLUMNS,
        loop_line,
    ),
    Spec(
        "examples",
        "Examples",
        "The programs of `examples/` at the size of a GPU; `max_rel_err` is against a solution of each.",
        "repro/test_examples.py",
        ("test_example",),
        "",
        EXAMPLE_COLUMNS,
        per_step,
    ),
)


def rows_of(spec: Spec, table: Table) -> list[dict[str, Any]]:
    """The table's records in the order of the tests."""
    found = table.more.get(spec.module, ())
    return [row for row in found if row["node"].split("::")[-1].split("[")[0] in spec.tests]


def fastest(rows: list[dict[str, Any]], row: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The record of the same question and run with the smallest median among a kind's configurations."""
    names = [r["variant"] for r in rows if r["question"] == row["question"] and kind_of(r["variant"]) == kind]
    timed = [other for name in names if (other := of_question(row, rows, name)) is not None]
    return min(timed, key=lambda r: stats.interval(used_times(r["samples"])).median) if timed else None


def line_of(spec: Spec, row: Mapping[str, Any], rows: list[dict[str, Any]]) -> dict[str, str]:
    """One line of a table as text; what was not measured is empty."""
    facts, values = row.get("facts", {}), row.get("values")
    out = dict.fromkeys((*COLUMNS, *spec.columns), "")
    out |= {"question": row["question"], "arch": row["arch"], "dtype": row["dtype"], "variant": row["variant"]}
    out["shape"] = "x".join(map(str, row["shape"]))
    out["schedule"] = facts.get("schedule", "")
    for column, fact in (("instructions", "instructions"), ("branches", "branches"), ("regs", "registers")):
        out[column] = _text(facts.get(fact))
    out["spill_bytes"] = _text(facts.get("spill_bytes"))
    classes = facts.get("classes")
    if classes:
        out["loads"] = str(_count(classes, "LDG"))
        out["shared_memory_instructions"] = str(sum(_count(classes, c) for c in ("LDS", "STS", "LDSM", "STSM")))
    if values:
        out["max_rel_err"] = f"{values['max_rel_err']:.2e}" if values["ok"] else f"WRONG {values['max_rel_err']:.2e}"
    if row.get("failure"):
        out["failure"] = row["failure"].splitlines()[0][:160]
    if row.get("samples"):
        time = stats.interval(used_times(row["samples"]))
        out |= {"ms": f"{time.median:.5f}", "ms_lo": f"{time.lo:.5f}", "ms_hi": f"{time.hi:.5f}"}
        copy = of_question(row, rows, "copy")
        if copy is not None:
            out["copy_ms"] = f"{stats.interval(used_times(copy['samples'])).median:.5f}"
        if row["variant"] != "copy":
            out["gcells"] = f"{prod(row['shape']) / time.median / 1e6:.2f}"
            to_copy = ratio(row, copy)
            out["ratio_to_copy"] = f"{to_copy.median:.4f}" if to_copy else ""
            other = fastest(rows, row, spec.against)
            between = ratio(row, other) if other is not None and other["variant"] != row["variant"] else None
            if between:
                out |= {"against": other["variant"] if other else "", "ratio": f"{between.median:.4f}"}
                out |= {"ratio_lo": f"{between.lo:.4f}", "ratio_hi": f"{between.hi:.4f}"}
                out["verdict"] = stats.verdict(between)
    return out | (spec.extra(row, out, rows) if spec.extra else {})


def lines(spec: Spec, table: Table) -> list[dict[str, str]]:
    """The whole table; a copy without times holds nothing and is left out."""
    rows = rows_of(spec, table)
    kept = [row for row in rows if row.get("facts") or row.get("samples") or row.get("failure")]
    return [line_of(spec, row, rows) for row in kept]


def csv_text(spec: Spec, table: Table) -> str:
    return csv_of((*COLUMNS, *spec.columns), lines(spec, table))


def _count(classes: Mapping[str, int], name: str) -> int:
    """Instructions of a class in all widths."""
    return sum(n for key, n in classes.items() if key == name or key.startswith(f"{name}."))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
