"""One kernel for five outputs, or several kernels.

Claim 9: the five outputs of CNS's hyperbolic terms in one kernel take 17.1 ms, in five kernels 17.4, in two (three and
two outputs) 16.4 to 17.8: fusing saves loads (144 a cell instead of 264) but little time. Source: 000, RTX PRO 4000
Blackwell, CUDA 13.2.

Last measured:
- claim 9, code, sm_90, 13.5.37: holds. fused: 144 loads, 128 registers, 0 B of spills; three-and-two: 192 loads, 128
  registers, 0 B of spills; five: 264 loads, 128 registers, 0 B of spills
- claim 9, time, nvidia-h200, 13.5.37: weaker. five / fused 1.26 (1.25..1.32), claimed 1.02; three-and-two / fused
  1.019 (1.014..1.062), claimed equal
"""

from __future__ import annotations

from functools import cache

import pytest

from probes.judging import count, fact, gain, judged, tie, together
from probes.older import checked_kernel
from probes.series import Part, Series
from repro.rows import ROWS
from repro.stencils import X, Y, Z, d, d_energy, d_momentum, d_product
from stencil_dsl import stencil
from stencil_dsl.testing import Claim, Finding, Question, RandomField, asks

SHAPE = (512, 512, 512)
FIELDS = ("c1", "c2", "c3", "c4", "q1", "q2", "q3", "q4")
#: Variant -> outputs by kernel.
GROUPS = {
    "fused": ((0, 1, 2, 3, 4),),
    "three-and-two": ((0, 1, 2), (3, 4)),
    "five": ((0,), (1,), (2,), (3,), (4,)),
}
CLAIM = Claim(
    9,
    "one fused CNS kernel, five kernels and 3 + 2 take about the same time; fused has the fewest loads",
    "000: 17.1, 17.4 and 16.4 to 17.8 ms, RTX PRO 4000, CUDA 13.2",
)


@stencil
def rho(c1, c2, c3, i, j, k):
    return -(d(c1, X, i, j, k) + d(c2, Y, i, j, k) + d(c3, Z, i, j, k))


@stencil
def mx(c1, q1, q2, q3, q4, i, j, k):
    return -(d_momentum(c1, q1, q4, X, i, j, k) + d_product(c1, q2, Y, i, j, k) + d_product(c1, q3, Z, i, j, k))


@stencil
def my(c2, q1, q2, q3, q4, i, j, k):
    return -(d_product(c2, q1, X, i, j, k) + d_momentum(c2, q2, q4, Y, i, j, k) + d_product(c2, q3, Z, i, j, k))


@stencil
def mz(c3, q1, q2, q3, q4, i, j, k):
    return -(d_product(c3, q1, X, i, j, k) + d_product(c3, q2, Y, i, j, k) + d_momentum(c3, q3, q4, Z, i, j, k))


@stencil
def ene(c4, q1, q2, q3, q4, i, j, k):
    return -(d_energy(c4, q4, q1, X, i, j, k) + d_energy(c4, q4, q2, Y, i, j, k) + d_energy(c4, q4, q3, Z, i, j, k))


OUTPUTS = (rho, mx, my, mz, ene)


@cache
def kernel(outputs: tuple[int, ...], arch: str, toolkit: str | None = None):
    """The fused kernel of some outputs, with the schedule that the seed's table names."""
    import stencil_dsl

    if toolkit is not None:
        return kernel(outputs, arch).with_toolkit(toolkit)
    return stencil_dsl.compile_fused(
        [OUTPUTS[k] for k in outputs],
        arch,
        shape=SHAPE,
        schedule=stencil_dsl.Schedule(tile=(1, 2, 64), occupancy=4),
        name="cns_" + "".join(map(str, outputs)),
    )


def part(outputs: tuple[int, ...]) -> Part:
    fields = dict.fromkeys(field for k in outputs for field in OUTPUTS[k].fields)

    def make(target):
        return kernel(outputs, target.arch, target.toolkit)

    return Part(make, tuple(fields), outputs, checked_kernel(make))


def expected(lo, shape):
    """All five outputs by the NumPy meaning of each stencil."""
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.testing.sweeps import reference

    inputs = {name: RandomField(seed) for seed, name in enumerate(FIELDS)}
    found = []
    for one in OUTPUTS:
        definition = Definition.of(one, "float64")
        found += reference(definition, {name: inputs[name] for name in definition.fields}, {})(lo, shape)
    return found


def fusions() -> Question:
    """The same five outputs by one, two and five kernels."""
    return Question(
        id="cns-fusion",
        shape=SHAPE,
        variants=tuple(Series(name, tuple(part(outputs) for outputs in of)) for name, of in GROUPS.items()),
        inputs={name: RandomField(seed) for seed, name in enumerate(FIELDS)},
        reference=expected,
        bytes=ROWS["cns"].bytes * 512**3,
        baseline="fused",
    )


@pytest.mark.parametrize("variant", [*GROUPS])
@asks(fusions)
def test_fusion(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(fusions)
    times = [gain(found, "fused", "five", 1.02), tie(found, "fused", "three-and-two")]
    claim(CLAIM, judged(loads, found), together(times))


def loads(found) -> Finding:
    """Holds when fused loads are about 144 of 264 and nothing spills; weaker when something spills."""
    counts = {name: count(r, "LDG") for name, r in found.items()}
    spills = {name: fact(r, "spill_bytes") for name, r in found.items()}
    words = "; ".join(
        f"{name}: {counts[name]} loads, {fact(r, 'registers')} registers, {spills[name]} B of spills"
        for name, r in found.items()
    )
    fewer = counts["fused"] < counts["three-and-two"] < counts["five"]
    return Finding("reversed" if not fewer else "weaker" if any(spills.values()) else "holds", words)
