"""What the reproduction adds to the harness: options, variants that only a device tells apart, the A/A control."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("reproduction", "the reproduction's tables")
    group.addoption(
        "--published", metavar="PYTHON", help="time the published compiler too: an interpreter that has cutile-stencil"
    )
    group.addoption(
        "--bricklib", metavar="DIR", help="with --gpu: times of bricklib's own programs, see docs/reproduction.md"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("bricklib") and not config.getoption("gpu"):
        raise pytest.UsageError("--bricklib needs --gpu: its times are kept with the device's")
    named = config.getoption("published")
    if named is None:
        return
    from repro.baselines.published import VARIABLE

    found = shutil.which(named)
    if found is None:
        raise pytest.UsageError(f"--published {named}: no such program; it names a Python interpreter")
    os.environ[VARIABLE] = str(Path(found).absolute())  # worker processes need it too


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the option there is nothing to ask."""
    return True if collection_path.name == "test_external.py" and not config.getoption("bricklib") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says whether the same kernel, timed twice in the same rounds, came out a tie."""
    from repro.controls import verdicts
    from stencil_dsl.testing.fixtures import PROPERTY

    records = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY and getattr(report, "when", "") == "call"
    ]
    found = verdicts(records)
    if not found:
        return
    ties = sum(control.verdict == "tie" for control in found)
    terminalreporter.section("A/A control", sep="-")
    terminalreporter.line(f"the same kernel timed twice in the same rounds: {ties} of {len(found)} are ties")
    for control in found:
        if control.verdict != "tie":
            terminalreporter.line(f"  {control.question}: {control.ratio.median:.4f}, {control.verdict}")
