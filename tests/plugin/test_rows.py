"""The nine rows are those of the benchmark set."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from repro import stencils
from repro.rows import ROWS
from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.testing import ConstantField, RandomField
from stencil_dsl.testing.sweeps import reference
from stencil_dsl.transforms import analysis

SHAPE = (5, 6, 7)


@pytest.fixture(scope="module")
def definitions():
    return {row.id: Definition.of(getattr(stencils, row.function), "float64") for row in ROWS.values()}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_counts_are_those_of_the_benchmark_set(row, definitions):
    module = definitions[row.id].stencil
    facts = analysis.roofline(module)
    assert (facts["accesses"], facts["bytes"], facts["flops"]) == (row.loads, row.bytes, row.flops)


def test_cns_counts_in_the_other_convention(definitions):
    assert analysis.roofline(definitions["cns"].stencil)["flops_per_access"] == 466


@pytest.mark.parametrize("row", [r for r in ROWS if r != "cns"])
def test_a_constant_field_is_preserved(row, definitions):
    """Coefficients sum to one. For iso3dfd with p = p_prev the Laplacian is zero; cond takes a positive constant."""
    definition = definitions[row]
    fields = dict.fromkeys(definition.fields, ConstantField(2.5))
    (got,) = reference(definition, fields, {})((0, 0, 0), SHAPE)
    np.testing.assert_allclose(got, 2.5, rtol=1e-14)


def test_cns_of_constant_fields_is_zero(definitions):
    fields = dict.fromkeys(definitions["cns"].fields, ConstantField(2.5))
    for got in reference(definitions["cns"], fields, {})((0, 0, 0), SHAPE):
        np.testing.assert_allclose(got, 0.0, atol=1e-14)


def inputs(definition):
    """Full arrays and the origin of the interior."""
    halo = definition.halo
    full = tuple(n + a + b for n, (a, b) in zip(SHAPE, halo, strict=True))
    lo = tuple(-a for a, _ in halo)
    return [RandomField(seed)(lo, full, np) for seed, _ in enumerate(definition.fields)], tuple(a for a, _ in halo)


def shifted(array, origin, offset):
    return array[tuple(slice(o + d, o + d + n) for o, d, n in zip(origin, offset, SHAPE, strict=True))]


def check(definition, expected):
    fields, origin = inputs(definition)
    got = evaluate(definition.stencil, fields, [origin] * len(fields), SHAPE, [])
    for have, want in zip(got, expected(*[lambda o, f=f: shifted(f, origin, o) for f in fields]), strict=True):
        np.testing.assert_allclose(have, want, rtol=0, atol=1e-14)


def unit(axis, r):
    return tuple(r if a == axis else 0 for a in range(3))


def star(u, c):
    return c[0] * u((0, 0, 0)) + sum(
        c[abs(r)] * u(unit(axis, r)) for axis in range(3) for r in range(1 - len(c), len(c)) if r
    )


@pytest.mark.parametrize(
    ("row", "coefficients"),
    [
        ("star-7", (0.4, 0.1)),
        ("star-13", (0.4, 0.07, 0.03)),
        ("star-25", (0.1, 0.06, 0.045, 0.03, 0.015)),
        ("star-19", stencils.STAR_19),
    ],
)
def test_stars(row, coefficients, definitions):
    check(definitions[row], lambda u: [star(u, coefficients)])


@pytest.mark.parametrize(
    ("row", "radius", "classes"),
    [
        ("box-27", 1, [0.28, 0.06, 0.02, 0.015]),
        ("box-125", 2, [0.1, 0.04, 0.03, 0.01, 0.006, 0.004, 0.005, 0.002, 0.003, 0.001]),
    ],
)
def test_boxes(row, radius, classes, definitions):
    offsets = list(product(range(-radius, radius + 1), repeat=3))
    names = sorted({tuple(sorted(map(abs, o))) for o in offsets})
    weight = dict(zip(names, classes, strict=True))
    check(definitions[row], lambda u: [sum(weight[tuple(sorted(map(abs, o)))] * u(o) for o in offsets)])


def test_iso3dfd(definitions):
    weights = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)

    def expected(p, p_prev, vel):
        here = (0, 0, 0)
        lap = star(p, (3 * weights[0], *weights[1:]))
        return [2 * p(here) - p_prev(here) + vel(here) * lap]

    check(definitions["iso3dfd"], expected)


def test_cond_acts_on_signed_data(definitions):
    offsets = [(0, 0, 0), *(unit(axis, s) for axis in range(3) for s in (-1, 1))]

    def inner(u):
        return sum(c * np.maximum(u(o), 0) for c, o in zip(stencils.COND, offsets, strict=True))

    check(definitions["cond"], lambda u: [np.abs(inner(u))])
    assert len(set(stencils.COND)) == 7
    fields, origin = inputs(definitions["cond"])
    values = inner(lambda o: shifted(fields[0], origin, o))
    assert (values < 0).any() and (values > 0).any(), "abs would never act"


def test_cns(definitions):
    weights = {1: 0.8, 2: -0.2, 3: 0.038, 4: -0.0035}
    scale = (0.01, 0.02, 0.03)

    def d(axis, f):
        return scale[axis] * sum(w * (f(unit(axis, r)) - f(unit(axis, -r))) for r, w in weights.items())

    def expected(c1, c2, c3, c4, q1, q2, q3, q4):
        q = (q1, q2, q3)
        out = [-(d(0, c1) + d(1, c2) + d(2, c3))]
        for own, c in enumerate((c1, c2, c3)):
            out.append(-sum(d(a, lambda o, a=a: c(o) * q[a](o) + (q4(o) if a == own else 0)) for a in range(3)))  # noqa: B023
        out.append(-sum(d(a, lambda o, a=a: c4(o) * q[a](o) + q4(o) * q[a](o)) for a in range(3)))
        return out

    check(definitions["cns"], expected)
