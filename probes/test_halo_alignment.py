"""Interior rows that start on a cache line.

Claim 7: an inner halo padded to 128 bytes, so that every interior row starts on a line, beats the tight halo: aligned
views are loaded 16 bytes a thread. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2 (no figure given there).

Last measured:
- claim 7, code, sm_90, 13.5.37: weaker. star-7 aligned-two: 9 loads, 5 of 16 bytes, 6 LDS/STS; star-7 tight-two: 12
  loads, 2 of 16 bytes, 9 LDS/STS; box-27 aligned-two: 45 loads, 9 of 16 bytes, 30 LDS/STS; box-27 tight-two: 36
  loads, 18 of 16 bytes, 27 LDS/STS
- claim 7, time, nvidia-h200, 13.5.37: weaker. tight / aligned 1.00 (1.00..1.00), claimed 1.05; tight / aligned 1.00
  (1.00..1.00), claimed 1.05
"""

from __future__ import annotations

import pytest

from probes.judging import count, gain, judged, through_shared, together
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

TWO = Sweep(tile=(1, 1, 256))
FORMS = {
    "aligned": Sweep(),
    "tight": Sweep(halo_z=None),
    "aligned-two": TWO,
    "tight-two": TWO.with_(halo_z=None),
}
STENCILS = ("star-7", "box-27")
CLAIM = Claim(
    7,
    "an inner halo of 128 bytes beats a tight one: its rows are loaded 16 bytes a thread",
    "000: a choice of its launcher, RTX PRO 4000, CUDA 13.2",
)


def halos(stencil: str) -> Question:
    """16 cells before every row, or as few as the stencil needs; one and two elements a thread."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-halo", contestants, "aligned")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(halos)
def test_halo(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(halos, stencil=stencil) for stencil in STENCILS}
    claim(CLAIM, judged(wide_loads, found), together(gain(of, "aligned", "tight", 1.05) for of in found.values()))


def wide_loads(found) -> Finding:
    """Holds when the aligned halo has fewer load instructions at two elements a thread on every stencil, reversed when
    it has more.
    """
    words, better = [], []
    for stencil, of in found.items():
        loads = {n: (count(of[n], "LDG.E.128"), count(of[n], "LDG")) for n in ("aligned-two", "tight-two")}
        better.append(loads["tight-two"][1] - loads["aligned-two"][1])
        words += [
            f"{stencil} {n}: {total} loads, {wide} of 16 bytes, {through_shared(of[n])} LDS/STS"
            for n, (wide, total) in loads.items()
        ]
    verdict = "holds" if min(better) > 0 else "reversed" if max(better) < 0 else "weaker"
    return Finding(verdict, "; ".join(words))
