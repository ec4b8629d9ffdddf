"""Figures of the tables beside the nine rows. Like `repro.plots` a pure function of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from repro.acoustic import plots as acoustic
from repro.more_tables import SPECS, lines
from repro.tables import Table
from stencil_dsl.testing import stats

_BLUE, _ORANGE, _GREEN, _PINK, _GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "0.45"
Paint = Callable[[Table, Any], None]


def figures(table: Table) -> dict[str, Paint]:
    """Name -> painter of what the records allow."""
    found: dict[str, Paint] = {}
    painters = {"steps": _steps, "shapes": _shapes, "groupings": _groupings, "random": _random, "stacks": _stacks}
    painters |= {"row_fold": _row_fold, "pairings": _pairings}
    for spec in SPECS:
        if spec.stem not in painters:
            continue
        of = lines(spec, table)
        needed = "instructions" if spec.stem in ("stacks", "row_fold", "pairings") else "ms"
        if any(line[needed] for line in of):
            found[spec.stem] = _bound(painters[spec.stem], of)
    return found | acoustic.figures(table)


def _bound(paint: Callable[[list[dict[str, str]], Any], None], of: list[dict[str, str]]) -> Paint:
    return lambda table, axes: paint(of, axes)


def _steps(of: list[dict[str, str]], axes: Any) -> None:
    """Time a step over a copy, against the steps of a sweep; the lines are what memory alone would allow."""
    looks = {"star-7": ("o", _BLUE), "star-13": ("s", _ORANGE), "plane-5": ("^", _GREEN), "plane-9": ("D", _PINK)}
    labels = {"star-7": "7-point star, 512³", "star-13": "13-point star, 512³"}
    labels |= {"plane-5": "5-point, 16384²", "plane-9": "9-point, 16384²"}
    for name, (marker, colour) in looks.items():
        points = [
            (int(line["steps"]), float(line["step_over_copy"]))
            for line in of
            if line["stencil"] == name and line["variant"] == "dsl" and line["step_over_copy"]
        ]
        if points:
            # The two in the plane lie on each other: one is hollow and larger.
            hollow = {"mfc": "none", "ms": 9} if name == "plane-9" else {}
            axes.plot(*zip(*points, strict=True), marker=marker, color=colour, lw=1, label=labels[name], **hollow)
    ks = [1, 2, 3, 4]
    axes.plot(ks, [1 / k for k in ks], ":", color=_GREY, label="copy / k: one pass over memory")
    axes.set_xticks(ks)
    axes.set_ylim(0, None)
    axes.set_xlabel("steps a sweep")
    axes.set_ylabel("time a step / time of a copy")
    axes.legend(loc="upper right")


def _shapes(of: list[dict[str, str]], axes: Any) -> None:
    """Picoseconds a point of each case, chosen and shifted schedule and copy."""
    cases = list(dict.fromkeys(line["question"] for line in of))
    looks = {"dsl": ("o", _BLUE, "chosen"), "shifted": ("s", _ORANGE, "shifted"), "copy": ("|", _GREY, "copy")}
    for variant, (marker, colour, label) in looks.items():
        xs, ys = [], []
        for line in of:
            if line["variant"] == variant and line["ms"]:
                cells = 1
                for extent in line["shape"].split("x"):
                    cells *= int(extent)
                xs.append(float(line["ms"]) * 1e9 / cells)
                ys.append(len(cases) - 1 - cases.index(line["question"]))
        axes.plot(xs, ys, marker, color=colour, label=label, ms=9 if marker == "|" else 5, mew=1.6)
    axes.set_yticks(range(len(cases)), [case.removeprefix("shape-") for case in reversed(cases)], fontsize=8)
    axes.set_xscale("log")
    axes.set_xticks([2, 3, 5, 10, 20, 50, 100], ["2", "3", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_xlabel("time a point (ps)")
    axes.legend(loc="upper right")


def _dots(of: list[dict[str, str]], axes: Any, names: list[str], column: str = "ratio") -> None:
    """Ratios with their intervals, one a line."""
    axes.axvspan(1 - stats.TIE_BAND, 1 + stats.TIE_BAND, color="0.85", lw=0, zorder=0)
    axes.axvline(1, color=_GREY, lw=0.8, zorder=1)
    label: str | None = "measured"
    for n, line in enumerate(of):
        if line[column]:
            middle, low, high = (float(line[c]) for c in (column, f"{column}_lo", f"{column}_hi"))
            error = [[middle - low], [high - middle]]
            axes.errorbar(middle, len(of) - 1 - n, xerr=error, fmt="o", color=_BLUE, capsize=2, label=label)
            label = None
    axes.set_yticks(range(len(of)), list(reversed(names)))


def _groupings(of: list[dict[str, str]], axes: Any) -> None:
    """Time of each grouping over the fused kernel's."""
    kept = [line for line in of if line["variant"] not in ("copy", "fused")]
    published = {"two-and-three": (16.4 / 17.1, 17.8 / 17.1), "five": (17.4 / 17.1, 17.4 / 17.1)}
    for n, line in enumerate(kept):
        if line["variant"] in published:
            xs = sorted(set(published[line["variant"]]))
            y = len(kept) - 1 - n - 0.15
            label = "published, 256³, RTX PRO 4000" if n == 1 else None
            axes.plot(xs, [y] * len(xs), "D-", mfc="none", color=_GREY, lw=0.8, label=label)
    _dots(kept, axes, [line["variant"] for line in kept])
    axes.set_ylim(-0.6, len(kept) + 0.3)
    axes.set_xlabel("time / time of the fused kernel")
    axes.legend(loc="upper left", ncols=2)


