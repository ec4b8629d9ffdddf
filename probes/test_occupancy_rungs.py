"""The occupancy hint bounds registers; whether the kernel then spills is known only after compiling it.

Claim 4: "Occupancy rungs: the hint turns 254 registers into 62 without spills; which rung spills
(81-point 2-D box under 8); the register budget per rung." Made on an RTX PRO 4000 Blackwell with CUDA
13.2, where a 125-point kernel with two elements a thread went from 254 registers and 9.4 ms to 62
registers and 6.4 ms under occupancy=4.

Here: rungs 1 to 8 of the shifted schedule on the 25-point star and the 27- and 125-point boxes with one
element a thread, on the 125-point box with two, and on the 81-point box in two dimensions.

Last measured:
- claim 4, code, sm_90, 13.5.37: holds. box-125 86 -> 78 registers under 6; box-125 86 -> 62 registers under 8;
  box-125-two 254 -> 168 registers under 3; box-125-two 254 -> 128 registers under 4; box-125-two 254 -> 80 registers
  under 6; box-125-two 254 -> 64 registers under 8; plane-81 86 -> 78 registers under 6; ...
- claim 4, time, nvidia-h200, 13.5.37: reversed. occupancy-none / occupancy-4 0.92 (0.92..0.92), claimed 1.47;
  occupancy-none / occupancy-8 0.95 (0.95..0.95), claimed 1
"""

from __future__ import annotations

import pytest

from probes.judging import gain, judged, together
from probes.older import checked_question
from repro.rows import ROWS
from stencil_dsl import stencil as stencil_of
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

#: Question -> (row, length of the row tile): at 128 a thread has one element, at 256 two.
STENCILS = {"star-25": ("star-25", 128), "box-27": ("box-27", 128), "box-125": ("box-125", 128)}
STENCILS |= {"box-125-two": ("box-125", 256), "plane-81": ("plane-81", 128)}
RUNGS = (1, 2, 3, 4, 6, 8)
SIZE = 512
#: Registers of one SM; a block has 128 threads here, and registers are handed out in eights.
SM_REGISTERS, THREADS = 65536, 128

CLAIM = Claim(
    4,
    "the occupancy hint bounds registers to what its rung leaves, and narrow kernels fit without spills",
    "000: 125-point box, two elements a thread, RTX PRO 4000, CUDA 13.2: 254 -> 62 registers, no spill, 9.4 -> 6.4 ms",
)


@stencil_of
def plane_81(u, j, k):
    return sum((1 + abs(a) + 2 * abs(b)) / 512 * u[j + a, k + b] for a in range(-4, 5) for b in range(-4, 5))


def budget(rung: int) -> int:
    """Registers a thread may have when `rung` blocks must fit one SM; 255 is the most an instruction can name."""
    return min(255, SM_REGISTERS // (rung * THREADS) // 8 * 8)


def rungs(stencil: str) -> Question:
    """One sweep under each occupancy hint, and without one."""
    from repro import stencils
    from stencil_dsl import Schedule

    row, length = STENCILS[stencil]
    plane = row == "plane-81"
    shifted = Schedule(tile=(1, length) if plane else (1, 1, length))
    schedules = {"occupancy-none": shifted} | {f"occupancy-{n}": shifted.with_(occupancy=n) for n in RUNGS}
    function = plane_81 if plane else getattr(stencils, ROWS[row].function)
    shape = (16 * SIZE, 16 * SIZE) if plane else (SIZE,) * 3
    return checked_question(sweep_question(f"{stencil}-rungs", function, shape, schedules, baseline="occupancy-none"))


@pytest.mark.parametrize("variant", ["occupancy-none", *(f"occupancy-{n}" for n in RUNGS), "copy"])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(rungs)
def test_rung(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(rungs, stencil=stencil) for stencil in STENCILS}
    # The claim's own case, and the hint where it has little to save.
    times = [
        gain(found["box-125-two"], "occupancy-4", "occupancy-none", 1.47),
        gain(found["box-125"], "occupancy-8", "occupancy-none", 1.0),
    ]
    claim(CLAIM, judged(judge, found), together(times))


def judge(found) -> Finding:
    """Holds when every rung keeps its register budget and some rung saves registers without a spill.

    Weaker when budgets are kept but no rung saves registers without spilling; reversed when a budget is exceeded.
    """
    over, spills, saved = [], [], []
    for stencil, of in found.items():
        variants = {name: result.facts for name, result in of.items() if result.facts}
        if "occupancy-none" not in variants:
            return Finding("cannot be tested here", f"{stencil} did not compile")
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
