"""Tileiras, libnvvm and ptxas of several releases in one compile.

Claim 12: the machine code depends on libnvvm, not on tileiras or ptxas: with libnvvm 13.2 the 27-point kernel has 344
instructions and 3 branches, with 13.3 896 to 1128 and 56, because every tile load gets a branchy bounds check; tileiras
with an older libnvvm or ptxas than its own fails with return code 5. Source: 000, RTX PRO 4000 Blackwell.

Last measured:
- claim 12, code, sm_120, 13.2.51+13.3.36: weaker. 13.2/13.2/13.2: 329 instructions, 3 branches; 13.2/13.2/13.3: 330
  instructions, 3 branches; 13.2/13.3/13.3: 1100 instructions, 54 branches; 13.3/13.3/13.3: 854 instructions, 54
  branches; 13.3/13.2/13.2: 296 instructions, 3 branches; 13.2/13.3/13.2: tileiras failed with return ...
- claim 12, code, sm_90, 13.3.36+13.4.92+13.5.37: holds. 13.3/13.3/13.3: 755 instructions, 54 branches;
  13.4/13.4/13.4: 771 instructions, 54 branches; 13.5/13.5/13.5: 921 instructions, 54 branches; 13.4/13.5/13.5: 771
  instructions, 54 branches; 13.5/13.4/13.4: tileiras failed with return code 5; 13.5/13.5/13.4: tileiras failed with
  ...
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.judging import Untestable, absent, fact, judged, recorded
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

#: (tileiras, libnvvm, ptxas), as in the seed's table; 13.2 knows no sm_90.
PUBLISHED = (
    ("13.2", "13.2", "13.2"),
    ("13.2", "13.2", "13.3"),
    ("13.2", "13.3", "13.3"),
    ("13.3", "13.3", "13.3"),
    ("13.3", "13.2", "13.2"),
    ("13.2", "13.3", "13.2"),
)
NEWER = (
    ("13.3", "13.3", "13.3"),
    ("13.4", "13.4", "13.4"),
    ("13.5", "13.5", "13.5"),
    ("13.4", "13.5", "13.5"),
    ("13.5", "13.4", "13.4"),
    ("13.5", "13.5", "13.4"),
    ("13.5", "13.4", "13.5"),
)
CLAIM = Claim(
    12,
    "libnvvm alone decides the code; tileiras refuses libnvvm or ptxas older than its own",
    "000: six pairings of 13.2 and 13.3 on the 27-point box, RTX PRO 4000",
)


def name_of(set_: tuple[str, str, str]) -> str:
    return f"tileiras-{set_[0]}-nvvm-{set_[1]}-ptxas-{set_[2]}"


def pairings(which: str) -> Question:
    """The seed's kernel (checked loads, extents at run time) by each set of tools."""
    _, (kernel,) = variants("box-27", {"kernel": Sweep(static=False, checked=True, tma=True)})
    sets = PUBLISHED if which == "published" else NEWER
    made = [replace(kernel, id=name_of(s), toolkit=f"{s[0]}+nvvm-{s[1]}+ptxas-{s[2]}") for s in sets]
    return kernel.problem.ask(f"box-27-pairings-{which}", made)


@pytest.mark.compiled_only
@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("arch", ["sm_120"])
@pytest.mark.parametrize("variant", [name_of(s) for s in PUBLISHED])
@asks(pairings, which="published")
def test_published(variant, arch, result):
    recorded(result)


@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("variant", [name_of(s) for s in NEWER])
@asks(pairings, which="newer")
def test_newer(variant, result):
    recorded(result)


@pytest.mark.compiled_only
@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
@pytest.mark.parametrize("arch", ["sm_120"])
def test_claim_published(answers, claim, arch):
    claim(CLAIM, judged(nvvm_decides, answers(pairings, which="published"), PUBLISHED), tools="13.2.51+13.3.36")


@pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])
def test_claim_newer(answers, claim):
    claim(CLAIM, judged(nvvm_decides, answers(pairings, which="newer"), NEWER), tools="13.3.36+13.4.92+13.5.37")


def nvvm_decides(found, sets) -> Finding:
    """Holds when sets with one libnvvm have one number of branches, and exactly those sets fail that pair tileiras or
    libnvvm with something older; weaker when only one of the two is so.
    """
    words, branches, failures = [], {}, []
    for tools in sets:
        result = found[name_of(tools)]
        label = "/".join(tools)
        if result.failure:
            if absent(result):
                raise Untestable(f"{label}: {result.failure.splitlines()[0]}")
            failures.append(tools)
            words.append(f"{label}: {reason(result.failure)}")
        else:
            branches.setdefault(tools[1], set()).add(fact(result, "branches"))
            words.append(f"{label}: {fact(result, 'instructions')} instructions, {fact(result, 'branches')} branches")
    tileiras, nvvm, ptxas = 0, 1, 2
    older = [s for s in sets if s[nvvm] < s[tileiras] or s[ptxas] < s[nvvm]]
    one_each = all(len(n) == 1 for n in branches.values()) and len(branches) > 1
    right = [one_each, set(failures) == set(older)]
    return Finding("holds" if all(right) else "weaker" if any(right) else "reversed", "; ".join(words))


def reason(failure: str) -> str:
    """The tool's own words, in short."""
    first = failure.splitlines()[0].split(": ", 1)[-1]
    return first.split(";")[0]
