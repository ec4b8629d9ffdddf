"""Neighbours along the contiguous axis.

Claim 44: with z seen as (Z / 2, 2) and pairs loaded, every shift along z becomes an aligned 16-byte load and nothing
goes through shared memory: fewer loads than a shifted row each, and faster on every row but CNS. Source: ours, H200,
13.5: 0.582 against 0.603 ms (7-point), 0.740 against 0.991 (25-point).

Last measured:
- claim 44, code, sm_90, 13.5.37: weaker. star-7: pairs 2 loads a cell, 0 LDS/STS, 116 registers, shifted-rows 4 loads
  a cell, 0 LDS/STS, 64 registers, shifted-rows-256 3 loads a cell, 12 LDS/STS, 64 registers; star-13: pairs 2.5 loads
  a cell, 0 LDS/STS, 128 registers, shifted-rows 7 loads a cell, 0 LDS/STS, 86 ...
- claim 44, time, nvidia-h200, 13.5.37: weaker. shifted-rows / pairs 1.03 (1.02..1.04), claimed 1.03; shifted-rows /
  pairs 1.07 (1.07..1.07), claimed 1.03; shifted-rows / pairs 1.08 (1.08..1.09), claimed 1.03
"""

from __future__ import annotations

import pytest

from probes.judging import count, fact, gain, judged, loads_per_store, through_shared, together
from repro import stencils
from repro.rows import ROWS
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

FORMS = {
    "pairs": {"tile": (1, 1, 128), "pair": 2},
    "shifted-rows": {"tile": (1, 1, 128)},
    "shifted-rows-256": {"tile": (1, 1, 256)},
}
STENCILS = ("star-7", "star-13", "box-27")
CLAIM = Claim(
    44,
    "z-pairs beat shifted loads: aligned 16-byte loads only, nothing through shared memory",
    "ours: 7-point 0.603 -> 0.582 ms, 25-point 0.991 -> 0.740 ms; H200, 13.5.37",
)


def pairs(stencil: str) -> Question:
    """The streaming schedule with pairs, with one cell a thread, and with two from shifted rows."""
    from stencil_dsl import Schedule

    base = Schedule(kind="streaming", rows=2, chunk=64, occupancy=4, order="fast")
    schedules = {name: base.with_(**changes) for name, changes in FORMS.items()}
    function = getattr(stencils, ROWS[stencil].function)
    return sweep_question(f"{stencil}-pairs", function, (512,) * 3, schedules, copy=False, baseline="pairs")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(pairs)
def test_pairs(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(pairs, stencil=stencil) for stencil in STENCILS}
    times = together(gain(of, "pairs", "shifted-rows", 1.03) for of in found.values())
    claim(CLAIM, judged(loads, found), times)


def loads(found) -> Finding:
    """Holds when pairs have only 16-byte loads, no shared memory, and fewer loads a cell than shifted rows."""
    words, good = [], []
    for stencil, of in found.items():
        narrow = count(of["pairs"], "LDG", loop=True) - count(of["pairs"], "LDG.E.128", loop=True)
        # A store of pairs or of two cells a thread is 16 bytes, and stands for two cells.
        width = {"pairs": 2, "shifted-rows": 1, "shifted-rows-256": 2}
        each = {name: loads_per_store(r) / width[name] for name, r in of.items()}
        shared = {name: through_shared(r) for name, r in of.items()}
        good.append(not narrow and not shared["pairs"] and each["pairs"] < each["shifted-rows"])
        cells = [f"{n} {each[n]:g} loads a cell, {shared[n]} LDS/STS, {fact(of[n], 'registers')} registers" for n in of]
        words.append(f"{stencil}: {', '.join(cells)}")
    return Finding("holds" if all(good) else "weaker" if any(good) else "reversed", "; ".join(words))
