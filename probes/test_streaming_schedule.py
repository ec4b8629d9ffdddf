"""Chunk length, rows a block and occupancy of the streaming schedule.

Claim 40: 64 planes a chunk mostly beat 128 and 32, two rows at occupancy 4 mostly beat four at 2, and a block needs
about 2 (2 r) P U + 50 registers (radius r, pairs P, rows U). Source: ours, H200, 13.5.

Last measured:
- claim 40, code, sm_90, 13.5.37: weaker. 1 rows: 128 registers (estimate 66), 7 loads a row; 2 rows: 188 registers
  (estimate 82), 5 loads a row; 4 rows: 250 registers (estimate 114), 4 loads a row; without a hint 188 registers and
  128 threads
- claim 40, time, nvidia-h200, 13.5.37: weaker. chunk-32 / base 1.00 (1.00..1.00), claimed 1; chunk-128 / base 1.00
  (1.00..1.00), claimed 1; rows-4 / base 1.01 (1.01..1.01), claimed 1
"""

from __future__ import annotations

import pytest

from probes.judging import fact, gain, judged, loads_per_store, together
from repro.stencils import star_13
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question

FORMS = {
    "base": {},
    "chunk-32": {"chunk": 32},
    "chunk-128": {"chunk": 128},
    "rows-1": {"rows": 1},
    "rows-4": {"rows": 4, "occupancy": 2},
    "occupancy-none": {"occupancy": None},
    "occupancy-2": {"occupancy": 2},
}
RADIUS, PAIR = 2, 2
CLAIM = Claim(
    40,
    "streaming: chunks of 64, two rows at occupancy 4; registers about 2 (2 r) P U + 50",
    "ours: a few dozen points a row of the table, H200, 13.5.37",
)


def points() -> Question:
    """The 13-point star around the schedule that mostly wins."""
    from stencil_dsl import Schedule

    base = Schedule(kind="streaming", tile=(1, 1, 128), pair=2, rows=2, chunk=64, occupancy=4, order="fast")
    schedules = {name: base.with_(**changes) for name, changes in FORMS.items()}
    return sweep_question("star-13-streaming", star_13, (512,) * 3, schedules, copy=False, baseline="base")


@pytest.mark.parametrize("variant", [*FORMS])
@asks(points)
def test_point(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(points)
    others = ("chunk-32", "chunk-128", "rows-4")
    claim(CLAIM, judged(registers, found), together(gain(found, "base", other, 1.0) for other in others))


def registers(found) -> Finding:
    """Holds when the estimate of registers is within a fifth for all rows, without spills; else weaker.

    Reversed when more rows do not save loads.
    """
    words, near = [], True
    for name, rows in (("rows-1", 1), ("occupancy-2", 2), ("rows-4", 4)):
        has, estimate = fact(found[name], "registers"), 2 * 2 * RADIUS * PAIR * rows + 50
        near &= abs(has - estimate) <= estimate / 5 and not fact(found[name], "loop_spills")
        loads = loads_per_store(found[name])
        words.append(f"{rows} rows: {has} registers (estimate {estimate}), {loads:g} loads a row")
    free = found["occupancy-none"]
    words.append(f"without a hint {fact(free, 'registers')} registers and {fact(free, 'threads')} threads")
    saves = loads_per_store(found["rows-4"]) < loads_per_store(found["rows-1"])
    return Finding("reversed" if not saves else "holds" if near else "weaker", "; ".join(words))
