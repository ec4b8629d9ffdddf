"""A/A controls: the DSL's kernel timed twice in the same rounds. What differs there is the method, not the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

AGAIN = "-again"
"""A variant of this ending is the one before it once more."""


@dataclass(frozen=True)
class Control:
    """One pair: the question, the ratio of the two, and "tie", "unclear", "faster" or "slower"."""

    question: str
    ratio: stats.Interval
    verdict: str


def verdicts(rows: Iterable[Mapping[str, Any]]) -> list[Control]:
    """All pairs that one run timed, in the order of the records."""
    timed = {(r["question"], r["variant"], r.get("run")): r for r in rows if r.get("samples")}
    found = []
    for (question, variant, run), row in timed.items():
        first = timed.get((question, variant.removesuffix(AGAIN), run))
        if variant.endswith(AGAIN) and first is not None:
            ratio = stats.ratio(used_times(row["samples"]), used_times(first["samples"]))
            found.append(Control(question, ratio, stats.verdict(ratio)))
    return found
