"""Sweeps over fields that fit L2.

Claim 41: at sizes that fit L2 a sweep that finds its fields there is faster than one that does not, so the state of L2
is part of a figure. Source: ours, H200 (60 MB of L2), 13.5.

Last measured:
- claim 41, code, sm_90, 13.5.37: cannot be tested here. only times decide, run with --gpu; the code: both run one
  kernel on 34 MB
- claim 41, time, nvidia-h200, 13.5.37: holds. cold / warm 1.87 (1.86..1.94), claimed 1.3
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache

import pytest

from probes.judging import fact, gain, judged, needs_times
from repro.stencils import star_7
from stencil_dsl.testing import Claim, Finding, KernelVariant, Prepared, Question, asks, sweep_question

SHAPE = (128, 128, 128)
#: Two fields of 128^3 float64 cells are 34 MB: so many pairs are far more than any L2.
SETS = 12
CLAIM = Claim(
    41,
    "at sizes that fit, a sweep out of a warm L2 is faster than one that finds its fields elsewhere",
    "ours: 128^3 float64 on an H200, 13.5.37",
)


@dataclass(frozen=True)
class Rotating(KernelVariant):
    """The kernel on another pair of arrays each launch, so that none of them is in L2."""

    def prepare(self, bench) -> Prepared:
        first = super().prepare(bench)
        kernel = self.make(bench.target)
        import stencil_dsl

        def pair():
            arrays = [stencil_dsl.empty(bench.question.shape, kernel.halo, kernel.dtype, "gpu") for _ in range(2)]
            for array in arrays:
                array.fill(1.0)
            return kernel.bind(*arrays).launch

        turns = itertools.cycle([first.enqueue, *(pair() for _ in range(SETS - 1))])

        def enqueue(stream) -> None:
            next(turns)(stream)

        return Prepared(enqueue, first.outputs, first.guards)


@cache
def kernel(arch: str, toolkit: str | None):
    import stencil_dsl

    how = stencil_dsl.Schedule(kind="streaming", tile=(1, 2, 64), pair=2, rows=1, chunk=32, order="fast", occupancy=4)
    return stencil_dsl.compile(star_7, arch, shape=SHAPE, schedule=how, toolkit=toolkit)


def states() -> Question:
    """One kernel on the same fields again and again, and on twelve pairs in turn."""

    def make(target):
        return kernel(target.arch, target.toolkit)

    both = [KernelVariant("warm", make, ("u",)), Rotating("cold", make, ("u",))]
    question = sweep_question("warm-l2", star_7, SHAPE, {}, others=both, copy=False, baseline="cold")
    # Without the number of bytes the harness leaves L2 alone: the variants see to its state.
    return replace(question, bytes=0)


@pytest.mark.parametrize("variant", ["warm", "cold"])
@asks(states)
def test_state(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(states)
    claim(CLAIM, judged(one_kernel, found), gain(found, "warm", "cold", 1.3))


def one_kernel(found) -> Finding:
    """Only times decide."""
    same = fact(found["warm"], "text_hash") == fact(found["cold"], "text_hash")
    return needs_times(f"both run {'one kernel' if same else 'different kernels'} on 34 MB")
