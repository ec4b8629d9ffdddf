"""What predicates are made of: counts of instruction classes, and verdicts on times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from stencil_dsl.testing import Finding
from stencil_dsl.testing.older import lacking
from stencil_dsl.testing.session import Result
from stencil_dsl.testing.stats import TIE_BAND

Results = Mapping[str, Result]


class Untestable(Exception):
    """A fact that the predicate needs is not there; its text says why."""


def fact(result: Result, name: str) -> int:
    """A compile-time fact; Untestable where the variant did not compile or the fact was not read."""
    if result.failure is not None:
        words = lacking(result.failure) or f"failed: {result.failure.splitlines()[0]}"
        raise Untestable(f"{result.variant}: {words}")
    value = result.facts.get(name)
    if value is None:
        raise Untestable(f"{result.variant}: {name} is not known (no nvdisasm?)")
    return value


def count(result: Result, *classes: str, loop: bool = False) -> int:
    """Instructions of these classes and their widths: "LDG" counts LDG.E.64 too."""
    counted = fact(result, "loop_classes" if loop else "classes")
    return sum(n for name, n in counted.items() if any(name == c or name.startswith(f"{c}.") for c in classes))


def fp64(result: Result, loop: bool = False) -> int:
    """float64 instructions."""
    return count(result, "DFMA", "DADD", "DMUL", loop=loop)


def through_shared(result: Result) -> int:
    """Instructions that go through shared memory."""
    return count(result, "LDS", "STS", "LDSM", "STSM")


def judged(predicate, *arguments) -> Finding:
    """The predicate's finding, or why it cannot be had. Says so where kernels for an older toolkit stood in."""
    try:
        found = predicate(*arguments)
    except Untestable as reason:
        return Finding("cannot be tested here", str(reason))
    reasons = sorted({why for result in results_in(arguments) if (why := result.facts.get("older"))})
    return replace(found, why=f"{found.why}; with bounds checks, because {'; '.join(reasons)}") if reasons else found


def results_in(found: Any) -> Iterator[Result]:
    """All results in nested mappings and sequences."""
    if isinstance(found, Result):
        yield found
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from results_in(value)
    elif isinstance(found, (list, tuple)):
        for value in found:
            yield from results_in(value)


def loads_per_store(result: Result) -> float:
    """Global loads a store in the largest loop: what a row of output costs, however often the loop is unrolled."""
    stores = count(result, "STG", loop=True)
    if not stores:
        raise Untestable(f"{result.variant}: its largest loop stores nothing")
    return count(result, "LDG", loop=True) / stores


def recorded(result: Result) -> None:
    """Checks a variant that a tool may refuse: its words are then the result. Skips where the tool is missing."""
    if result.failure is None:
        result.check()
    elif absent(result):
        pytest.skip(result.failure)
    elif not result.failure.startswith(("ToolchainError", "ToolError")):
        pytest.fail(f"{result.question.id}, {result.variant}: {result.failure}", pytrace=False)


def checked(result: Result) -> None:
    """Checks a variant; skips, also with the default tools, where they are too old for it or missing."""
    if result.failure is not None and (absent(result) or lacking(result.failure)):
        pytest.skip(lacking(result.failure) or result.failure)
    result.check()


def absent(result: Result) -> bool:
    """Whether this machine has neither the variant's toolkit nor a cache that knows what it makes of the variant."""
    words = "" if result.failure is None else result.failure.splitlines()[0]
    return "is not installed" in words or "is not in the cache" in words


def needs_times(facts: str) -> Finding:
    """The code part of a claim that only times decide, with what the code shows."""
    return Finding("cannot be tested here", f"only times decide, run with --gpu; the code: {facts}")


def gain(found: Results, better: str, worse: str, claimed: float) -> Finding | None:
    """Whether `better` is faster than `worse`; None where they were not timed together.

    Holds when at least half of the claimed gain (a time ratio, 3.3 for "3.3x faster") is there; reversed when
    `better` is slower; weaker in between.
    """
    ratio = found[worse].ratio(found[better])
    if ratio is None:
        return None
    words = f"{worse} / {better} {ratio.median:.2f} ({ratio.lo:.2f}..{ratio.hi:.2f}), claimed {claimed:g}"
    words += _checks(found[worse], found[better])
    if ratio.hi < 1 - TIE_BAND:
        return Finding("reversed", words, "time")
    enough = max(1 + TIE_BAND, 1 + (claimed - 1) / 2)
    return Finding("holds" if ratio.lo >= enough else "weaker", words, "time")


def _checks(*results: Result) -> str:
    return " (with bounds checks)" if any(r.facts.get("older") for r in results) else ""


def tie(found: Results, one: str, other: str, band: float = 2 * TIE_BAND) -> Finding | None:
    """Whether two variants take the same time, within the band; None where they were not timed together.

    Reversed when they differ by more than three bands.
    """
    ratio = found[other].ratio(found[one])
    if ratio is None:
        return None
    words = f"{other} / {one} {ratio.median:.3f} ({ratio.lo:.3f}..{ratio.hi:.3f}), claimed equal"
    words += _checks(found[one], found[other])
    off = max(abs(ratio.lo - 1), abs(ratio.hi - 1))
    verdict = "holds" if off <= band else "weaker" if abs(ratio.median - 1) <= 3 * band else "reversed"
    return Finding(verdict, words, "time")


def together(findings: Iterable[Finding | None]) -> Finding | None:
    """One verdict of several: holds or reversed where all say so, else weaker. None where there is none."""
    known = [f for f in findings if f is not None]
    if not known:
        return None
    verdicts = {f.verdict for f in known}
    verdict = verdicts.pop() if len(verdicts) == 1 else "weaker"
    return Finding(verdict, "; ".join(f.why for f in known), known[0].tier)


def ms(found: Results) -> str:
    """Median times of all timed variants, for a finding's text."""
    return ", ".join(f"{name} {r.time.median:.3f} ms" for name, r in found.items() if r.time is not None)
