"""Matrix products narrower than the tensor cores' shape.

Claim 19: with fewer than 16 rows on the M side, or fewer than 8 columns on the N side, a product leaves the tensor
cores and spills: 17.9 us (32 rows), 14.1 (16), 115.4 with 212 spill loads (8). Source: 002, RTX 4080 SUPER (Ada),
tileiras 13.3.

Last measured:
- claim 19, code, sm_90, 13.5.37: weaker. rows-32 tensor cores; rows-16 tensor cores; rows-8 512 FFMA; rows-4 256
  FFMA; columns-32 tensor cores; columns-16 tensor cores; columns-8 tensor cores; columns-4 256 FFMA
- claim 19, time, nvidia-h200, 13.5.37: holds. rows-8 / rows-16 3.26 (3.23..3.26), claimed 4; columns-4 / columns-8
  5.20 (5.19..5.20), claimed 2
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import count, fact, gain, judged, together
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

FILE = Path(__file__).parent / "kernels/products.py"
WIDTHS = (32, 16, 8, 4)
INPUTS = {"q": RandomField(1, "float16"), "k": RandomField(2, "float16"), "qt": RandomField(3, "float16")}
COUNT = 4096
CLAIM = Claim(
    19,
    "products with M < 16 or N < 8 fall off the tensor cores and spill",
    "002: 14.1 us with 16 rows, 115.4 us and 212 spill loads with 8; RTX 4080, tileiras 13.3",
)


def by_rows(lo, shape):
    import numpy as np

    q = INPUTS["q"]((lo[0], 0), (shape[0], 128), np).astype(np.float64)
    k = INPUTS["k"]((lo[1], 0), (shape[1], 128), np).astype(np.float64)
    return [q @ k.T]


def by_columns(lo, shape):
    import numpy as np

    k = INPUTS["k"]((lo[0], 0), (shape[0], 128), np).astype(np.float64)
    q = INPUTS["qt"]((0, lo[1]), (128, shape[1]), np).astype(np.float64)
    return [k @ q]


def m_side() -> Question:
    """4096 queries against 64 keys of length 128, 32 to 4 queries a block, as rows."""
    of = Problem((COUNT, 64), INPUTS, by_rows, (64, 64), 1e-5, "float32")

    def call(rows: int):
        def launch(shape):
            return Call((shape[0] // rows,), (In("q", None, (shape[0], 128)), In("k", None, (64, 128)), Out(), rows))

        return launch

    text = kernel_text(FILE, "few_rows")
    return of.ask("narrow-m", [FunctionVariant(f"rows-{n}", of, text, "few_rows", call(n)) for n in WIDTHS], "rows-16")


def n_side() -> Question:
    """The same with the queries as columns."""
    of = Problem((64, COUNT), INPUTS, by_columns, (64, 64), 1e-5, "float32")

    def call(columns: int):
        def launch(shape):
            q = In("qt", None, (128, shape[1]))
            return Call((shape[1] // columns,), (In("k", None, (64, 128)), q, Out(), columns))

        return launch

    text = kernel_text(FILE, "few_columns")
    made = [FunctionVariant(f"columns-{n}", of, text, "few_columns", call(n)) for n in WIDTHS]
    return of.ask("narrow-n", made, "columns-8")


@pytest.mark.parametrize("variant", [f"rows-{n}" for n in WIDTHS])
@asks(m_side)
def test_rows(variant, result):
    result.check()


@pytest.mark.parametrize("variant", [f"columns-{n}" for n in WIDTHS])
@asks(n_side)
def test_columns(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(m_side) | answers(n_side)
    times = [gain(found, "rows-16", "rows-8", 4.0), gain(found, "columns-8", "columns-4", 2.0)]
    claim(CLAIM, judged(tensor_cores, found), together(times))


def tensor_cores(found) -> Finding:
    """Holds when exactly the narrow products have no tensor-core instruction, and spill; weaker without spills."""
    on, spills, words = {}, {}, []
    for name, result in found.items():
        on[name] = count(result, "HMMA", "HGMMA", "UTCHMMA") > 0
        spills[name] = fact(result, "spill_bytes")
        kind = "tensor cores" if on[name] else f"{count(result, 'FFMA')} FFMA"
        words.append(f"{name} {kind}{f', {spills[name]} B of spills' if spills[name] else ''}")
    narrow = {"rows-8", "rows-4", "columns-4"}
    cliff = {name for name, there in on.items() if not there} == narrow
    verdict = "holds" if cliff and all(spills[n] for n in narrow) else "weaker" if cliff else "reversed"
    return Finding(verdict, "; ".join(words))