def _random(of: list[dict[str, str]], axes: Any) -> None:
    """The DSL over the best array and the best brick kernel; hollow: as published, of other draws of the same kind."""
    kept = [line for line in of if line["variant"] == "dsl"]
    axes.axvspan(1 - stats.TIE_BAND, 1 + stats.TIE_BAND, color="0.85", lw=0, zorder=0)
    axes.axvline(1, color=_GREY, lw=0.8, zorder=1)
    series = (("ratio", "paper_ratio", "o", _BLUE, "arrays", 0.15),)
    series += (("ratio_to_trans", "paper_ratio_to_trans", "s", _ORANGE, "bricks", -0.15),)
    for column, paper, marker, colour, label, shift in series:
        points = [(line, len(kept) - 1 - n + shift) for n, line in enumerate(kept)]
        for line, y in points:
            if line[column]:
                middle, low, high = (float(line[c]) for c in (column, f"{column}_lo", f"{column}_hi"))
                axes.errorbar(middle, y, xerr=[[middle - low], [high - middle]], fmt=marker, color=colour, capsize=2)
        published = [(float(line[paper]), y) for line, y in points if line[paper]]
        axes.plot([], [], marker, color=colour, label=f"over the best of {label}, 256³")
        axes.plot(*zip(*published, strict=True), marker, mfc="none", mec=colour, label=f"published, over {label}")
    names = [line["question"].removeprefix("random-") for line in kept]
    axes.set_yticks(range(len(kept)), list(reversed(names)))
    axes.set_xlim(0, None)
    axes.set_ylim(-0.6, len(kept) + 1.1)
    axes.set_xlabel("time / time of the hand-written kernel")
    axes.legend(loc="upper left", ncols=2)


def _stacks(of: list[dict[str, str]], axes: Any) -> None:
    """Instructions of each stencil by release."""
    stencils = list(dict.fromkeys(line["question"] for line in of))
    for n, name in enumerate(stencils):
        points = [
            (line["variant"].removeprefix("stack-"), int(line["instructions"]))
            for line in of
            if line["question"] == name and line["instructions"]
        ]
        if points:
            label = name.removesuffix("-stacks")
            axes.plot(*zip(*points, strict=True), marker="os^Dv"[n % 5], lw=1, label=label)
    counts = [int(line["instructions"]) for line in of if line["instructions"]]
    axes.set_yscale("log")
    axes.set_yticks([100, 200, 500, 1000, 2000, 5000, 10000], ["100", "200", "500", "1000", "2000", "5000", "10000"])
    axes.minorticks_off()
    axes.set_ylim(0.7 * min(counts), 2.5 * max(counts))  # room for the legend
    axes.set_xlabel("toolkit release")
    axes.set_ylabel("instructions of the kernel")
    axes.legend(loc="upper center", ncols=3)


