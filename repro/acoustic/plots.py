"""Figures of the acoustic wave. Pure functions of its tables' lines, like `repro.more_plots`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from repro.acoustic.tables import ceilings, lines
from repro.tables import Table

_BLUE, _ORANGE, _GREEN, _PINK, _GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "0.45"
LOOKS = {
    "dsl": ("o", _BLUE, "DSL"),
    "dsl-apart": ("D", "#56B4E9", "DSL, not in place"),
    "triton": ("v", _ORANGE, "Triton"),
    "shared": ("s", _GREEN, "CUDA, shared memory"),
    "plain": ("^", _PINK, "CUDA, plain"),
}
Paint = Callable[[Table, Any], None]
Lines = list[dict[str, str]]

CAPTIONS = {
    "acoustic": "Cells a second of whole steps, n³ over the time of a step. Filled: from rest. Hollow: from random "
    "fields.",
    "acoustic_series": "Cells a second of the steps just before the given one, from rest.",
    "acoustic_triad": "Bandwidth of the triad by the share of random elements. Hollow: as published on a B580, scaled "
    "so that full random data agree.",
    "acoustic_roofline": "Float32 operations per second over operations per compulsory byte. Filled: the inner box. "
    "Hollow: the layer. The lines are the triad and the multiply-adds of this run.",
}


def figures(table: Table) -> dict[str, Paint]:
    """Name to painter of what the records allow."""
    of = lines(table)
    painters = {"acoustic": _steps, "acoustic_series": _series, "acoustic_triad": _triad}
    found = {
        stem: _bound(paint, of[stem])
        for stem, paint in painters.items()
        if any(line.get("gpts") or line.get("gb_per_s") for line in of.get(stem, ()))
    }
    if any(line["gflops"] for line in of.get("acoustic_kernels", ())):
        found["acoustic_roofline"] = lambda table, axes: _roofline(of["acoustic_kernels"], ceilings(table), axes)
    return found


def _bound(paint: Callable[[Lines, Any], None], of: Lines) -> Paint:
    return lambda table, axes: paint(of, axes)


def _steps(of: Lines, axes: Any) -> None:
    sizes = sorted({int(line["size"]) for line in of})
    for variant, (marker, colour, label) in LOOKS.items():
        for init, face, ms in (("random", "none", 8), ("zero", colour, 5)):
            points = [
                (sizes.index(int(line["size"])), float(line["gpts"]))
                for line in of
                if (line["variant"], line["init"]) == (variant, init) and line["gpts"]
            ]
            if points:
                named = label if init == "zero" else None
                xs, ys = zip(*points, strict=True)
                axes.plot(xs, ys, marker, color=colour, mfc=face, ms=ms, label=named, ls="-" if init == "zero" else "")
    axes.set_xticks(range(len(sizes)), [f"{size}³" for size in sizes])
    axes.set_xlim(-0.4, len(sizes) - 0.6)
    axes.set_ylim(0, None)
    axes.set_xlabel("cells of the cube")
    axes.set_ylabel("throughput (10⁹ cells/s)")
    axes.legend(loc="best")


def _series(of: Lines, axes: Any) -> None:
    for variant, (marker, colour, label) in LOOKS.items():
        points = [
            (int(line["after"]), float(line["gpts"])) for line in of if line["variant"] == variant and line["gpts"]
        ]
        if points:
            axes.plot(*zip(*sorted(points), strict=True), marker=marker, color=colour, lw=1, label=label)
    axes.set_xticks(sorted({int(line["after"]) for line in of}))
    axes.set_ylim(0, None)
    axes.set_xlabel(f"steps from rest, {of[0]['size']}³ cells")
    axes.set_ylabel("throughput (10⁹ cells/s)")
    axes.legend(loc="best")


def _triad(of: Lines, axes: Any) -> None:
    timed = [line for line in of if line["gb_per_s"]]
    shares = [float(Fraction(line["random_share"])) for line in timed]
    rates = [float(line["gb_per_s"]) / 1e3 for line in timed]
    axes.plot(shares, rates, "o-", color=_BLUE, lw=1, label="measured")
    full = next((r for s, r in zip(shares, rates, strict=True) if s == 1), None)
    published = [line for line in timed if line["paper_over_full"]]
    if full is not None and published:
        xs = [float(Fraction(line["random_share"])) for line in published]
        ys = [float(line["paper_over_full"]) * full for line in published]
        axes.plot(xs, ys, "D", mfc="none", color=_GREY, label="published, B580, scaled")
    axes.set_xscale("log", base=2)
    axes.set_xticks(shares, [line["random_share"] for line in timed])
    axes.set_ylim(0, None)
    axes.set_xlabel("share of random elements")
    axes.set_ylabel("bandwidth (TB/s)")
    axes.legend(loc="best")


def _roofline(of: Lines, measured: dict[str, float], axes: Any) -> None:
    size = max(int(line["size"]) for line in of if line["gflops"])
    for variant, (marker, colour, label) in LOOKS.items():
        for line in of:
            if (line["variant"], line["size"]) == (variant, str(size)) and line["gflops"]:
                inner = line["kernels"] == "inner"
                x, y = float(line["flops_a_byte"]), float(line["gflops"]) / 1e3
                face, named = (colour, label) if inner else ("none", None)
                axes.plot(x, y, marker, color=colour, mfc=face, ms=6, label=named)
    low, high = 0.5, 64.0
    if "triad" in measured:
        bandwidth = measured["triad"] / 1e12
        end = min(high, measured.get("fma", float("inf")) / measured["triad"])
        axes.plot([low, end], [low * bandwidth, end * bandwidth], "-", color=_GREY, lw=0.8)
        axes.annotate(f"triad, {bandwidth:.2f} TB/s", (low, 4.0 * low * bandwidth), fontsize=8, color=_GREY)
        if "fma" in measured:
            peak = measured["fma"] / 1e12
            axes.plot([end, high], [peak, peak], "-", color=_GREY, lw=0.8)
            axes.annotate(
                f"multiply-adds, {peak:.0f} TFLOP/s", (high, 1.15 * peak), fontsize=8, color=_GREY, ha="right"
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8, 16, 32, 64], ["0.5", "1", "2", "4", "8", "16", "32", "64"])
    axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_xlabel(f"operations per byte, {size}³ cells")
    axes.set_ylabel("TFLOP/s")
    axes.legend(loc="lower right")
