"""Zeros against random numbers.

Claim 31: on NVIDIA GPUs initial data make no difference, because memory is not compressed there; on an Intel B580 zeros
are 2.3 times faster (35.8 against 15.6 Gpts/s). Source: 003, table III and section V.C.

Last measured:
- claim 31, code, sm_90, 13.5.37: cannot be tested here. only times decide, run with --gpu; the code: both run one
  kernel
- claim 31, time, nvidia-h200, 13.5.37: holds. zeros / random 0.999 (0.999..1.000), claimed equal
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from probes.judging import fact, judged, needs_times, tie
from probes.sweeps import SHAPE
from repro.stencils import star_25
from stencil_dsl.testing import Claim, Finding, KernelVariant, Prepared, Question, asks, sweep_question

CLAIM = Claim(
    31,
    "zero and random initial data take the same time",
    "003: equal on A100, H100 and RTX 6000; 2.3x on an Intel B580",
)


@dataclass(frozen=True)
class Zeroed(KernelVariant):
    """The kernel on zeros, once its values were checked on random data."""

    def prepare(self, bench) -> Prepared:
        checked = super().prepare(bench)
        kernel = self.make(bench.target)
        import stencil_dsl

        arrays = [stencil_dsl.zeros(bench.question.shape, kernel.halo, kernel.dtype, "gpu") for _ in range(2)]
        zero = kernel.bind(*arrays)
        launches = iter([checked.enqueue])

        def enqueue(stream) -> None:
            next(launches, zero.launch)(stream)

        return Prepared(enqueue, checked.outputs, checked.guards)


@cache
def kernel(arch: str, toolkit: str | None):
    import stencil_dsl

    how = stencil_dsl.Schedule(kind="streaming", tile=(1, 2, 64), pair=2, rows=2, occupancy=4, order="fast")
    return stencil_dsl.compile(star_25, arch, shape=SHAPE, schedule=how, toolkit=toolkit)


def data() -> Question:
    """One kernel of the 25-point star on both."""

    def make(target):
        return kernel(target.arch, target.toolkit)

    others = [KernelVariant("random", make, ("u",)), Zeroed("zeros", make, ("u",))]
    return sweep_question("initial-data", star_25, SHAPE, {}, others=others, copy=False, baseline="random")


@pytest.mark.parametrize("variant", ["random", "zeros"])
@asks(data)
def test_data(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(data)
    claim(CLAIM, judged(one_kernel, found), tie(found, "random", "zeros"))


def one_kernel(found) -> Finding:
    """Only times decide."""
    same = fact(found["random"], "text_hash") == fact(found["zeros"], "text_hash")
    return needs_times(f"both run {'one kernel' if same else 'different kernels'}")
