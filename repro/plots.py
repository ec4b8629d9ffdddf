"""Figures of the nine-row table. The same records give the same bytes (with one version of matplotlib)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repro.floors import rates
from repro.rows import ROWS, SIZES
from repro.tables import CEILINGS, Table, of_question, paper, paper_figures, ratio
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

_STYLE = Path(__file__).with_name("report.mplstyle")
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "0.45"
#: Size -> marker and colour: told apart without colour too.
_MARKS = {SIZES[0]: ("o", _BLUE), SIZES[1]: ("s", _ORANGE)}
#: Kind -> marker and what a reader calls it.
_LOOKS = {
    "dsl": ("o", "DSL"),
    "stream": ("s", "CUDA, streaming"),
    "arr": ("^", "CUDA, arrays"),
    "trans": ("D", "CUDA, bricks"),
    "triton": ("v", "Triton"),
    "cupy": ("P", "CuPy"),
    "jax": ("X", "JAX"),
    "published": ("*", "published compiler"),
}
#: The most registers an instruction can name.
_MAX_REGISTERS = 255


def draw(table: Table, folder: Path) -> list[Path]:
    """Writes the figures that the table's records allow, as SVG and PNG; returns the SVG paths."""
    figures: dict[str, Callable[[Table, Any], None]] = {}
    if table.timed:
        figures = {"ratio_to_copy": _ratio_to_copy, "ratio_to_arr": _ratio_to_arr, "variants": _variants}
        figures["roofline"] = _roofline
    figures["registers"] = _registers
    if not any(row.get("samples") for row in table.rows):
        figures["published"] = figures.pop("ratio_to_copy", _ratio_to_copy)
        for name in ("ratio_to_arr", "variants", "roofline"):
            figures.pop(name, None)
    if not table.rows:
        figures = {}
    from repro import more_plots

    figures |= more_plots.figures(table)
    paths = []
    for name, paint in figures.items():
        with _figure(folder / name) as axes:
            paint(table, axes)
        paths.append(folder / f"{name}.svg")
    return paths


@contextmanager
def _figure(path: Path) -> Iterator[Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.style.context(["default", str(_STYLE)]):
        figure, axes = plt.subplots()
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), metadata={"Software": None})
        plt.close(figure)


def _devices(table: Table) -> str:
    """Names of the devices that were measured; empty without one."""
    return ", ".join(sorted({p["device"]["name"] for p in table.provenance if p.get("device")}))


def _dsl(table: Table, size: int) -> dict[str, Any]:
    """Row id -> record of the DSL's kernel at a size."""
    rows = [row for row in table.rows if row["variant"] == "dsl" and row["params"]["size"] == size]
    return {row["params"]["stencil"]: row for row in rows}


def _ratio_to_copy(table: Table, axes: Any) -> None:
    """Time over the time of a copy of the row's compulsory bytes: hollow as published, filled as measured."""
    order = list(ROWS)
    places = {name: len(order) - 1 - i for i, name in enumerate(order)}
    axes.axvspan(1 - stats.TIE_BAND, 1 + stats.TIE_BAND, color="0.85", lw=0, zorder=0)
    axes.axvline(1, color=_GREY, lw=0.8, zorder=1)
    published = {name: figures[1] for name in order if (figures := paper_figures(name, "dsl"))}
    axes.plot(
        list(published.values()),
        [places[name] for name in published],
        "D",
        mfc="none",
        mec=_GREY,
        label="published, 256³, RTX PRO 4000",
    )
    for shift, size in zip((0.14, -0.14), SIZES, strict=True):
        marker, colour = _MARKS[size]
        label: str | None = f"measured, {size}³"
        for name, row in _dsl(table, size).items():
            found = ratio(row, of_question(row, table.rows, "copy"))
            if found is None:
                continue
            error = [[found.median - found.lo], [found.hi - found.median]]
            y = places[name] + shift
            axes.errorbar(found.median, y, xerr=error, fmt=marker, color=colour, capsize=2, label=label)
            label = None
    axes.set_yticks(list(places.values()), [ROWS[name].label for name in places])
    axes.set_xscale("log")
    axes.set_xlim(0.8, 20)
    axes.set_xticks([1, 1.5, 2, 3, 5, 10, 15], ["1", "1.5", "2", "3", "5", "10", "15"])
    axes.minorticks_off()
    axes.set_xlabel("time / time of a copy of the same bytes")
    axes.set_title(_devices(table), loc="right")
    axes.legend(loc="upper right")


def _ratio_to_arr(table: Table, axes: Any) -> None:
    """Time over that of the hand-written array kernel: hollow as published, filled as measured against the best."""
    order = list(ROWS)
    places = {name: len(order) - 1 - i for i, name in enumerate(order)}
    axes.axvspan(1 - stats.TIE_BAND, 1 + stats.TIE_BAND, color="0.85", lw=0, zorder=0)
    axes.axvline(1, color=_GREY, lw=0.8, zorder=1)
    published = {row["stencil"]: float(row["dsl_over_arr"]) for row in paper("bricklib")}
    xs, ys = list(published.values()), [places[name] for name in published]
    axes.plot(xs, ys, "D", mfc="none", mec=_GREY, label="published, 256³")
    for shift, size in zip((0.16, -0.16), SIZES, strict=True):
        marker, colour = _MARKS[size]
        label: str | None = f"measured, {size}³"
        for name, row in _dsl(table, size).items():
            found = ratio(row, of_question(row, table.rows, "arr"))
            if found is None:
                continue
            error = [[found.median - found.lo], [found.hi - found.median]]
            y = places[name] + shift
            axes.errorbar(found.median, y, xerr=error, fmt=marker, color=colour, capsize=2, label=label)
            label = None
    axes.set_yticks(list(places.values()), [ROWS[name].label for name in places])
    axes.set_xlim(0, 1.3)
    axes.set_xlabel("time / time of the best array kernel")
    axes.set_title(_devices(table), loc="right")
    axes.legend(loc="upper left")


