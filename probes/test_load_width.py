"""What tileiras makes of a tile load.

Claim 14: a tile load becomes LDG.64 a thread, or LDG.128 where the view is known to be 16-byte aligned; there is no
TMA and no shared memory. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2. Tileiras 13.5 goes through shared memory at
two elements a thread.

Last measured:
- claim 14, code, sm_90, 13.5.37: weaker. star-7 row-128: 7 LDG.64, 0 LDG.128, 0 TMA, 0 LDS/STS; star-7 row-256: 4
  LDG.64, 5 LDG.128, 0 TMA, 6 LDS/STS; box-27 row-128: 27 LDG.64, 0 LDG.128, 0 TMA, 0 LDS/STS; box-27 row-256: 36
  LDG.64, 9 LDG.128, 0 TMA, 30 LDS/STS
"""

from __future__ import annotations

import pytest

from probes.judging import count, judged, through_shared
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

FORMS = {"row-128": Sweep(tile=(1, 1, 128), tma=True), "row-256": Sweep(tile=(1, 1, 256), tma=True)}
STENCILS = ("star-7", "box-27")
CLAIM = Claim(
    14,
    "tile loads become LDG.64, or LDG.128 where aligned; no TMA, no shared memory",
    "000: read from its cubins, RTX PRO 4000, CUDA 13.2",
)


def loads(stencil: str) -> Question:
    """One and two elements a thread; the compiler may use TMA."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-loads", contestants)


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(loads)
def test_loads(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    claim(CLAIM, judged(instructions, {stencil: answers(loads, stencil=stencil) for stencil in STENCILS}))


def instructions(found) -> Finding:
    """Holds when wide rows have 16-byte loads and nothing goes through TMA or shared memory; weaker when only the
    narrow rows stay out of both; reversed when they do not.
    """
    words, clean = [], {name: True for name in FORMS}
    wide = True
    for stencil, of in found.items():
        for name, result in of.items():
            tma, shared = count(result, "UTMA", "UBLKCP"), through_shared(result)
            clean[name] &= not tma and not shared
            of16 = count(result, "LDG.E.128")
            wide &= name == "row-128" or of16 > 0
            rest = count(result, "LDG") - of16
            words.append(f"{stencil} {name}: {rest} LDG.64, {of16} LDG.128, {tma} TMA, {shared} LDS/STS")
    verdict = "holds" if all(clean.values()) and wide else "weaker" if clean["row-128"] else "reversed"
    return Finding(verdict, "; ".join(words))
