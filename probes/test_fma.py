"""Arithmetic of a sum of products.

Claim 18: every term becomes exactly one DFMA, so wide stencils are bound by float64 issue on a GPU with few float64
units, and not on one with many. Source: 000, RTX PRO 4000 Blackwell (float64 at 1/64 of float32), CUDA 13.2.

Last measured:
- claim 18, code, sm_90, 13.5.37: holds. star-7: 7 terms, 6 DFMA of 7 float64, bound on sm_90 memory, sm_120 memory;
  star-13: 13 terms, 12 DFMA of 13 float64, bound on sm_90 memory, sm_120 float64; star-25: 25 terms, 24 DFMA of 25
  float64, bound on sm_90 memory, sm_120 float64; box-27: 27 terms, 26 DFMA of 27 ...
"""

from __future__ import annotations

import pytest

from probes.judging import count, fp64, judged
from probes.linear import Sweep
from probes.sweeps import STENCILS, variants
from stencil_dsl.testing import Claim, Finding, Question, asks

CLAIM = Claim(
    18,
    "each term is one DFMA; which stencils are bound by it depends on the GPU's float64 rate",
    "000: 27- and 125-point rows at the float64 roofline of an RTX PRO 4000, CUDA 13.2",
)


def sums(stencil: str) -> Question:
    """One sweep, one element a thread."""
    of, contestants = variants(stencil, {"sum": Sweep()})
    return of.ask(f"{stencil}-sum", contestants)


@pytest.mark.parametrize("variant", ["sum"])
@pytest.mark.parametrize("stencil", [*STENCILS])
@asks(sums)
def test_sum(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    claim(CLAIM, judged(contracted, {stencil: answers(sums, stencil=stencil)["sum"] for stencil in STENCILS}))


def bound(terms: int, arch: str) -> str:
    """Whether one DFMA a term takes longer than 16 bytes a cell, by the rates of a target."""
    from stencil_dsl.schedule.target import target_for

    gpu = target_for(arch)
    issue = terms / (gpu.sms * gpu.clock * gpu.fp64)
    return "float64" if issue > 16 / gpu.hbm else "memory"


def contracted(found) -> Finding:
    """Holds when terms and float64 instructions are equal in number, and all but one are fused."""
    words, exact = [], True
    for stencil, result in found.items():
        terms, fused = len(STENCILS[stencil]), count(result, "DFMA")
        exact &= fp64(result) == terms and fused == terms - 1
        limits = ", ".join(f"{arch} {bound(terms, arch)}" for arch in ("sm_90", "sm_120"))
        words.append(f"{stencil}: {terms} terms, {fused} DFMA of {fp64(result)} float64, bound on {limits}")
    return Finding("holds" if exact else "weaker", "; ".join(words))
