"""Every kernel of a step.

Claim 28: a census of real application steps lists every kernel with time, bandwidth, registers and spills (there:
decode, verify and prefill of language models; none uses a product narrower than 16 x 8). Source: 002. Here: the steps
of three small solvers, whose kernels should not spill in their loops. ``python -m probes census`` prints the list.

Last measured:
- claim 28, code, sm_90, 13.5.37: holds. heat: 126 registers, 0 B of spills (0 in the loop), streaming (1,4,32,2),
  rows 4, chunk 64, occupancy 4, fast; wave: 128 registers, 0 B of spills (0 in the loop), streaming (1,4,32,2), rows
  1, chunk 64, unroll 2, groups first, ahead, straight head, occupancy 4, fast; ...
- claim 28, time, nvidia-h200, 13.5.37: holds. heat: 1.20 of a copy, 3567 GB/s; wave: 1.21 of a copy, 3528 GB/s;
  reaction: 1.25 of a copy, 3419 GB/s
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from probes import census
from probes.judging import fact, judged
from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing import Claim, Finding, KernelVariant, Question, asks, sweep_question

#: Case -> (its stencil, run-time scalars).
KERNELS = {
    "heat": (census.diffused, {"dt": 0.1}),
    "wave": (census.propagated, {}),
    "reaction": (census.reacted, {"dt": 0.1}),
}
SHAPE = (512, 512, 512)
CLAIM = Claim(
    28,
    "every kernel that a step of the example solvers launches is known, and none spills in its loop",
    "002: census of decode, verify and prefill steps, RTX 4080",
)


def steps(case: str) -> Question:
    """The case's kernel with the schedule that the compiler chooses, against a copy of its bytes."""
    function, scalars = KERNELS[case]

    def make(target):
        return chosen(case, target.arch, target.toolkit)

    others = [KernelVariant("chosen", make, function.fields, scalars)]
    return sweep_question(f"census-{case}", function, SHAPE, {}, scalars=scalars, others=others)


@cache
def chosen(case: str, arch: str, toolkit: str | None = None):
    """Chosen by the model alone: what somebody tuned on this machine must not change a figure."""
    import stencil_dsl
    from stencil_dsl.runtime.tuning_store import TuningStore

    if toolkit is not None:
        return chosen(case, arch).with_toolkit(toolkit)
    nothing = TuningStore(Path("nothing-was-tuned.json"))
    return stencil_dsl.compile(KERNELS[case][0], arch, shape=SHAPE, store=nothing)


@pytest.mark.parametrize("variant", ["chosen", "copy"])
@pytest.mark.parametrize("case", [*KERNELS])
@asks(steps)
def test_step(case, variant, result):
    result.check()


@pytest.mark.compiled_only
@pytest.mark.parametrize("case", [*KERNELS])
def test_a_step_launches_what_is_measured(case, arch, toolkit):
    """The step itself, watched: its kernels are those of the question."""
    try:
        rows = census.census(census.find_case(case), SHAPE[0], arch, toolkit)
    except ToolchainError as error:
        if toolkit is None or "requires tileiras" not in str(error):
            raise
        pytest.skip(str(error).splitlines()[0])
    assert [(row.kernel, row.calls, row.shape) for row in rows] == [(KERNELS[case][0].name, 1, SHAPE)]


def test_claim(answers, claim):
    found = {case: answers(steps, case=case) for case in KERNELS}
    claim(CLAIM, judged(spills, found), bandwidth(found))


def spills(found) -> Finding:
    """Holds when no kernel spills in its loop; weaker when one does."""
    words, looped = [], 0
    for case, of in found.items():
        kernel = of["chosen"]
        looped += fact(kernel, "loop_spills")
        words.append(
            f"{case}: {fact(kernel, 'registers')} registers, {fact(kernel, 'spill_bytes')} B of spills "
            f"({fact(kernel, 'loop_spills')} in the loop), {kernel.facts['schedule']}"
        )
    return Finding("weaker" if looped else "holds", "; ".join(words))


def bandwidth(found) -> Finding | None:
    """Holds when every step takes at most 1.5 times a copy of its bytes; reversed from three times on."""
    ratios = {case: of["chosen"].ratio(of["copy"]) for case, of in found.items()}
    if any(r is None for r in ratios.values()):
        return None
    rates = {case: of["chosen"].question.bytes / of["chosen"].time.median / 1e6 for case, of in found.items()}
    words = "; ".join(f"{case}: {r.median:.2f} of a copy, {rates[case]:.0f} GB/s" for case, r in ratios.items())
    worst = max(r.median for r in ratios.values())
    return Finding("holds" if worst <= 1.5 else "weaker" if worst < 3 else "reversed", words, "time")
