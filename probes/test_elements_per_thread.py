"""One element a thread for wide stencils, two for narrow ones.

Claim 2: two elements a thread (one row of 256) for at most 16 accesses, one (a row of 128, or two rows of 64) for
more: every loaded tile stays in registers, so otherwise the 27-point box loses 1.6x and the 125-point box 5x; two
rows of 64 beat one of 128 where accesses are shifted along y. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2.

Last measured:
- claim 2, code, sm_90, 13.5.37: weaker. two elements instead of one: star-7 24 -> 40 registers, 6 LDS/STS; box-27 64
  -> 92 registers, 30 LDS/STS; box-125 90 -> 254 registers, 150 LDS/STS
- claim 2, time, nvidia-h200, 13.5.37: weaker. row-128 / row-256 1.01 (1.01..1.02), claimed 1; row-256 / rows-2x64
  1.68 (1.64..1.73), claimed 1.6; row-256 / rows-2x64 2.15 (2.15..2.15), claimed 5; row-128 / rows-2x64 1.01
  (1.01..1.02), claimed 1
"""

from __future__ import annotations

import pytest

from probes.judging import fact, gain, judged, through_shared, together
from probes.sweeps import TILES, variants
from stencil_dsl.testing import Claim, Finding, Question, asks

STENCILS = ("star-7", "box-27", "box-125")
FORMS = {name: TILES[name] for name in ("row-256", "row-128", "rows-2x64")}
CLAIM = Claim(
    2,
    "two elements a thread for <= 16 accesses, one for more; two rows of 64 beat one of 128 on y-shifted access",
    "000: 1.6x on the 27-point, 5x on the 125-point box otherwise; RTX PRO 4000, CUDA 13.2",
)


def elements(stencil: str) -> Question:
    """The sweep with two elements a thread, and with one in two layouts."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-elements", contestants, "rows-2x64")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(elements)
def test_elements(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(elements, stencil=stencil) for stencil in STENCILS}
    times = [
        gain(found["star-7"], "row-256", "row-128", 1.0),
        gain(found["box-27"], "rows-2x64", "row-256", 1.6),
        gain(found["box-125"], "rows-2x64", "row-256", 5.0),
        gain(found["box-27"], "rows-2x64", "row-128", 1.0),
    ]
    claim(CLAIM, judged(pressure, found), together(times))


def pressure(found) -> Finding:
    """Holds when two elements a thread cost the wide stencils more than twice the registers that a block of four an SM
    may have, or shared memory, and the narrow one neither.
    """
    words, costly = [], {}
    for stencil, of in found.items():
        two, one = of["row-256"], of["rows-2x64"]
        shared, registers = through_shared(two), fact(two, "registers")
        costly[stencil] = registers > 128 or shared > 0
        words.append(f"{stencil} {fact(one, 'registers')} -> {registers} registers, {shared} LDS/STS")
    wide = costly["box-27"] and costly["box-125"]
    verdict = "reversed" if not wide else "weaker" if costly["star-7"] else "holds"
    return Finding(verdict, "two elements instead of one: " + "; ".join(words))
