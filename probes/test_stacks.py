"""Four compilers on five stencils.

Claim 13: against CUDA 13.2, tileiras 13.3 loses 10 % and 13.4 37 % on the 27-point box (loads in branchy checks, then
loads twice), and nothing on narrow and very wide stencils. Source: 000, RTX PRO 4000 Blackwell. 13.2 has no sm_90, so
the code is compared for sm_120; the fifth stencil is the 25-point star instead of iso3dfd, which adds two loads to it.

Last measured:
- claim 13, code, sm_120, 13.2.51+13.3.36+13.4.92+13.5.37: weaker. instructions/branches/loads by 13.2, 13.3, 13.4,
  13.5: star-7 195/3/7, 276/14/7, 271/14/7, 294/14/7; star-13 252/3/13, 467/26/13, 442/26/13, 488/26/13; star-25
  364/3/25, 831/50/25, 755/50/25, 848/50/25; box-27 329/3/27, 854/54/27, 770/54/27, 872/54/27; box-125 4037/247/125,
  ...
- claim 13, time, nvidia-h200, 13.3.36+13.4.92+13.5.37: weaker. stack-13.3 / stack-13.5 0.867 (0.866..0.867), claimed
  equal; stack-13.4 / stack-13.5 0.878 (0.878..0.878), claimed equal
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.judging import Untestable, count, fact, judged, recorded, tie, together
from probes.linear import Sweep
from probes.sweeps import STENCILS, variants
from stencil_dsl.testing import Claim, Finding, Question, asks

RELEASES = ("13.2", "13.3", "13.4", "13.5")
CLAIM = Claim(
    13,
    "newer stacks compile the seed's checked kernels worse than 13.2: branches in 13.3, loads twice in 13.4",
    "000: 27-point 1.416 (13.2), 1.574 (13.3), 1.940 ms (13.4), RTX PRO 4000",
)


def stacks(stencil: str) -> Question:
    """The seed's kernel (checked loads, extents at run time, one element a thread) by each release."""
    _, (kernel,) = variants(stencil, {"kernel": Sweep(static=False, checked=True, tma=True)})
    made = [replace(kernel, id=f"stack-{release}", toolkit=release) for release in RELEASES]
    return kernel.problem.ask(f"{stencil}-stacks", made, f"stack-{RELEASES[-1]}")


@pytest.mark.compiled_only
@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("arch", ["sm_120"])
@pytest.mark.parametrize("variant", [f"stack-{release}" for release in RELEASES])
@pytest.mark.parametrize("stencil", [*STENCILS])
@asks(stacks)
def test_stack(stencil, variant, arch, result):
    recorded(result)


@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("variant", [f"stack-{release}" for release in RELEASES])
@pytest.mark.parametrize("stencil", ["box-27"])
@asks(stacks)
def test_stack_here(stencil, variant, result):
    recorded(result)  # 13.2 refuses sm_90


@pytest.mark.compiled_only
@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("arch", ["sm_120"])
def test_claim(answers, claim, arch):
    found = {stencil: answers(stacks, stencil=stencil) for stencil in STENCILS}
    claim(CLAIM, judged(worse, found), tools="13.2.51+13.3.36+13.4.92+13.5.37")


@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
def test_claim_here(answers, claim):
    found = answers(stacks, stencil="box-27")
    times = together(tie(found, "stack-13.5", f"stack-{release}") for release in ("13.3", "13.4"))
    claim(CLAIM, times, tools="13.3.36+13.4.92+13.5.37")


def worse(found) -> Finding:
    """Holds when 13.3 more than doubles the branches of the 27-point box and 13.4 its loads; weaker when one is so."""
    words = []
    for stencil, of in found.items():
        for release in RELEASES:
            failure = of[f"stack-{release}"].failure
            if failure:
                raise Untestable(f"{stencil} with {release}: {failure.splitlines()[0]}")
        cells = [
            f"{fact(of[f'stack-{r}'], 'instructions')}/{fact(of[f'stack-{r}'], 'branches')}"
            f"/{count(of[f'stack-{r}'], 'LDG')}"
            for r in RELEASES
        ]
        words.append(f"{stencil} {', '.join(cells)}")
    box = found["box-27"]
    branches = fact(box["stack-13.3"], "branches") > 2 * fact(box["stack-13.2"], "branches")
    twice = count(box["stack-13.4"], "LDG") > count(box["stack-13.3"], "LDG")
    text = f"instructions/branches/loads by {', '.join(RELEASES)}: {'; '.join(words)}"
    return Finding("holds" if branches and twice else "weaker" if branches or twice else "reversed", text)
