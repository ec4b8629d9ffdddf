"""How often an array that grows makes a kernel compile again.

Claim 21: cuTile specializes a kernel on the divisibility of extents and strides, so a new length can mean a new
compilation (an attention kernel recompiled at page boundaries: 55 instead of 133 tokens/s); padding to a fixed length
avoids it. Source: 002, cuTile.jl. cuda.tile asks whether 16 divides an extent or a stride.

Last measured:
- claim 21, code, sm_90, 13.5.37: holds. lengths 1 to 64: 2 compilations by cuTile's key (does 16 divide it), 2
  different codes if all powers of two were told apart; padded to 64: 1. Instructions by divisor 1: 88, 2: 75, 4: 75,
  8: 75, 16: 75
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from probes.judging import fact, judged
from stencil_dsl.testing import (
    Call,
    Claim,
    Finding,
    FunctionVariant,
    In,
    Out,
    Problem,
    Question,
    RandomField,
    asks,
    kernel_text,
)

FILE = Path(__file__).parent / "kernels/blocks.py"
#: The powers of two that can divide a length, as far as cuTile looks.
DIVISORS = (1, 2, 4, 8, 16)
PAGES = range(1, 65)
CLAIM = Claim(
    21,
    "a growing array makes a kernel compile again, because it is specialized on divisibility",
    "002: 55 instead of 133 tokens/s, cuTile.jl 1.0",
)


@dataclass(frozen=True)
class Divided(FunctionVariant):
    """The kernel of an array whose length is divisible by a number and otherwise unknown."""

    divisor: int = 1

    def params(self):
        array, out, n = super().params()
        return [replace(array, shape_divisible_by=(self.divisor,)), replace(out, shape_divisible_by=(self.divisor,)), n]


def doubled(lo, shape):
    import numpy as np

    return [2.0 * RandomField(1)(lo, shape, np)]


def divisibility() -> Question:
    """One kernel for arrays of unknown length, by what divides it."""
    of = Problem((4096,), {"u": RandomField(1)}, doubled, (512,))

    def call(shape):
        return Call((shape[0] // 256,), (In("u", static=False), Out(static=False), 256))

    text = kernel_text(FILE, "double")
    return of.ask("divisibility", [Divided(f"by-{d}", of, text, "double", call, divisor=d) for d in DIVISORS])


@pytest.mark.parametrize("variant", [f"by-{d}" for d in DIVISORS])
@asks(divisibility)
def test_divisibility(variant, result):
    result.check()


def test_claim(answers, claim):
    claim(CLAIM, judged(compilations, answers(divisibility)))


def compilations(found) -> Finding:
    """Holds when lengths divisible by 16 get code of their own; weaker when the code is the same for all."""
    codes = {d: fact(found[f"by-{d}"], "text_hash") for d in DIVISORS}

    def largest(n: int) -> int:
        return max(d for d in DIVISORS if n % d == 0)

    keys = len({n % 16 == 0 for n in PAGES})
    kinds = len({codes[largest(n)] for n in PAGES})
    words = f"lengths 1 to 64: {keys} compilations by cuTile's key (does 16 divide it), {kinds} different codes if all "
    words += "powers of two were told apart; padded to 64: 1. Instructions by divisor "
    words += ", ".join(f"{d}: {fact(found[f'by-{d}'], 'instructions')}" for d in DIVISORS)
    return Finding("holds" if codes[16] != codes[1] else "weaker", words)
