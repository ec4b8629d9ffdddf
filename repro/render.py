"""``python -m repro render``: redraws tables, plots and reports from record files."""

from __future__ import annotations

from pathlib import Path

from repro import external, machine_code, more_tables, traffic
from repro.acoustic import tables as acoustic
from repro.controls import verdicts
from repro.page import page
from repro.report import markdown
from repro.tables import CEILINGS, Table, csv_text, floors_text, load, problems


def render(results: Path, out: Path | None = None) -> int:
    """Draws everything the records under `results` hold into `out` (default: the same folder).

    Returns 0, or 1 when there is nothing to draw or a row failed or has wrong values.
    """
    out = out or results
    tables = load(results)
    if not tables:
        print(f"no records under {results}: run pytest repro/ first")
        return 1
    status = 0
    for table in tables:
        folder = out / table.folder
        for name, text in _tables(table).items():
            _write(folder / name, text)
        plots = _plots(table, folder / "plots")
        report = markdown(table, plots, folder)
        _write(folder / "report.md", report)
        _write(folder / "report.html", page(report, folder))
        print(f"{folder / 'report.md'}\n{folder / 'report.html'}")
        for line in problems(table):
            print(f"  failed: {line}")
            status = 1
        for control in verdicts(table.every):
            if control.verdict in ("faster", "slower"):
                print(f"  A/A control failed: {control.question}, {control.ratio.median:.4f}")
                status = 1
    return status


def _tables(table: Table) -> dict[str, str]:
    """File name -> text of every table that the records allow."""
    found = {}
    if table.rows:
        found["bricklib.csv"] = csv_text(table)
    if len(table.every) > len(table.rows):
        found["baselines.csv"] = csv_text(table, table.every)
    if table.more.get(CEILINGS) and table.rows:
        found["floors.csv"] = floors_text(table)
    records = machine_code.of(table)
    if machine_code.lines(records):
        found["sass.csv"] = machine_code.csv_text(records)
    if traffic.lines(records):
        found["traffic.csv"] = traffic.csv_text(records)
    if external.lines(table):
        found["external.csv"] = external.csv_text(table)
    for spec in more_tables.SPECS:
        if more_tables.lines(spec, table):
            found[f"{spec.stem}.csv"] = more_tables.csv_text(spec, table)
    return found | acoustic.csv_texts(table)


def _plots(table: Table, folder: Path) -> list[Path]:
    try:
        from repro.plots import draw

        return draw(table, folder)
    except ImportError as error:
        print(f"plots left out: {error}; pip install 'stencil-dsl[repro]'")
        return []


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
