"""The occupancy hint bounds registers; whether the kernel then spills is known only after compiling it.

Claim 4: "Occupancy rungs: the hint turns 254 registers into 62 without spills; which rung spills
(81-point 2-D box under 8); the register budget per rung." Made on an RTX PRO 4000 Blackwell with CUDA
13.2, where a 125-point kernel with two elements a thread went from 254 registers and 9.4 ms to 62
registers and 6.4 ms under occupancy=4.

Here: rungs 1 to 8 of the shifted schedule on the 25-point star and the 27- and 125-point boxes with one
element a thread, and on the 125-point box with two. Last measured with 13.5.37 for sm_90, compile tier:
holds. With one element a thread the 125-point box takes 86 registers, 78 under 6 and 62 under 8, and the
narrower two fit every rung; with two it takes 254, 168 under 3, 128 under 4, 80 under 6 and 64 under 8.
Nothing spills, but the two-element kernels go through shared memory.
"""

from __future__ import annotations

import pytest

from repro.rows import ROWS
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

#: Question -> (row, length of the row tile): at 128 a thread has one element, at 256 two.
STENCILS = {"star-25": ("star-25", 128), "box-27": ("box-27", 128), "box-125": ("box-125", 128)}
STENCILS |= {"box-125-two": ("box-125", 256)}
RUNGS = (1, 2, 3, 4, 6, 8)
SIZE = 512
#: Registers of one SM; a block has 128 threads here, and registers are handed out in eights.
SM_REGISTERS, THREADS = 65536, 128

CLAIM = Claim(
    4,
    "the occupancy hint bounds registers to what its rung leaves, and narrow kernels fit without spills",
    "000: 125-point box, two elements a thread, RTX PRO 4000, CUDA 13.2: 254 -> 62 registers, no spill, 9.4 -> 6.4 ms",
)


def budget(rung: int) -> int:
    """Registers a thread may have when `rung` blocks must fit one SM; 255 is the most an instruction can name."""
    return min(255, SM_REGISTERS // (rung * THREADS) // 8 * 8)


def rungs(stencil: str) -> Question:
    """One sweep under each occupancy hint, and without one."""
    from repro import stencils
    from stencil_dsl import Schedule

    row, length = STENCILS[stencil]
    shifted = Schedule(tile=(1, 1, length))
    schedules = {"occupancy-none": shifted} | {f"occupancy-{n}": shifted.with_(occupancy=n) for n in RUNGS}
    function = getattr(stencils, ROWS[row].function)
    return sweep_question(f"{stencil}-rungs", function, (SIZE,) * 3, schedules, baseline="occupancy-none")


@pytest.mark.parametrize("variant", ["occupancy-none", *(f"occupancy-{n}" for n in RUNGS), "copy"])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(rungs)
def test_rung(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(rungs, stencil=stencil) for stencil in STENCILS}
    facts = {s: {v: r.facts for v, r in of.items() if r.facts} for s, of in found.items()}
    claim(CLAIM, judge(facts))


def judge(facts: dict[str, dict[str, dict]]) -> Finding:
    """Holds when every rung keeps its register budget and some rung saves registers without a spill.

    Weaker when budgets are kept but no rung saves registers without spilling; reversed when a budget is exceeded.
    """
    over, spills, saved = [], [], []
    for stencil, variants in facts.items():
        free = variants["occupancy-none"]["registers"]
        for rung in RUNGS:
            at = variants.get(f"occupancy-{rung}")
            if at is None:
                return Finding("cannot be tested here", f"{stencil} under occupancy {rung} did not compile")
            if at["registers"] > budget(rung):
                over.append(f"{stencil} occupancy {rung}: {at['registers']} > {budget(rung)}")
            if at["spill_bytes"] is None:
                return Finding("cannot be tested here", "no nvdisasm: spills cannot be counted")
            if at["spill_bytes"]:
                spills.append(f"{stencil} spills {at['spill_bytes']} B under {rung}")
            elif at["registers"] < free:
                saved.append(f"{stencil} {free} -> {at['registers']} registers under {rung}")
    spilling = "; ".join(spills) or "no rung spills"
    if over:
        return Finding("reversed", "; ".join(over))
    if not saved:
        return Finding("weaker", f"no rung saves registers; {spilling}")
    return Finding("holds", f"{'; '.join(saved)}; {spilling}")
