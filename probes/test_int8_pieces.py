"""Converting int8 tiles.

Claim 25: an int8 tile is converted in registers, so the whole converted tile is live at once: two pages of 64 x 128
need 255 registers and spill, 32 keys and half of the columns at a time need 184 and do not (1.26 times faster). Source:
002, RTX 4080 SUPER (Ada), tileiras 13.3.

Last measured:
- claim 25, code, sm_90, 13.5.37: weaker. whole-pages: 255 registers, 0 B of spills, 319 LDS/STS, 66696 B shared, 2528
  instructions; pieces: 255 registers, 0 B of spills, 175 LDS/STS, 50456 B shared, 1718 instructions
- claim 25, time, nvidia-h200, 13.5.37: reversed. whole-pages / pieces 0.83 (0.82..0.83), claimed 1.26
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import fact, gain, judged, through_shared
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
    RandomIntegers,
    asks,
    kernel_text,
)

FILE = Path(__file__).parent / "kernels/products.py"
KERNELS = {"whole-pages": "whole_pages", "pieces": "pieces"}
INPUTS = {"q": RandomField(1, "float16"), "k": RandomIntegers(2), "v": RandomIntegers(3)}
KEYS = 1024
CLAIM = Claim(
    25,
    "converting int8 tiles in pieces saves registers and spills",
    "002: 255 registers with spills -> 184 without, 1.26x; RTX 4080, tileiras 13.3",
)


def attended(lo, shape):
    import numpy as np

    q = INPUTS["q"]((0, 0), (16, 128), np).astype(np.float64)
    k = INPUTS["k"]((0, 0), (KEYS, 128), np).astype(np.float64)
    v = INPUTS["v"]((0, 0), (KEYS, 128), np).astype(np.float64)
    return [(q @ k.T @ v)[tuple(slice(a, a + n) for a, n in zip(lo, shape, strict=True))]]


def conversions() -> Question:
    """Sixteen queries over 1024 int8 keys and values, by one block."""
    # Weights are rounded to half precision between the products, hence the tolerance.
    of = Problem((16, 128), INPUTS, attended, (16, 128), 1e-2, "float32")

    def call(shape):
        pages = [In(name, None, (KEYS, 128)) for name in ("k", "v")]
        return Call((1,), (In("q", None, (16, 128)), *pages, Out()))

    return of.ask(
        "int8-conversion",
        [FunctionVariant(name, of, kernel_text(FILE, kernel), kernel, call) for name, kernel in KERNELS.items()],
        "pieces",
    )


@pytest.mark.parametrize("variant", [*KERNELS])
@asks(conversions)
def test_conversion(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(conversions)
    claim(CLAIM, judged(pressure, found), gain(found, "pieces", "whole-pages", 1.26))


def pressure(found) -> Finding:
    """Holds when pieces need less registers or spills; weaker when only shared memory does."""

    def cost(name: str) -> tuple[int, int]:
        return fact(found[name], "spill_bytes"), fact(found[name], "registers")

    words = "; ".join(
        f"{name}: {fact(r, 'registers')} registers, {fact(r, 'spill_bytes')} B of spills, "
        f"{through_shared(r)} LDS/STS, {fact(r, 'shared_bytes')} B shared, {fact(r, 'instructions')} instructions"
        for name, r in found.items()
    )
    whole, parts = cost("whole-pages"), cost("pieces")
    if parts < whole:
        return Finding("holds", words)
    lighter = through_shared(found["pieces"]) < through_shared(found["whole-pages"])
    return Finding("weaker" if parts == whole and lighter else "reversed", words)
