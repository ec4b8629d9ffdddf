"""What orders a store among loads and other stores.

Claim 46: cuTile keeps a memory token, and tileiras a block barrier for it, unless the store is its array's only memory
operation in the loop, its index is the loop's variable itself, and nothing aliases it. So: loop over the output plane,
load at x + r, and pass an output once for each row tile. Source: ours, H200, 13.5.

Last measured:
- claim 46, code, sm_90, 13.5.37: holds. by-induction 0 barriers, shifted-index 7 barriers, one-output 15 barriers
- claim 46, time, nvidia-h200, 13.5.37: weaker. shifted-index / by-induction 1.02 (1.02..1.03), claimed 1.03;
  one-output / by-induction 1.01 (1.01..1.01), claimed 1.03
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import fact, gain, judged, together
from probes.older import function_variant
from stencil_dsl.testing import (
    Call,
    Claim,
    Finding,
    In,
    Out,
    Problem,
    Question,
    RandomField,
    asks,
    kernel_text,
)

FILE = Path(__file__).parent / "kernels/marching.py"
KERNELS = {"by-induction": "by_induction", "shifted-index": "shifted_index", "one-output": "one_output"}
PLANES = 64
CLAIM = Claim(
    46,
    "a store drops its barrier only when indexed by the loop's variable and alone on its parameter",
    "ours: one barrier a kernel instead of dozens, sm_90, 13.5.37",
)


def sums(lo, shape):
    """Rows 2 j and 2 j + 1 become their sum and their difference, of the next plane."""
    import numpy as np

    first = lo[1] // 2 * 2
    rows = (lo[1] + shape[1] + 1) // 2 * 2 - first
    u = RandomField(0)((lo[0] + 1, first, lo[2]), (shape[0], rows, shape[2]), np)
    even, odd = u[:, 0::2], u[:, 1::2]
    out = np.empty_like(u)
    out[:, 0::2], out[:, 1::2] = even + odd, even - odd
    return [out[:, lo[1] - first : lo[1] - first + shape[1]]]


def stores() -> Question:
    """Two rows of output a block and plane, stored in three ways."""
    of = Problem((512, 512, 512), {"u": RandomField(0)}, sums, (PLANES, 4, 128), bytes=16 * 512**3)

    def call(outputs: int):
        def launch(shape):
            nx, ny, nz = shape
            u = In("u", (0, 0, 0), (nx + 2, ny, nz))
            return Call((nz // 128, ny // 2, nx // PLANES), (u, *[Out()] * outputs, PLANES))

        return launch

    return of.ask(
        "tokens",
        [
            function_variant(name, of, kernel_text(FILE, kernel), kernel, call(1 if name == "one-output" else 2))
            for name, kernel in KERNELS.items()
        ],
    )


@pytest.mark.parametrize("variant", [*KERNELS])
@asks(stores)
def test_stores(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(stores)
    others = ("shifted-index", "one-output")
    claim(CLAIM, judged(barriers, found), together(gain(found, "by-induction", other, 1.03) for other in others))


def barriers(found) -> Finding:
    """Holds when only the first kernel has no barrier; weaker when one of the others has none either."""
    counts = {name: fact(r, "barriers") for name, r in found.items()}
    words = ", ".join(f"{name} {n} barriers" for name, n in counts.items())
    if counts["by-induction"]:
        return Finding("reversed", words)
    return Finding("holds" if counts["shifted-index"] and counts["one-output"] else "weaker", words)
