"""``python -m repro render``: redraws tables, plots and reports from record files."""

from __future__ import annotations

from pathlib import Path

from repro.report import markdown
from repro.tables import Table, csv_text, load, problems


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
        _write(folder / "bricklib.csv", csv_text(table))
        plots = _plots(table, folder / "plots")
        _write(folder / "report.md", markdown(table, plots, folder))
        print(f"{folder / 'bricklib.csv'}\n{folder / 'report.md'}")
        for line in problems(table):
            print(f"  failed: {line}")
            status = 1
    return status


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
