"""Which axis is reduced, and how many there are.

Claim 27: loading a tile with the reduced axis first transposes it through shared memory and is 1.4 times slower.
Claim 26 (part): reducing the third axis of a 3-D tile takes as long as reducing a 2-D one, and keeping or dropping an
axis of extent 1 gives the same code. Source: 002, RTX 4080 SUPER (Ada), tileiras 13.3.

Last measured:
- claim 27, code, sm_90, 13.5.37: weaker. axis-last: 32 LDS/STS, 1 barriers, 34072 B shared; axis-first: 29 LDS/STS, 3
  barriers, 35096 B shared
- claim 27, time, nvidia-h200, 13.5.37: weaker. axis-first / axis-last 1.10 (1.10..1.11), claimed 1.4
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
    asks,
    kernel_text,
)

FILE = Path(__file__).parent / "kernels/reductions.py"
KERNELS = {
    "axis-last": "rows_last",
    "axis-first": "rows_first",
    "axis-third": "rows_third",
    "axis-kept": "rows_kept",
}
U = RandomField(1, "float32")
FIRST = Claim(
    27,
    "loading a tile with the reduced axis first transposes through shared memory",
    "002: 1.4x slower, RTX 4080, tileiras 13.3",
)
SAME = Claim(
    26,
    "helpers, closures, a third axis and axes of extent 1 do not change code or speed",
    "002: same SASS or same time, RTX 4080, tileiras 13.3",
)


def transposed(lo, shape, xp):
    """The array whose columns are the rows of the other."""
    return xp.ascontiguousarray(U((lo[1], lo[0]), (shape[1], shape[0]), xp).T)


transposed.dtype = "float32"


def sums(lo, shape):
    import numpy as np

    return [U((lo[0], 0), (shape[0], 128), np).astype(np.float64).sum(axis=1)]


def layouts() -> Question:
    """Sums of rows of 128, from tiles in four layouts."""
    of = Problem((1 << 20,), {"u": U, "ut": transposed}, sums, (256,), 1e-5, "float32", bytes=4 * 129 << 20)

    def call(name: str):
        def launch(shape):
            rows = shape[0]
            source = In("ut", None, (128, rows)) if name == "axis-first" else In("u", None, (rows, 128))
            return Call((rows // 64,), (source, Out()))

        return launch

    return of.ask(
        "reduced-axis",
        [FunctionVariant(v, of, kernel_text(FILE, kernel), kernel, call(v)) for v, kernel in KERNELS.items()],
    )


@pytest.mark.parametrize("variant", [*KERNELS])
@asks(layouts)
def test_layout(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(layouts)
    claim(FIRST, judged(shared, found), gain(found, "axis-last", "axis-first", 1.4))


def shared(found) -> Finding:
    """Holds when the reduced axis first needs more shared-memory instructions than last; weaker when only barriers."""
    cost = {v: (through_shared(found[v]), fact(found[v], "barriers")) for v in ("axis-last", "axis-first")}
    words = "; ".join(
        f"{v}: {n} LDS/STS, {b} barriers, {fact(found[v], 'shared_bytes')} B shared" for v, (n, b) in cost.items()
    )
    (last, last_b), (first, first_b) = cost["axis-last"], cost["axis-first"]
    verdict = "holds" if first > last and first_b >= last_b else "weaker" if first_b > last_b else "reversed"
    return Finding(verdict, words)


def axes(found) -> Finding:
    """Claim 26 for axes: equal code for an axis kept, about equal size for a third axis."""
    kept = fact(found["axis-kept"], "text_hash") == fact(found["axis-last"], "text_hash")
    third, last = fact(found["axis-third"], "instructions"), fact(found["axis-last"], "instructions")
    near = abs(third - last) <= last / 5
    words = f"axis of extent 1: {'same' if kept else 'other'} code; third axis: {third} instructions, 2-D {last}"
    return Finding("holds" if kept and near else "weaker" if kept or near else "reversed", words)
