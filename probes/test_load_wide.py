"""Masked loads, or loads into padding and a masked store.

Claim 29: where a tile overhangs the domain, loading wide (into one tile of padding, unmasked) and storing narrow
(masked) beats masking the loads. Source: 003, Triton kernel of the 25-point acoustic wave, Intel B580.

Last measured:
- claim 29, code, sm_90, 13.5.37: holds. star-25: wide-shifted 118 instructions, 0 branches, masked-shifted 722
  instructions, 50 branches; box-27: wide-shifted 115 instructions, 0 branches, masked-shifted 727 instructions, 54
  branches
- claim 29, time, nvidia-h200, 13.5.37: holds. masked-shifted / wide-shifted 2.37 (2.33..2.39), claimed 1.1;
  masked-shifted / wide-shifted 2.82 (2.78..2.83), claimed 1.1
"""

from __future__ import annotations

import pytest

from probes.judging import fact, gain, judged, together
from repro import stencils
from repro.rows import ROWS
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

FORMS = {
    "wide-shifted": {"tile": (1, 2, 64), "loads": "unchecked"},
    "masked-shifted": {"tile": (1, 2, 64), "loads": "checked"},
}
STENCILS = ("star-25", "box-27")
CLAIM = Claim(
    29,
    "load wide, store narrow beats masked loads",
    "003: Triton kernel of a 25-point wave; no figure for the alternative",
)


def masks(stencil: str) -> Question:
    """A cube of 500, which no tile divides."""
    from stencil_dsl import Schedule

    schedules = {name: Schedule(**form) for name, form in FORMS.items()}
    function = getattr(stencils, ROWS[stencil].function)
    return sweep_question(f"{stencil}-masks", function, (500,) * 3, schedules, copy=False, baseline="wide-shifted")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(masks)
def test_masks(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(masks, stencil=stencil) for stencil in STENCILS}
    claim(CLAIM, judged(cost, found), together(gain(of, *FORMS, 1.1) for of in found.values()))


def cost(found) -> Finding:
    """Holds when loading wide needs fewer instructions and no more branches, on every stencil."""
    facts = {
        s: {name: (fact(of[name], "instructions"), fact(of[name], "branches")) for name in FORMS}
        for s, of in found.items()
    }
    words = "; ".join(
        f"{s}: " + ", ".join(f"{name} {n} instructions, {b} branches" for name, (n, b) in of.items())
        for s, of in facts.items()
    )
    better = [
        of["wide-shifted"][0] < of["masked-shifted"][0] and of["wide-shifted"][1] <= of["masked-shifted"][1]
        for of in facts.values()
    ]
    return Finding("holds" if all(better) else "weaker" if any(better) else "reversed", words)