def _variants(table: Table, axes: Any) -> None:
    """The best of each kind at the larger size, over a copy of the same bytes."""
    order = list(ROWS)
    axes.axhline(1, color=_GREY, lw=0.8)
    timed = {row["variant"] for row in table.rows if row.get("samples")}
    for n, (kind, (marker, label)) in enumerate((k, look) for k, look in _LOOKS.items() if k in timed):
        xs, ys = [], []
        for row in table.rows:
            if row["variant"] != kind or row["params"]["size"] != SIZES[-1]:
                continue
            found = ratio(row, of_question(row, table.rows, "copy"))
            if found is not None:
                xs.append(order.index(row["params"]["stencil"]) + (n - 3) * 0.11)
                ys.append(found.median)
        if xs:
            colour = "black" if kind == "dsl" else f"C{n - 1}"
            axes.plot(xs, ys, marker, color=colour, ms=4.5, label=label, mfc="none" if kind != "dsl" else colour)
    axes.set_yscale("log")
    axes.set_yticks([1, 1.5, 2, 3, 5, 10, 20, 50], ["1", "1.5", "2", "3", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.set_xticks(range(len(order)), order, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(order) - 0.4)
    axes.set_ylabel("time / time of a copy")
    axes.set_title(f"{_devices(table)}, {SIZES[-1]}³", loc="right")
    axes.legend(loc="upper left", ncols=3)


def _roofline(table: Table, axes: Any) -> None:
    """Operations per second over operations per compulsory byte, under the measured bandwidth of a copy."""
    for size in SIZES:
        marker, colour = _MARKS[size]
        bandwidth, label = 0.0, f"{size}³"
        for name, row in _dsl(table, size).items():
            if not row.get("samples"):
                continue
            seconds = stats.interval(used_times(row["samples"])).median / 1e3
            intensity = ROWS[name].flops / ROWS[name].bytes
            axes.plot(intensity, ROWS[name].flops * size**3 / seconds / 1e12, marker, color=colour, label=label)
            label = ""
            if size == SIZES[-1] or name not in _dsl(table, SIZES[-1]):
                at = (intensity, ROWS[name].flops * size**3 / seconds / 1e12)
                _name_point(axes, name, at)
            copy = of_question(row, table.rows, "copy")
            if copy is not None:
                rate = copy["bytes"] / (stats.interval(used_times(copy["samples"])).median / 1e3)
                bandwidth = max(bandwidth, rate)
        if bandwidth:
            style = "-" if size == SIZES[-1] else "--"
            ends = [0.4, 20.0]
            text = f"copy at {size}³: {bandwidth / 1e12:.2f} TB/s"
            axes.plot(ends, [bandwidth * x / 1e12 for x in ends], style, color=_GREY, lw=1, label=text)
    limits = [rates(table.more.get(CEILINGS, ()), file) for file in {row.get("file", "") for row in table.rows}]
    peak = max((2 * found.get("fma", 0.0) for found in limits), default=0.0)
    if peak:
        axes.axhline(peak / 1e12, color=_GREY, lw=1, ls=":", label=f"multiply-adds: {peak / 1e12:.0f} TFLOP/s")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8, 16], ["0.5", "1", "2", "4", "8", "16"])
    axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_xlabel("floating-point operations per compulsory byte (flop/B)")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(_devices(table), loc="right")
    axes.legend(loc="lower right")


#: Names of the roofline's points: where in points of the page, and which end of the text is there.
_NAMES = {"star-13": (-3, 16, "right"), "star-19": (-3, 20, "right"), "star-25": (-3, 24, "right")}
_NAMES |= {"cond": (3, -13, "left"), "box-125": (-5, -11, "right")}


def _name_point(axes: Any, name: str, at: tuple[float, float]) -> None:
    """Beside the point where there is room, else above the lines with a thread to it."""
    dx, dy, align = _NAMES.get(name, (5, -9, "left"))
    thread = {"arrowstyle": "-", "lw": 0.5, "color": _GREY, "shrinkB": 2} if dy > 0 else None
    axes.annotate(name, at, textcoords="offset points", xytext=(dx, dy), fontsize=8, ha=align, arrowprops=thread)


def _registers(table: Table, axes: Any) -> None:
    """Registers a thread; a row that spills says how much."""
    for shift, size in zip((-0.14, 0.14), SIZES, strict=True):
        marker, colour = _MARKS[size]
        rows = _dsl(table, size)
        known = [name for name in ROWS if rows.get(name, {}).get("facts", {}).get("registers") is not None]
        xs = [list(ROWS).index(name) + shift for name in known]
        axes.plot(xs, [rows[n]["facts"]["registers"] for n in known], marker, color=colour, label=f"{size}³")
        for x, name in zip(xs, known, strict=True):
            facts = rows[name]["facts"]
            if facts.get("spill_bytes"):
                at = (x, facts["registers"])
                axes.annotate(f"spills {facts['spill_bytes']} B", at, xytext=(0, 6), textcoords="offset points")
    axes.axhline(_MAX_REGISTERS, color=_GREY, lw=0.8)
    axes.set_xticks(range(len(ROWS)), list(ROWS), rotation=30, ha="right")
    axes.set_xlim(-0.6, len(ROWS) - 0.4)
    axes.set_ylim(0, 300)
    axes.set_ylabel("registers per thread")
    axes.text(-0.5, _MAX_REGISTERS + 5, "255: the most a thread can have", fontsize=8, color=_GREY)
    axes.set_title(f"compiled for {table.arch}", loc="right")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.98), ncols=2)
