"""Extents that no tile divides.

Claim 42: odd extents (300, 500, 513) cost little against powers of two: loads stay unchecked (arrays have whole tiles
behind them), only the store is checked, and the tail is the waste of its tiles. Source: ours, H200, 13.5.

Last measured:
- claim 42, code, sm_90, 13.5.37: weaker. 512: 104 instructions in the loop, 0% waste; 300: 110 instructions in the
  loop, 28% waste; 500: 110 instructions in the loop, 2% waste; 513: 134 instructions in the loop, 25% waste
- claim 42, time, nvidia-h200, 13.5.37: reversed. 512: 1.39 of a copy, 0% waste; 300: 1.54 of a copy, 28% waste; 500:
  1.71 of a copy, 2% waste; 513: 2.26 of a copy, 25% waste
"""

from __future__ import annotations

import pytest

from probes.judging import fact, judged
from repro.stencils import star_13
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question
from stencil_dsl.testing.stats import TIE_BAND

SIZES = (512, 300, 500, 513)
CLAIM = Claim(
    42,
    "extents that no tile divides cost no more than the waste of their last tiles",
    "ours: 300, 500 and 513 against 512, H200, 13.5.37",
)
TILE = 64 * 2  # cells along z: pairs of a row of 64


def size(extent: int) -> Question:
    """A cube of this edge, streamed in rows of 64 pairs."""
    from stencil_dsl import Schedule

    how = Schedule(kind="streaming", tile=(1, 2, 64), pair=2, rows=1, chunk=64, occupancy=4, order="fast")
    return sweep_question(f"star-13-size-{extent}", star_13, (extent,) * 3, {"sweep": how})


@pytest.mark.parametrize("variant", ["sweep", "copy"])
@pytest.mark.parametrize("extent", SIZES)
@asks(size)
def test_size(extent, variant, result):
    result.check()


def test_claim(answers, claim):
    found = {extent: answers(size, extent=extent) for extent in SIZES}
    claim(CLAIM, judged(code, {extent: of["sweep"] for extent, of in found.items()}), times(found))


def waste(extent: int) -> float:
    """Share of computed cells that lie behind the interior's end along z."""
    return -(-extent // TILE) * TILE / extent - 1


def code(found) -> Finding:
    """Holds when the loop of every odd size is at most a tenth longer than that of 512; weaker up to a half."""
    base = fact(found[512], "loop_instructions")
    words, worst = [], 0.0
    for extent, result in found.items():
        loop = fact(result, "loop_instructions")
        worst = max(worst, loop / base - 1)
        words.append(f"{extent}: {loop} instructions in the loop, {waste(extent):.0%} waste")
    return Finding("holds" if worst <= 0.1 else "weaker" if worst <= 0.5 else "reversed", "; ".join(words))


def times(found) -> Finding | None:
    """Time against a copy of the same cells, compared with 512's; waste is allowed for."""
    ratios = {extent: of["sweep"].ratio(of["copy"]) for extent, of in found.items()}
    if any(ratio is None for ratio in ratios.values()):
        return None
    base = ratios[512].median
    over = {e: r.median / base / (1 + waste(e)) for e, r in ratios.items()}
    words = "; ".join(f"{e}: {r.median:.2f} of a copy, {waste(e):.0%} waste" for e, r in ratios.items())
    worst = max(over.values())
    return Finding("holds" if worst <= 1 + 2 * TIE_BAND else "weaker" if worst <= 1.3 else "reversed", words, "time")