def _row_fold(of: list[dict[str, str]], axes: Any) -> None:
    """What each way to get rows is made of; hollow: shared-memory instructions as published."""
    kept = [line for line in of if line["instructions"]]
    looks = (("instructions", "o", _BLUE, "all instructions"), ("loads", "^", _GREEN, "global loads"))
    looks += (("shared_memory_instructions", "s", _ORANGE, "shared memory"),)
    for column, marker, colour, label in looks:
        xs = [int(line[column] or 0) for line in kept]
        axes.plot(xs, range(len(kept) - 1, -1, -1), marker, color=colour, label=label)
    column = "paper_shared_memory_instructions"
    published = [(int(line[column]), len(kept) - 1 - n) for n, line in enumerate(kept) if line[column]]
    if published:
        axes.plot(*zip(*published, strict=True), "s", mfc="none", mec=_ORANGE, ms=9, label="shared memory, published")
    axes.set_yticks(range(len(kept)), [line["variant"] for line in reversed(kept)])
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xticks([0, 10, 100, 1000], ["0", "10", "100", "1000"])
    axes.set_xlim(-1, None)
    axes.set_ylim(-0.6, len(kept) + 0.6)
    axes.set_xlabel("instructions of the kernel")
    axes.legend(loc="upper left", ncols=2)


def _pairings(of: list[dict[str, str]], axes: Any) -> None:
    """Instructions by pairing of tools; a cross is a pairing that refuses to compile."""
    order = [line for line in of if line["instructions"] or "failed" in line["failure"]]  # not what is not installed
    names = [" / ".join(line["variant"].split("-")[1::2]) + f", {line['arch']}" for line in order]
    for column, fill, label in (("instructions", _BLUE, "measured"), ("paper_instructions", "none", "published")):
        points = [(int(line[column]), len(order) - 1 - n) for n, line in enumerate(order) if line[column]]
        if column == "paper_instructions":
            points = [point for point in points if order[len(order) - 1 - point[1]]["arch"] == "sm_120"]
        if points:
            marker, edge = ("o", _BLUE) if column == "instructions" else ("D", _GREY)
            axes.plot(*zip(*points, strict=True), marker, mfc=fill, mec=edge, label=label)
    refused = [len(order) - 1 - n for n, line in enumerate(order) if not line["instructions"]]
    axes.plot([0] * len(refused), refused, "x", color=_ORANGE, label="refused", clip_on=False)
    axes.set_yticks(range(len(order)), list(reversed(names)), fontsize=7.5)
    axes.set_xlim(0, None)
    axes.set_ylim(-0.6, len(order) + 0.9)
    axes.set_xlabel("instructions of the 27-point kernel")
    axes.set_ylabel("tileiras / libnvvm / ptxas")
    axes.legend(loc="upper left", ncols=3)


CAPTIONS = {
    "steps": "Time a step over a copy of the bytes of one step. Dotted: one pass over memory for k steps.",
    "shapes": "Time a point by case: what the compiler chose, the shifted schedule, and a copy of the same bytes.",
    "groupings": "Groupings of CNS's outputs over the fused kernel, 512³; hollow: as published.",
    "random": "Random expressions, 256³: the DSL over the best array and the best brick kernel; hollow: the published "
    "ratios of other draws.",
    "row_fold": "27-point box: instructions of each way to get rows; hollow: shared-memory instructions as published.",
    "pairings": "Instructions of the 27-point box by pairing of tools; hollow: as published (sm_120).",
    "stacks": "Instructions of the checked kernels by toolkit release (sm_120).",
    **acoustic.CAPTIONS,
}
