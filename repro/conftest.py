"""What the reproduction adds to the harness: variants that only a device tells apart, and the A/A control."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marker = "compiled_only" if config.getoption("gpu") else "timed_only"
    left_out = [item for item in items if item.get_closest_marker(marker)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


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
