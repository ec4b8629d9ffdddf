"""Values of earlier planes: carried, scattered, or loaded again.

Claim 30: a queue of planes in registers along the streamed axis saves loading them again. Source: 003 (25-point
acoustic wave, nine planes in a register queue, Intel B580). Scattering every plane into open outputs is the third way.

Last measured:
- claim 30, code, sm_90, 13.5.37: holds. reload: 21 loads a row, 64 registers, 0 moves in the loop; queue: 13 loads a
  row, 82 registers, 17 moves in the loop; scatter: 13 loads a row, 127 registers, 0 moves in the loop
- claim 30, time, nvidia-h200, 13.5.37: reversed. reload / queue 0.95 (0.94..0.96), claimed 1.2
"""

from __future__ import annotations

import pytest

from probes.judging import count, fact, gain, judged, loads_per_store, together
from repro.stencils import star_25
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

FORMS = {
    "reload": {"order": "source"},
    "queue": {"order": "source", "carry": "queue"},
    "scatter": {"order": "fast"},
}
CLAIM = Claim(
    30,
    "a register queue along the streamed axis beats loading the planes again",
    "003: 25-point star, nine planes in registers, Intel B580; no figure for the alternative",
)


def queues() -> Question:
    """The 25-point star, streamed in rows of 128."""
    from stencil_dsl import Schedule

    base = Schedule(kind="streaming", tile=(1, 1, 128), rows=2, chunk=64, occupancy=4)
    schedules = {name: base.with_(**changes) for name, changes in FORMS.items()}
    return sweep_question("star-25-queue", star_25, (512,) * 3, schedules, copy=False, baseline="reload")


@pytest.mark.parametrize("variant", [*FORMS])
@asks(queues)
def test_queue(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(queues)
    claim(CLAIM, judged(loads, found), together([gain(found, "queue", "reload", 1.2)]))


def loads(found) -> Finding:
    """Holds when the queue has fewer loads a row of output than reloading, and no spills in its loop."""
    per_row = {name: loads_per_store(r) for name, r in found.items()}
    moves = {name: count(r, "MOV", "IMAD.MOV", loop=True) for name, r in found.items()}
    words = "; ".join(
        f"{name}: {per_row[name]:g} loads a row, {fact(r, 'registers')} registers, {moves[name]} moves in the loop"
        for name, r in found.items()
    )
    fewer = per_row["queue"] < per_row["reload"]
    spills = fact(found["queue"], "loop_spills")
    return Finding("holds" if fewer and not spills else "weaker" if fewer else "reversed", words)
