"""The counts of the benchmark set: operations in both conventions, loads and bytes per point."""

from __future__ import annotations

import itertools

import pytest
from level2 import Body, module_of
from xdsl.context import Context

from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.cse import StencilCsePass
from stencil_dsl.transforms.dce import StencilDcePass
from stencil_dsl.transforms.fold_constants import FoldConstantsPass
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.roofline import RooflinePass

ORIGIN = (0, 0, 0)


def along(axis, distance):
    return tuple(distance if a == axis else 0 for a in range(3))


def counts(module):
    for p in (FoldConstantsPass(), StencilCsePass(), StencilDcePass(), FootprintPass(), RooflinePass()):
        p.apply(Context(), module)
    module.verify()
    return analysis.roofline(module)


def weighted_classes(b, field, classes):
    """Sum over classes of coefficient * (sum of the accesses of the class), as people write stencils."""
    return b.add(*(b.scale(c, b.add(*(b.access(field, *o) for o in offsets))) for c, offsets in classes))


def star(radius, coefficients):
    shells = [[along(a, s * r) for a in range(3) for s in (-1, 1)] for r in range(1, radius + 1)]
    return list(zip(coefficients, [[ORIGIN], *shells], strict=True))


def box(radius, coefficients):
    classes: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for offset in itertools.product(range(-radius, radius + 1), repeat=3):
        classes.setdefault(tuple(sorted(map(abs, offset))), []).append(offset)
    return list(zip(coefficients, [classes[k] for k in sorted(classes)], strict=True))


SHAPES = {
    7: star(1, [0.4, 0.1]),
    13: star(2, [0.4, 0.07, 0.03]),
    19: star(3, [0.4, 0.06, 0.03, 0.01]),
    25: star(4, [0.1, 0.06, 0.045, 0.03, 0.015]),
    27: box(1, [0.28, 0.06, 0.02, 0.015]),
    125: box(2, [0.1, 0.04, 0.03, 0.01, 0.006, 0.004, 0.005, 0.002, 0.003, 0.001]),
}


@pytest.mark.parametrize("points", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_stars_and_boxes(points, dtype):
    b = Body()
    classes = SHAPES[points]
    result = weighted_classes(b, "u", classes)
    found = counts(module_of(b.text, [result], ndim=3, dtype=dtype))
    assert found == {
        "accesses": points,
        "bytes": 16 if dtype == "float64" else 8,
        "flops": points - 1 + len(classes),
        "flops_per_access": 2 * points - 1,
    }


def test_cond():
    b = Body()
    offsets = [ORIGIN, *(along(a, s) for a in range(3) for s in (-1, 1))]
    zero = b.constant(0.0)
    terms = [b.scale(0.1 + 0.01 * k, b.binary("maximum", b.access("u", *o), zero)) for k, o in enumerate(offsets)]
    result = b.unary("math.absf", b.add(*terms))
    found = counts(module_of(b.text, [result], ndim=3))
    assert found == {"accesses": 7, "bytes": 16, "flops": 21, "flops_per_access": 21}


def test_iso3dfd():
    b = Body()
    weights = [3 * -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
    lap = weighted_classes(b, "p", star(4, weights))
    p, previous, vel = (b.access(f, *ORIGIN) for f in ("p", "p_prev", "vel"))
    result = b.add(b.sub(b.scale(2.0, p), previous), b.mul(vel, lap))
    module = module_of(b.text, [result], fields=["p", "p_prev", "vel"], ndim=3)
    found = counts(module)
    assert found == {"accesses": 27, "bytes": 32, "flops": 33, "flops_per_access": 53}
    assert analysis.halo(module) == ((4, 4),) * 3


def derivative(b, axis, at):
    """d * (0.8 (f+1 - f-1) - 0.2 (f+2 - f-2) + 0.038 (f+3 - f-3) - 0.0035 (f+4 - f-4)) of at(offset)."""
    pairs = [b.sub(at(along(axis, r)), at(along(axis, -r))) for r in (1, 2, 3, 4)]
    inner = b.sub(b.scale(0.8, pairs[0]), b.scale(0.2, pairs[1]))
    inner = b.sub(b.add(inner, b.scale(0.038, pairs[2])), b.scale(0.0035, pairs[3]))
    return b.scale((0.01, 0.02, 0.03)[axis], inner)


def hypterm():
    """The right-hand side of the compressible Navier-Stokes proxy: 8 fields in, 5 out."""
    b = Body()
    fields = ["c1", "c2", "c3", "c4", "q1", "q2", "q3", "q4"]

    def flux(*axes):
        return b.unary("arith.negf", b.add(*(derivative(b, a, at) for a, at in enumerate(axes))))

    def product(c, q, pressure=False):
        def at(o):
            value = b.mul(b.access(c, *o), b.access(q, *o))
            return b.add(value, b.access("q4", *o)) if pressure else value

        return at

    def energy(q):
        def at(o):
            return b.add(b.mul(b.access("c4", *o), b.access(q, *o)), b.mul(b.access("q4", *o), b.access(q, *o)))

        return at

    results = [flux(*(lambda o, c=c: b.access(c, *o) for c in ("c1", "c2", "c3")))]
    for m, c in enumerate(("c1", "c2", "c3")):
        results.append(flux(*(product(c, q, pressure=m == a) for a, q in enumerate(("q1", "q2", "q3")))))
    results.append(flux(*map(energy, ("q1", "q2", "q3"))))
    return module_of(b.text, results, fields=fields, ndim=3)


def test_cns_hypterm():
    module = hypterm()
    found = counts(module)
    assert found == {"accesses": 144, "bytes": 104, "flops": 358, "flops_per_access": 466}
    assert analysis.halo(module) == ((4, 4),) * 3


def test_a_coefficient_is_absorbed_where_a_term_has_its_own():
    b = Body()
    inner = b.sub(b.add(b.access("u", -1), b.access("u", 1)), b.scale(2.0, b.access("u", 0)))
    result = b.mul("%dt", inner)
    module = module_of(b.text, [result], scalars=["dt"])
    # As written two products and two sums; apart: dt * a + dt * b - (2 dt) * c, 2 * 3 - 1.
    assert counts(module) == {"accesses": 3, "bytes": 16, "flops": 4, "flops_per_access": 5}


def test_an_unread_field_does_not_move_and_logic_is_free():
    b = Body()
    x, zero = b.access("u", 0), b.constant(0.0)
    p, q = (b.emit(f"arith.cmpf {how}, {x}, %dt : T") for how in ("olt", "une"))
    both = b.emit(f"arith.andi {p}, {q} : i1")
    result = b.emit(f"arith.select {both}, {x}, {zero} : T")
    module = module_of(b.text, [result, result], fields=["u", "v"], scalars=["dt"])
    assert counts(module) == {"accesses": 1, "bytes": 24, "flops": 3, "flops_per_access": 3}
