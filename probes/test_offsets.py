"""Where a shifted access puts its offset.

Claim 45: constant offsets along y and x in slice views make all loads of a field share one address and an immediate;
added to the tile's index they cost integer instructions for every row. Source: ours, H200, 13.5.

Last measured:
- claim 45, code, sm_90, 13.5.37: weaker. star-25: 20 integer instructions in views, 29 in the index, of 110;
  star-25-dynamic: 79 integer instructions in views, 55 in the index, of 175; box-27: 17 integer instructions in
  views, 17 in the index, of 111; box-27-dynamic: 25 integer instructions in views, 25 in the ...
- claim 45, time, nvidia-h200, 13.5.37: weaker. index / views 1.00 (1.00..1.00), claimed 1; index / views 1.00
  (0.99..1.01), claimed 1
"""

from __future__ import annotations

import pytest

from probes.judging import count, fact, gain, judged, together
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

ROW = Sweep(tile=(1, 1, 128))
FORMS = {
    "views": ROW,
    "index": ROW.with_(offsets="index"),
    "views-dynamic": ROW.with_(static=False),
    "index-dynamic": ROW.with_(static=False, offsets="index"),
}
STENCILS = ("star-25", "box-27")
INTEGER = ("IADD3", "IADD", "IMAD", "LEA", "SHF", "LOP3", "UIADD3", "UIMAD", "ULEA", "USHF")
CLAIM = Claim(
    45,
    "offsets belong in slice views, not in the index: about five integer instructions a row less",
    "ours: streaming prototype, sm_90, 13.5.37",
)


def places(stencil: str) -> Question:
    """Offsets in views and in the index, extents known and not."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-offsets", contestants, "views")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(places)
def test_offsets(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(places, stencil=stencil) for stencil in STENCILS}
    claim(CLAIM, judged(integers, found), together(gain(of, "views", "index", 1.0) for of in found.values()))


def integers(found) -> Finding:
    """Holds when views need fewer integer instructions in all four pairs; weaker when in some; else reversed."""
    words, saved = [], []
    for stencil, of in found.items():
        for form in ("", "-dynamic"):
            views, index = (count(of[place + form], *INTEGER) for place in ("views", "index"))
            saved.append(index - views)
            total = fact(of[f"views{form}"], "instructions")
            words.append(f"{stencil}{form}: {views} integer instructions in views, {index} in the index, of {total}")
    verdict = "holds" if min(saved) > 0 else "weaker" if max(saved) > 0 else "reversed"
    return Finding(verdict, "; ".join(words))
