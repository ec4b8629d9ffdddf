"""What a reduction over a block costs.

Claim 22: mostly a fixed cost, whatever the tile: a tree of warp shuffles, then a step across warps with three barriers
and an atomic in shared memory. Over 4096 elements a sum takes 0.12 us, a maximum 0.16, the maximum of (value, index)
pairs 0.24 and argmax 0.29, because argmax checks for NaN at every step, also where that is not asked for. Source: 002,
RTX 4080 SUPER (Ada), tileiras 13.3.

Last measured:
- claim 22, code, sm_90, 13.5.37: holds. 256: sum 108 instructions, 12 BAR, 0 ATOMS/REDUX in the loop; maximum 148
  instructions, 12 BAR, 8 ATOMS/REDUX in the loop; maximum-nan 108 instructions, 12 BAR, 0 ATOMS/REDUX in the loop;
  pair 147 instructions, 6 BAR, 0 ATOMS/REDUX in the loop; argmax 108 instructions, 3 BAR, ...
- claim 22, time, nvidia-h200, 13.5.37: holds. argmax / pair 1.48 (1.48..1.48), claimed 1.2; 256: sum 0.21 us, maximum
  0.22 us, maximum-nan 0.21 us, pair 0.26 us, argmax 0.30 us, argmax-nan 0.28 us; 4096: sum 0.27 us, maximum 0.29 us,
  maximum-nan 0.28 us, pair 0.39 us, argmax 0.57 us, argmax-nan 0.56 us
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

FILE = Path(__file__).parent / "kernels/reductions.py"
#: Variant -> kernel. Those with "nan" ask for NaN to win.
KERNELS = {
    "sum": "sums",
    "maximum": "maxima",
    "maximum-nan": "maxima_nan",
    "pair": "pairs",
    "argmax": "places",
    "argmax-nan": "places_nan",
}
#: What the kernels compute alike.
KINDS = {"sum": ("sum",), "maximum": ("maximum", "maximum-nan"), "argmax": ("pair", "argmax", "argmax-nan")}
LENGTHS = (256, 4096)
TRIPS, SMALL = 32, 2.0**-20
CLAIM = Claim(
    22,
    "a block-wide reduction has a mostly fixed cost; sum < maximum < (value, index) pair < argmax",
    "002: 0.12, 0.16, 0.24 and 0.29 us over 4096 elements, RTX 4080, tileiras 13.3",
)
U = RandomField(1, "float32")


def chained(kind: str, n: int):
    """The chain of reductions, in float64."""

    def expected(lo, shape):
        import numpy as np

        t = U((0,), (n,), np).astype(np.float64)
        for _ in range(TRIPS):
            match kind:
                case "sum":
                    t = t + t.sum() * SMALL
                case "maximum":
                    t = t - t.max() * SMALL
                case "argmax":
                    t = t - t.argmax() * SMALL
        return [t[lo[0] : lo[0] + shape[0]]]

    return expected


def chains(kind: str, n: int) -> Question:
    """32 reductions, each of a tile that depends on the one before, by one block."""
    of = Problem((n,), {"u": U}, chained(kind, n), (n,), 1e-5, "float32")

    def call(shape):
        return Call((1,), (In("u"), Out(), n, TRIPS))

    return of.ask(
        f"{kind}-{n}",
        [FunctionVariant(v, of, kernel_text(FILE, KERNELS[v]), KERNELS[v], call) for v in KINDS[kind]],
    )


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind, variant", [(kind, v) for kind, of in KINDS.items() for v in of])
@asks(chains)
def test_reduction(kind, n, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {n: {v: r for kind in KINDS for v, r in answers(chains, kind=kind, n=n).items()} for n in LENGTHS}
    claim(CLAIM, judged(tree, found), together([gain(found[4096], "pair", "argmax", 1.2), microseconds(found)]))


def tree(found) -> Finding:
    """Holds when every maximum has three barriers and an atomic a reduction, and argmax of 4096 elements more
    instructions than the pair; weaker when only one of the two is so.
    """
    words = []
    for n, of in found.items():
        cells = [
            f"{v} {fact(r, 'loop_instructions')} instructions, {count(r, 'BAR', loop=True)} BAR, "
            f"{count(r, 'ATOMS', 'REDUX', loop=True)} ATOMS/REDUX in the loop"
            for v, r in of.items()
        ]
        words.append(f"{n}: {'; '.join(cells)}")
    three = all(
        count(of["maximum"], "BAR", loop=True) == 3 * count(of["maximum"], "ATOMS", loop=True) > 0
        for of in found.values()
    )
    checks = fact(found[4096]["argmax"], "loop_instructions") > fact(found[4096]["pair"], "loop_instructions")
    return Finding("holds" if three and checks else "weaker" if three or checks else "reversed", "; ".join(words))


def microseconds(found) -> Finding | None:
    """Holds when 16 times the elements cost less than twice the time; reversed from four times on."""
    if any(r.time is None for of in found.values() for r in of.values()):
        return None
    each = {n: {v: r.time.median * 1e3 / TRIPS for v, r in of.items()} for n, of in found.items()}
    words = "; ".join(f"{n}: " + ", ".join(f"{v} {us:.2f} us" for v, us in of.items()) for n, of in each.items())
    growth = max(each[4096][v] / each[256][v] for v in KERNELS)
    return Finding("holds" if growth < 2 else "weaker" if growth < 4 else "reversed", words, "time")
