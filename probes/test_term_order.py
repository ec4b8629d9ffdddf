"""The order of a wide sum's terms.

Claim 5: a 125-point sweep whose terms stand in spatial order takes 6.5 ms, grouped by coefficient 7.3 to 7.7 ms,
because tileiras issues loads in program order. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2.

Last measured:
- claim 5, code, sm_90, 13.5.37: weaker. spatial-one: 90 registers, 0 B spilled; coefficient-one: 90 registers, 0 B
  spilled; spatial-two: 128 registers, 0 B spilled; coefficient-two: 128 registers, 0 B spilled
- claim 5, time, nvidia-h200, 13.5.37: weaker. coefficient-one / spatial-one 0.98 (0.96..0.99), claimed 1.15;
  coefficient-two / spatial-two 1.14 (1.12..1.15), claimed 1.15
"""

from __future__ import annotations

import pytest

from probes import linear
from probes.judging import fact, gain, judged, together
from probes.linear import Sweep
from probes.sweeps import STENCILS, problem
from stencil_dsl.testing import Claim, Finding, Question, asks

FORMS = {"one": Sweep(options=(("occupancy", 4),)), "two": Sweep(tile=(1, 1, 256), options=(("occupancy", 4),))}
ORDERS = {"spatial": linear.spatial, "coefficient": linear.by_coefficient}
VARIANTS = {f"{order}-{form}": (order, form) for form in FORMS for order in ORDERS}
CLAIM = Claim(
    5,
    "spatial term order beats coefficient order on the 125-point box",
    "000: 6.5 against 7.3 to 7.7 ms, two elements a thread, occupancy 4, RTX PRO 4000, CUDA 13.2",
)


def orders() -> Question:
    """Two orders of the same 125 terms, with one and two elements a thread under occupancy 4."""
    of, terms = problem("box-125"), STENCILS["box-125"]
    return of.ask(
        "box-125-order",
        [linear.variant(name, of, ORDERS[order](terms), FORMS[form]) for name, (order, form) in VARIANTS.items()],
    )


@pytest.mark.parametrize("variant", [*VARIANTS])
@asks(orders)
def test_order(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(orders)
    times = [gain(found, f"spatial-{form}", f"coefficient-{form}", 1.15) for form in FORMS]
    claim(CLAIM, judged(pressure, found), together(times))


def pressure(found) -> Finding:
    """Holds when spatial order needs fewer registers or spilled bytes; weaker when they are equal."""
    costs = {n: (fact(r, "spill_bytes"), fact(r, "registers")) for n, r in found.items()}
    words = "; ".join(f"{n}: {registers} registers, {spilled} B spilled" for n, (spilled, registers) in costs.items())
    better = [costs[f"spatial-{f}"] < costs[f"coefficient-{f}"] for f in FORMS]
    worse = [costs[f"spatial-{f}"] > costs[f"coefficient-{f}"] for f in FORMS]
    return Finding("holds" if any(better) and not any(worse) else "reversed" if all(worse) else "weaker", words)
