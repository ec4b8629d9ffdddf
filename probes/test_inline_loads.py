"""Loads inside the expression against loads before it.

Claim 3: single-use tiles loaded where they are used instead of above the expression halve the time of a 125-point
sweep with two elements a thread (15.0 to 9.4 ms), and change nothing otherwise: tileiras keeps every loaded tile
live. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2.

Last measured:
- claim 3, code, sm_90, 13.5.37: weaker. box-125, two elements: 254 registers and 0 B of spills inline, 254 and 0 B
  hoisted; equal machine code: box-27 inline, box-125 inline
- claim 3, time, nvidia-h200, 13.5.37: weaker. hoisted-two / inline-two 1.00 (1.00..1.00), claimed 1.6; hoisted /
  inline 1.001 (0.994..1.003), claimed equal; hoisted / inline 1.000 (1.000..1.003), claimed equal
"""

from __future__ import annotations

import pytest

from probes.judging import fact, gain, judged, tie, together
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

TWO = Sweep(tile=(1, 1, 256))
FORMS = {
    "inline": Sweep(),
    "hoisted": Sweep(inline=False),
    "inline-two": TWO,
    "hoisted-two": TWO.with_(inline=False),
}
STENCILS = ("box-27", "box-125")
CLAIM = Claim(
    3,
    "inline loads beat hoisted ones at two elements a thread on the 125-point box, and are neutral otherwise",
    "000: 15.0 -> 9.4 ms, RTX PRO 4000, CUDA 13.2",
)


def placing(stencil: str) -> Question:
    """One and two elements a thread, loads inline and first."""
    of, contestants = variants(stencil, FORMS)
    return of.ask(f"{stencil}-inline", contestants, "inline")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(placing)
def test_placing(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(placing, stencil=stencil) for stencil in STENCILS}
    times = [
        gain(found["box-125"], "inline-two", "hoisted-two", 1.6),
        tie(found["box-125"], "inline", "hoisted"),
        tie(found["box-27"], "inline", "hoisted"),
    ]
    claim(CLAIM, judged(registers, found), together(times))


def registers(found) -> Finding:
    """Holds when inline loads need fewer registers or spills at two elements a thread on the 125-point box.

    Weaker when it makes no difference: the compiler orders loads by itself.
    """
    wide = found["box-125"]

    def cost(name: str) -> tuple[int, int]:
        return fact(wide[name], "spill_bytes"), fact(wide[name], "registers")

    same = [
        f"{stencil} {one}"
        for stencil, of in found.items()
        for one, other in (("inline", "hoisted"), ("inline-two", "hoisted-two"))
        if fact(of[one], "text_hash") == fact(of[other], "text_hash")
    ]
    inline, hoisted = cost("inline-two"), cost("hoisted-two")
    words = f"box-125, two elements: {inline[1]} registers and {inline[0]} B of spills inline, {hoisted[1]} and "
    words += f"{hoisted[0]} B hoisted; equal machine code: {', '.join(same) or 'none'}"
    return Finding("holds" if inline < hoisted else "weaker" if inline == hoisted else "reversed", words)
