"""Names.

Claim 38: the name of a kernel, of its function and of its symbol, does not change its machine code. Source: ours;
it is what lets a cache and golden files compare the code of two files.

Last measured:
- claim 38, code, sm_90, 13.5.37: holds. 1 different code sections under 3 names, 71 instructions
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.judging import fact, judged
from probes.linear import Sweep
from probes.sweeps import variants
from stencil_dsl.testing import Claim, Finding, Question, asks

NAMES = {"name-short": "k", "name-usual": "sweep", "name-long": "a_kernel_with_a_name_of_fifty_characters_or_more_x"}
CLAIM = Claim(38, "kernel names do not change the code", "ours: sm_90, 13.5.37")


def names() -> Question:
    """One kernel under three names of function and symbol."""
    of, (kernel,) = variants("star-7", {"name-usual": Sweep()})
    return of.ask(
        "star-7-names",
        [
            replace(
                kernel, id=name, source=called(word, kernel.source), older=called(word, kernel.older), function=word
            )
            for name, word in NAMES.items()
        ],
        "name-usual",
    )


def called(word: str, text: str) -> str:
    return text.replace("def sweep(", f"def {word}(")


@pytest.mark.parametrize("variant", [*NAMES])
@asks(names)
def test_name(variant, result):
    result.check()


def test_claim(answers, claim):
    claim(CLAIM, judged(one_code, answers(names)))


def one_code(found) -> Finding:
    """Holds when all code sections are equal; reversed when the instruction counts differ; weaker in between."""
    codes = {fact(r, "text_hash") for r in found.values()}
    sizes = {fact(r, "instructions") for r in found.values()}
    words = f"{len(codes)} different code sections under {len(found)} names, {', '.join(map(str, sorted(sizes)))}"
    verdict = "holds" if len(codes) == 1 else "weaker" if len(sizes) == 1 else "reversed"
    return Finding(verdict, f"{words} instructions")
