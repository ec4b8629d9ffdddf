"""Several time steps in one kernel.

Claim 10: it does not pay: each extra tile load costs about as much as the DRAM traffic that it saves. Source: 000, RTX
PRO 4000 Blackwell, CUDA 13.2.
Claim 47: for a linear stencil, composed into one wider stencil and streamed, it does: two steps of the 7-point star
take 0.638 ms, one takes 0.582. Source: ours, H200, 13.5.

Last measured:
- claim 10, code, sm_90, 13.5.37: holds. two steps, shifted: 25 loads a cell in one launch, 14 in two
- claim 10, time, nvidia-h200, 13.5.37: reversed. one-launch-shifted / two-launches-shifted 0.89 (0.88..0.92), claimed
  1.03
- claim 47, code, sm_90, 13.5.37: holds. two steps, streaming: 5 loads a row of output in one launch, 8 in two, 166
  registers, 0 spills in the loop
- claim 47, time, nvidia-h200, 13.5.37: holds. two-launches-streaming / one-launch-streaming 1.83 (1.81..1.87),
  claimed 1.82
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import pytest

from probes.judging import count, fact, gain, judged, loads_per_store
from probes.linear import Terms, widths
from probes.older import checked_kernel
from probes.series import Part, Series
from probes.sweeps import SHAPE, STENCILS
from repro.stencils import star_7
from stencil_dsl.testing import Claim, Finding, KernelVariant, Question, RandomField, asks

SHIFTED = {"tile": (1, 2, 64)}
STREAMED = {
    "kind": "streaming",
    "tile": (1, 1, 128),
    "pair": 2,
    "rows": 2,
    "chunk": 64,
    "occupancy": 4,
    "order": "fast",
}
WIDER = STREAMED | {"rows": 4, "chunk": 128, "occupancy": 3}
SCHEDULES = {"shifted": SHIFTED, "streaming": STREAMED, "streaming-wide": WIDER}
#: Variant -> (schedule, steps of one launch).
VARIANTS = {
    "two-launches-shifted": ("shifted", 1),
    "one-launch-shifted": ("shifted", 2),
    "two-launches-streaming": ("streaming", 1),
    "one-launch-streaming": ("streaming-wide", 2),
}
NO_GAIN = Claim(
    10,
    "several time steps in one kernel do not pay: an extra tile load costs what the saved traffic costs",
    "000: RTX PRO 4000, CUDA 13.2",
)
COMPOSED = Claim(
    47,
    "two steps of a linear stencil composed into one streamed sweep take little longer than one step",
    "ours: 7-point star 0.638 ms for two steps, 0.582 for one; H200, 13.5.37",
)


@dataclass(frozen=True)
class Stepped:
    """A field after some steps of a linear stencil, by coordinates."""

    terms: Terms
    steps: int

    def __call__(self, lo, shape, xp) -> Any:
        if self.steps == 0:
            return RandomField(0)(lo, shape, xp)
        reach = widths(self.terms)
        start = tuple(at - b for at, (b, _) in zip(lo, reach, strict=True))
        extents = tuple(n + b + a for n, (b, a) in zip(shape, reach, strict=True))
        before = Stepped(self.terms, self.steps - 1)(start, extents, xp)
        total = xp.zeros(shape)
        for offset, c in self.terms:
            cut = tuple(slice(b + o, b + o + n) for o, n, (b, _) in zip(offset, shape, reach, strict=True))
            total += c * before[cut]
        return total


@cache
def kernel(schedule: str, steps: int, arch: str, toolkit: str | None = None):
    import stencil_dsl

    if toolkit is not None:
        return kernel(schedule, steps, arch).with_toolkit(toolkit)
    how = stencil_dsl.Schedule(**SCHEDULES[schedule])
    return stencil_dsl.compile(star_7, arch, shape=SHAPE, schedule=how, temporal_steps=steps)


def steps() -> Question:
    """Two steps, by two launches and by one."""
    terms = STENCILS["star-7"]

    def contestant(name: str):
        schedule, each = VARIANTS[name]

        def make(target):
            return kernel(schedule, each, target.arch, target.toolkit)

        older = checked_kernel(make) if schedule == "shifted" else None
        if each == 2:
            return KernelVariant(name, make, ("u",), older=older)
        return Series(name, (Part(make, ("u",), ("between",), older), Part(make, ("between",), (0,), older)))

    def expected(lo, shape):
        import numpy

        return [Stepped(terms, 2)(lo, shape, numpy)]

    return Question(
        id="star-7-two-steps",
        shape=SHAPE,
        variants=tuple(contestant(name) for name in VARIANTS),
        inputs={"u": RandomField(0), "between": Stepped(terms, 1)},
        reference=expected,
        bytes=16 * prod(SHAPE),
        baseline="two-launches-streaming",
    )


@pytest.mark.parametrize("variant", [*VARIANTS])
@asks(steps)
def test_steps(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(steps)
    shifted = gain(found, "two-launches-shifted", "one-launch-shifted", 1.03)
    claim(NO_GAIN, judged(shifted_loads, found), shifted)
    claim(COMPOSED, judged(streamed_loads, found), gain(found, "one-launch-streaming", "two-launches-streaming", 1.82))


def shifted_loads(found) -> Finding:
    """Holds when two steps in one launch have more loads than two launches of one step; reversed when fewer."""
    one, two = count(found["one-launch-shifted"], "LDG"), count(found["two-launches-shifted"], "LDG")
    words = f"two steps, shifted: {one} loads a cell in one launch, {two} in two"
    return Finding("holds" if one > two else "weaker" if one == two else "reversed", words)


def streamed_loads(found) -> Finding:
    """Holds when one launch of two steps has fewer loads a row of output than two launches, and its loop no spills."""
    one, two = found["one-launch-streaming"], found["two-launches-streaming"]
    loads = loads_per_store(one), 2 * loads_per_store(two)
    spills = fact(one, "loop_spills")
    words = f"two steps, streaming: {loads[0]:g} loads a row of output in one launch, {loads[1]:g} in two, "
    words += f"{fact(one, 'registers')} registers, {spills} spills in the loop"
    fewer = loads[0] < loads[1]
    return Finding("holds" if fewer and not spills else "weaker" if fewer else "reversed", words)
