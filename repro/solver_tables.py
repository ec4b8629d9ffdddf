"""Tables of time loops: solvers.csv and examples.csv."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.tables import of_question, ratio
from stencil_dsl.solve.scaling import Work, predict
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

BASELINE = {"test_step": "sweep", "test_rows": "ghost-cells", "test_host": "raw-kernel", "test_scaling": "one"}
"""What a row's time is compared with, by test."""

EXCHANGED = {"star-7": (1, 8), "star-25": (4, 8), "acoustic": (4, 4)}
"""Ghost cells on each side and bytes a cell of what travels between GPUs."""

EXAMPLE_COLUMNS = ("steps", "cells", "ms_per_step", "kernels")
LOOP_COLUMNS = (*EXAMPLE_COLUMNS, "efficiency", "model_efficiency", "model_bound")


def per_step(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The time of a step in place of that of a launch, which makes many."""
    facts = row.get("facts", {})
    steps = facts.get("steps")
    out: dict[str, str] = {"gcells": ""}
    if steps:
        out["steps"] = str(steps)
        if "cells" in facts:
            out["cells"] = str(facts["cells"])
        if "kernels" in facts:
            out["kernels"] = str(facts["kernels"])
        if "error" in facts:
            out["max_rel_err"] = f"{facts['error']:.2e}"
        if row.get("samples"):
            ms = float(line["ms"]) / steps
            out["ms_per_step"] = f"{ms:.5f}"
            if "cells" in facts:
                out["gcells"] = f"{facts['cells'] / ms / 1e6:.2f}"
    return out


def loop_line(row: Mapping[str, Any], line: Mapping[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """A row of solvers.csv: also against the test's baseline, and the efficiency of several GPUs."""
    out = per_step(row, line, rows)
    test = row["node"].split("::")[-1].split("[")[0]
    base = of_question(row, rows, BASELINE[test])
    if base is None or not row.get("samples") or base["variant"] == row["variant"]:
        return out
    between = ratio(row, base)
    if between:
        out |= {"against": base["variant"], "ratio": f"{between.median:.4f}", "verdict": stats.verdict(between)}
        out |= {"ratio_lo": f"{between.lo:.4f}", "ratio_hi": f"{between.hi:.4f}"}
        if test == "test_scaling":
            out |= _efficiency(row, base, between.median)
    return out


def _efficiency(row: Mapping[str, Any], base: Mapping[str, Any], slower: float) -> dict[str, str]:
    """Of two GPUs: measured, and as the model has it from one GPU's time."""
    one, mine = base["facts"], row["facts"]
    work = mine["cells"] / one["cells"]
    out = {"efficiency": f"{work / slower / 2:.4f}"}
    seconds = stats.interval(used_times(base["samples"])).median / 1e3 / one["steps"]
    radius, size = EXCHANGED[row["params"]["what"]]
    n = round((one["cells"]) ** (1 / 3))
    shape = (round(work) * n, n, n)
    said = predict(shape, (2, 1, 1), Work(seconds / one["cells"], radius, size))
    return out | {"model_efficiency": f"{said.efficiency:.4f}", "model_bound": said.bound}
