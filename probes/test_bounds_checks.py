"""What bounds checks cost, and what makes them go away.

Claim 15: predicated loads and stores on every view, 1.6 times the instructions, cannot be removed. Source: 000, RTX
PRO 4000 Blackwell, CUDA 13.2. Since bytecode 13.4 there is ``check_bounds=False``.
Claim 37: compile-time extents and strides let tileiras prove bounds and fold addresses. Source: ours, H200, 13.5.

Last measured:
- claim 15, code, sm_90, 13.5.37: reversed. they can be removed: star-7: dynamic-checked 300 (14 branches),
  dynamic-unchecked 82 (0 branches); box-27: dynamic-checked 921 (54 branches), dynamic-unchecked 124 (0 branches);
  box-125: dynamic-checked 3886 (250 branches), dynamic-unchecked 348 (0 branches)
- claim 15, time, nvidia-h200, 13.5.37: holds. dynamic-checked / dynamic-unchecked 2.60 (2.47..2.61), claimed 1.6;
  dynamic-checked / dynamic-unchecked 4.02 (3.96..4.07), claimed 1.6; dynamic-checked / dynamic-unchecked 4.67
  (4.66..4.68), claimed 1.6
- claim 37, code, sm_90, 13.5.37: holds. star-7: dynamic-checked 300 (14 branches), static-checked 156 (0 branches),
  static-unchecked 71 (0 branches); box-27: dynamic-checked 921 (54 branches), static-checked 481 (0 branches),
  static-unchecked 115 (0 branches); box-125: dynamic-checked 3886 (250 branches), static- ...
- claim 37, time, nvidia-h200, 13.5.37: weaker. dynamic-unchecked / static-unchecked 1.01 (1.01..1.02), claimed 1.05;
  dynamic-unchecked / static-unchecked 1.01 (1.01..1.03), claimed 1.05; dynamic-unchecked / static-unchecked 0.99
  (0.99..1.00), claimed 1.05
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.judging import fact, gain, judged, together
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

FORMS = {
    "static-unchecked": Sweep(),
    "static-checked": Sweep(checked=True),
    "dynamic-unchecked": Sweep(static=False),
    "dynamic-checked": Sweep(static=False, checked=True),
}
STENCILS = ("star-7", "box-27", "box-125")
REMOVAL = Claim(
    15,
    "bounds checks cannot be removed and cost 1.6 times the instructions",
    "000: predicated loads on every view, RTX PRO 4000, CUDA 13.2",
)
STATIC = Claim(
    37,
    "compile-time extents and strides remove the checks by proof and shorten addresses",
    "ours: 27-point box 912 instructions dynamic and checked, 144 unchecked, 120 static; sm_90, 13.5.37",
)


def checks(stencil: str) -> Question:
    """Extents at compile or run time, each checked and unchecked."""
    of, contestants = variants(stencil, FORMS)
    # Where checks cannot be left out, that is the finding.
    return of.ask(f"{stencil}-checks", [replace(v, older=None) for v in contestants], "static-unchecked")


@pytest.mark.parametrize("variant", [*FORMS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(checks)
def test_checks(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {stencil: answers(checks, stencil=stencil) for stencil in STENCILS}
    cost = [gain(of, "dynamic-unchecked", "dynamic-checked", 1.6) for of in found.values()]
    claim(REMOVAL, judged(removable, found), together(cost))
    static = [gain(of, "static-unchecked", "dynamic-unchecked", 1.05) for of in found.values()]
    claim(STATIC, judged(proof, found), together(static))


def sizes(found, *names: str) -> str:
    return "; ".join(
        f"{s}: " + ", ".join(f"{n} {fact(of[n], 'instructions')} ({fact(of[n], 'branches')} branches)" for n in names)
        for s, of in found.items()
    )


def removable(found) -> Finding:
    """Reversed when the unchecked kernels have no branches left; weaker when they have fewer; else it holds."""
    refused = next((of["dynamic-unchecked"].failure for of in found.values() if of["dynamic-unchecked"].failure), None)
    if refused is not None:
        words = f"check_bounds=False does not compile; {sizes(found, 'dynamic-checked')}"
        return Finding("holds" if "requires tileiras" in refused else "cannot be tested here", words)
    words = sizes(found, "dynamic-checked", "dynamic-unchecked")
    left = [fact(of["dynamic-unchecked"], "branches") for of in found.values()]
    checked = [fact(of["dynamic-checked"], "branches") for of in found.values()]
    if not any(left):
        return Finding("reversed", f"they can be removed: {words}")
    return Finding("weaker" if sum(left) < sum(checked) else "holds", words)


def proof(found) -> Finding:
    """Holds when static kernels have no branches, checked or not, and fewer instructions than dynamic ones."""
    names = ("dynamic-checked", "static-checked", "static-unchecked")
    words = sizes(found, *(n for n in names if not any(of[n].failure for of in found.values())))
    proven = not any(fact(of["static-checked"], "branches") for of in found.values())
    shorter = all(
        fact(of["static-checked"], "instructions") < fact(of["dynamic-checked"], "instructions")
        for of in found.values()
    )
    return Finding("holds" if proven and shorter else "weaker" if proven or shorter else "reversed", words)
