"""Row tiles beat a compact tile, and by access pattern alone.

Claim 1: a 7-point sweep with the tile (1, 1, 256) takes 3.3 times less time than with (4, 8, 8), although both
compile to the same instruction mix (14 loads, 2 stores, 12 float64 operations). Source: 000, on an RTX PRO 4000
Blackwell with CUDA 13.2.

Last measured:
- claim 1, code, sm_90, 13.5.37: holds. row-256: 9 loads, 1 stores, 14 float64, 6 shared-memory instructions;
  cube-4x8x8: 9 loads, 1 stores, 14 float64, 6 shared-memory instructions
- claim 1, time, nvidia-h200, 13.5.37: weaker. cube-4x8x8 / row-256 1.48 (1.41..1.50), claimed 3.3
"""

from __future__ import annotations

import pytest

from probes.judging import count, fp64, gain, judged, through_shared
from probes.sweeps import TILES, variants
from stencil_dsl.testing import Claim, Finding, Question, asks

CLAIM = Claim(
    1,
    "row tiles beat the (4,8,8) tile on the 7-point star by access pattern alone: the instruction mix is the same",
    "000: 3.3x, RTX PRO 4000, CUDA 13.2; 14 loads, 2 stores, 12 float64 operations in both",
)


def tiles() -> Question:
    """The same sweep with tiles of four shapes."""
    of, contestants = variants("star-7", TILES)
    return of.ask("star-7-tiles", contestants, "row-256")


@pytest.mark.parametrize("variant", [*TILES])
@asks(tiles)
def test_tile(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(tiles)
    claim(CLAIM, judged(same_mix, found), gain(found, "row-256", "cube-4x8x8", 3.3))


def same_mix(found) -> Finding:
    """Holds when loads, stores and arithmetic are as many; weaker when only the arithmetic is; else reversed."""
    mixes = {
        name: (count(r, "LDG"), count(r, "STG"), fp64(r), through_shared(r))
        for name, r in found.items()
        if name in ("row-256", "cube-4x8x8")
    }
    words = "; ".join(
        f"{name}: {loads} loads, {stores} stores, {flops} float64, {shared} shared-memory instructions"
        for name, (loads, stores, flops, shared) in mixes.items()
    )
    row, cube = mixes["row-256"], mixes["cube-4x8x8"]
    return Finding("holds" if row == cube else "weaker" if row[2] == cube[2] else "reversed", words)
