"""Committed tables and reports are what their committed records give."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from repro.render import render

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def committed(pattern: str) -> list[Path]:
    """Files under results/ that git tracks; a local run may have added others."""
    done = subprocess.run(
        ["git", "ls-files", f":(glob)results/{pattern}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """A folder drawn from the committed records alone."""
    pytest.importorskip("matplotlib")
    records = committed("*/records/*.jsonl")
    assert records, "the measurements under results/ are part of the repository"
    copied, out = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("redrawn")
    for record in records:
        target = copied / record.relative_to(RESULTS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(record.read_bytes())
    render(copied, out)
    return out


def test_tables_and_reports_are_redrawn_exactly(redrawn):
    drawn = {file.relative_to(redrawn) for file in redrawn.rglob("*") if file.suffix in (".csv", ".md")}
    assert drawn, "records without a table"
    for file in sorted(drawn):
        assert (RESULTS / file).read_bytes() == (redrawn / file).read_bytes(), f"results/{file}: python -m repro render"


def test_figures_are_redrawn_exactly_by_the_version_that_drew_them(redrawn):
    import matplotlib

    figures = sorted(redrawn.rglob("*.svg"))
    assert figures
    for figure in figures:
        kept = RESULTS / figure.relative_to(redrawn)
        drawn_by = re.search(r"Matplotlib v([\d.]+)", kept.read_text())
        assert drawn_by, f"{kept.name} does not say what drew it"
        if drawn_by[1] == matplotlib.__version__:
            assert kept.read_bytes() == figure.read_bytes(), f"results/{figure.relative_to(redrawn)}"
