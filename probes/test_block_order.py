"""Which axis consecutive blocks walk first.

Claim 6: ``bid(0)`` along the rows of a plane, so that consecutive blocks read rows that lie next to each other,
beats ``bid(0)`` along the planes. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2 (no figure given there).

Last measured:
- claim 6, code, sm_90, 13.5.37: cannot be tested here. only times decide, run with --gpu; the code: star-13 z, y, x
  first: 87, 88, 88 instructions; box-27 z, y, x first: 115, 116, 115 instructions
- claim 6, time, nvidia-h200, 13.5.37: holds. x-first / y-first 1.13 (1.13..1.13), claimed 1.1; x-first / y-first 1.06
  (1.06..1.06), claimed 1.1
"""

from __future__ import annotations

import pytest

from probes.judging import fact, gain, judged, needs_times, together
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

FORMS = {f"{axis}-first": Sweep(blocks=axis) for axis in "zyx"}
STENCILS = ("star-13", "box-27")
CLAIM = Claim(
    6,
    "blocks that walk the rows of a plane first beat blocks that walk planes first",
    "000: a choice of its emitter, RTX PRO 4000, CUDA 13.2",
)


def orders(stencil: str) -> Question:
    """The same tiles, handed to blocks along z, y or x first."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-block-order", contestants, "y-first")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(orders)
def test_block_order(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(orders, stencil=stencil) for stencil in STENCILS}
    claim(CLAIM, judged(code, found), together(gain(of, "y-first", "x-first", 1.1) for of in found.values()))


def code(found) -> Finding:
    """The code cannot tell: it differs in which special register is read."""
    counts = {s: [fact(r, "instructions") for r in of.values()] for s, of in found.items()}
    return needs_times(
        "; ".join(f"{s} z, y, x first: {', '.join(map(str, n))} instructions" for s, n in counts.items())
    )
