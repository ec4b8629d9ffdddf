"""How an exact float64 constant gets into a kernel.

Claim 8: cuTile rounds Python floats to float32, inside float64 kernels too (errors of 1e-8). Three remedies: a small
array of constants, a sum of float32-exact parts, and the bits as an int64 immediate. Source: 000, RTX PRO 4000
Blackwell, CUDA 13.2 (remedied there with the array).

Last measured:
- claim 8, code, sm_90, 13.5.37: holds. literal: values of float32 coefficients to 4e-16; bits: 115 instructions, 27
  loads; array: 113 instructions, 31 loads; split: 202 instructions, 27 loads
- claim 8, time, nvidia-h200, 13.5.37: holds. array / bits 1.10 (1.10..1.11), claimed 1
"""

from __future__ import annotations

import struct

import pytest

from probes import linear
from probes.judging import Untestable, count, fact, gain, judged
from probes.linear import Sweep
from probes.sweeps import CHECK, SHAPE, STENCILS, variants
from stencil_dsl.testing import Claim, Finding, Question, asks

FORMS = {name: Sweep(constants=name) for name in ("bits", "array", "split")}
CLAIM = Claim(
    8,
    "Python floats are rounded to float32 in float64 kernels; bits as an immediate are the cheapest exact constant",
    "000: errors of 1e-8 without its array of constants, RTX PRO 4000, CUDA 13.2",
)


def rounded(value: float) -> float:
    """To float32 and back."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def remedies() -> Question:
    """Three exact ways."""
    of, contestants = variants("box-27", FORMS)
    return of.ask("box-27-constants", contestants, "bits")


def literals() -> Question:
    """Plain Python floats, compared with the sweep that has rounded coefficients."""
    terms = STENCILS["box-27"]
    of = linear.problem(tuple((offset, rounded(c)) for offset, c in terms), SHAPE, CHECK)
    return of.ask("box-27-literals", [linear.variant("literal", of, terms, Sweep(constants="literal"))])


@pytest.mark.parametrize("variant", [*FORMS])
@asks(remedies)
def test_exact(variant, result):
    result.check()


@pytest.mark.parametrize("variant", ["literal"])
@asks(literals)
def test_literals_are_rounded(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(remedies) | answers(literals)
    claim(CLAIM, judged(cost, found), gain(found, "bits", "array", 1.0))


def cost(found) -> Finding:
    """Holds when a literal has the values of rounded coefficients, and no remedy has fewer loads than the immediates,
    or clearly fewer instructions.
    """
    values = found["literal"].values
    if values is None:
        raise Untestable("the values of literals were not checked")
    error = f"literal: values of float32 coefficients to {values['max_rel_err']:.0e}"
    if not values["ok"]:
        return Finding("reversed", f"{error}: they are not rounded")
    loads = {name: count(found[name], "LDG") for name in FORMS}
    sizes = {name: fact(found[name], "instructions") for name in FORMS}
    words = "; ".join([error, *(f"{name}: {sizes[name]} instructions, {loads[name]} loads" for name in FORMS)])
    cheap = loads["bits"] == min(loads.values()) and sizes["bits"] <= 1.03 * min(sizes.values())
    return Finding("holds" if cheap else "weaker", words)
