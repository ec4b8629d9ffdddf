"""A rotating queue of computed tiles.

Claim 43: tileiras 13.3 to 13.5 at -O1 to -O3 compute wrong values from the third trip on for tiles that are computed,
carried through a loop and rotated (q0 = q1; q1 = d); -O0 is right, and so is a queue of raw loads. The Tile IR is
right. Source: ours, H200.

Last measured:
- claim 43, code, sm_90, 13.5.37: cannot be tested here. wrong values show on a device only; instructions: computed-O0
  406, computed-O1 324, computed-O2 540, computed-O3 540, raw-O3 547, pairs-O3 653
- claim 43, values, nvidia-h200, 13.5.37: holds. wrong: computed-O1, computed-O2, computed-O3
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import Untestable, fact, judged
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
LEVELS = (0, 1, 2, 3)
VARIANTS = {f"computed-O{n}": ("computed_queue", n) for n in LEVELS} | {
    "raw-O3": ("raw_queue", 3),
    "pairs-O3": ("pair_queue", 3),
}
WIDTH = {"pair_queue": 256}
"""Cells of a block's row, else 128."""
PLANES = 64
CLAIM = Claim(
    43,
    "a rotating queue of computed tiles is miscompiled at -O1 and above, and right at -O0; one of raw loads is right",
    "ours: 13.3.36, 13.4.92 and 13.5.37 on an H200",
)


def weighted(lo, shape):
    import numpy as np

    u = np.maximum(RandomField(0)(lo, (shape[0] + 2, shape[1]), np), 0.0)
    return [u[:-2] + 2 * u[1:-1] + 4 * u[2:]]


def queues() -> Question:
    """max(u, 0) of three planes, from a queue, by optimisation level."""
    of = Problem((1024, 4096), {"u": RandomField(0)}, weighted, (PLANES, 256), bytes=64 << 20)

    def call(kernel):
        def of_shape(shape):
            u = In("u", (0, 0), (shape[0] + 2, shape[1]))
            return Call((shape[1] // WIDTH.get(kernel, 128), shape[0] // PLANES), (u, Out(), PLANES))

        return of_shape

    return of.ask(
        "rotating-queue",
        [
            function_variant(name, of, kernel_text(FILE, kernel), kernel, call(kernel), opt_level=level)
            for name, (kernel, level) in VARIANTS.items()
        ],
        "raw-O3",
    )


@pytest.mark.parametrize("variant", [*VARIANTS])
@asks(queues)
def test_queue(variant, result):
    """Wrong values on a device are this probe's finding, not a failure; in the interpreter the source is right."""
    if result.failure or result.values is None or "device" not in result.values["how"] or variant == "raw-O3":
        result.check()


def test_claim(answers, claim):
    found = answers(queues)
    claim(CLAIM, judged(code, found), right_or_wrong(found))


def code(found) -> Finding:
    """The code does not show it."""
    sizes = ", ".join(f"{name} {fact(r, 'instructions')}" for name, r in found.items())
    raise Untestable(f"wrong values show on a device only; instructions: {sizes}")


def right_or_wrong(found) -> Finding | None:
    """Holds when -O0 and the raw queue are right and the others wrong on a device; reversed when all are right.

    Pairs, whose lanes are taken out where they are used, are told but not claimed.
    """
    values = {name: r.values for name, r in found.items()}
    if not all(v and "device" in v["how"] for v in values.values()):
        return None
    wrong = [name for name, v in values.items() if not v["ok"]]
    words = f"wrong: {', '.join(wrong) or 'none'}"
    wrong = [name for name in wrong if name != "pairs-O3"]
    if not wrong:
        return Finding("reversed", words, "values")
    return Finding("holds" if wrong == ["computed-O1", "computed-O2", "computed-O3"] else "weaker", words, "values")
