"""What each level-2 pass does to small bodies, and what it must leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from level2 import Body, module_of, run, same_bits
from xdsl.dialects import stencil

from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.cse import StencilCsePass
from stencil_dsl.transforms.dce import StencilDcePass
from stencil_dsl.transforms.fold_constants import FoldConstantsPass, constant_value, fold
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.roofline import RooflinePass

# -- fold-constants ------------------------------------------------------------------------------------


def body_after(passes, write, dtype="float64"):
    """Names of the operations left of `write(body, x)`, x an access at the centre, less the return."""
    b = Body()
    result = write(b, b.access("u", 0))
    module = run(module_of(b.text, [result], dtype=dtype), *passes, StencilDcePass())
    return [op.name for op in analysis.the_apply(module).region.block.ops][:-1]


def folded(write, dtype="float64"):
    return body_after([FoldConstantsPass()], write, dtype)


def folded_number(write, dtype="float64"):
    """The constant that the whole of `write(body)` folds to."""
    b = Body()
    result = write(b)
    module = run(module_of(b.text, [result], dtype=dtype), FoldConstantsPass(), StencilDcePass())
    [constant, _] = analysis.the_apply(module).region.block.ops
    return constant_value(constant.results[0])


def test_folding_is_done_in_float64_and_rounded_once():
    def third(b):
        return b.binary("div", b.constant(1.0), b.constant(3.0))

    assert folded_number(third) == 1.0 / 3.0
    assert folded_number(third, "float32") == float(np.float32(1.0) / np.float32(3.0))
    # exp(1) in float64, then rounded.
    e = folded_number(lambda b: b.unary("math.exp", b.constant(1.0)), "float32")
    assert e == float(np.float32(math.e))
    # A chain folds link by link: its values are those of the element type.
    tenth = folded_number(lambda b: b.binary("mul", third(b), b.constant(0.3)), "float32")
    assert tenth == float(np.float32(1.0) / np.float32(3.0) * np.float32(0.3))
    over = folded_number(lambda b: b.mul(b.constant(3e38), b.constant(10.0)), "float32")
    assert over == math.inf


@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: b.mul(x, b.constant(1.0)),
        lambda b, x: b.mul(b.constant(1.0), x),
        lambda b, x: b.binary("div", x, b.constant(1.0)),
        lambda b, x: b.sub(x, b.constant(0.0)),
        lambda b, x: b.add(x, b.constant(-0.0)),
        lambda b, x: b.add(b.constant(-0.0), x),
        lambda b, x: b.unary("arith.negf", b.unary("arith.negf", x)),
        lambda b, x: b.select("olt", b.constant(1.0), b.constant(2.0), x, b.constant(7.0)),
        lambda b, x: b.mul(x, b.sub(b.constant(3.0), b.constant(2.0))),
    ],
)
def test_what_does_nothing_is_dropped(write):
    assert folded(write) == ["stencil.access"]


@pytest.mark.parametrize(
    ("write", "special", "tempting"),
    [
        (lambda b, x: b.add(x, b.constant(0.0)), -0.0, -0.0),
        (lambda b, x: b.sub(x, b.constant(-0.0)), -0.0, -0.0),
        (lambda b, x: b.sub(b.constant(0.0), x), 0.0, -0.0),
        (lambda b, x: b.mul(x, b.constant(0.0)), math.nan, 0.0),
        (lambda b, x: b.sub(x, x), math.inf, 0.0),
        (lambda b, x: b.binary("div", x, x), 0.0, 1.0),
    ],
)
def test_what_is_not_exact_for_every_number_stays(write, special, tempting):
    """For the field value `special` the tempting result would be wrong."""
    assert folded(write)[-1] in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf")
    b = Body()
    result = write(b, b.access("u", 0))
    [out] = evaluate(module_of(b.text, [result]), [np.array([special])], [(0,)], (1,))
    assert not same_bits([out], [np.array([tempting])])


@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: b.binary("div", b.constant(0.0), b.constant(0.0)),
        lambda b, x: b.unary("math.sqrt", b.constant(-1.0)),
        lambda b, x: b.binary("maximum", b.constant(0.0), b.constant(-0.0)),
        lambda b, x: b.unary("math.erf", b.constant(1.0)),
    ],
)
def test_what_the_machine_decides_is_not_folded(write):
    assert folded(write)[-1] != "arith.constant"


# -- stencil-cse and stencil-dce -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "kept"),
    [
        (lambda b, x: b.mul(b.access("u", 1), b.access("u", 1)), 2),
        (lambda b, x: b.sub(b.add(x, b.access("u", 1)), b.add(b.access("u", 1), x)), 4),
        (lambda b, x: b.add(b.mul(x, b.constant(0.1)), b.mul(b.constant(0.1), x)), 4),
        # These would change bits, or are not the same value.
        (lambda b, x: b.sub(b.binary("maximum", x, b.access("u", 1)), b.binary("maximum", b.access("u", 1), x)), 5),
        (lambda b, x: b.sub(b.sub(x, b.access("u", 1)), b.sub(b.access("u", 1), x)), 5),
        (lambda b, x: b.binary("div", b.constant(0.0), b.constant(-0.0)), 3),
        (lambda b, x: b.sub(b.access("u", 1), b.access("u", -1)), 3),
    ],
)
def test_equal_values_are_computed_once(write, kept):
    assert len(body_after([StencilCsePass()], write)) == kept


def test_mirrored_comparisons_are_one():
    def write(b, x):
        one, two = b.constant(1.0), b.constant(2.0)
        first = b.select("olt", x, one, one, two)
        return b.add(first, b.select("ogt", one, x, one, two))

    names = body_after([StencilCsePass()], write)
    assert names.count("arith.cmpf") == 1 and names.count("arith.select") == 1


def test_an_access_made_in_python_equals_a_parsed_one():
    b = Body()
    result = b.add(b.access("u", 1), b.access("u", 2))
    apply = analysis.the_apply(module_of(b.text, [result]))
    first, second = [op for op in apply.region.block.ops if isinstance(op, stencil.AccessOp)]
    made = stencil.AccessOp(first.temp, (1,))
    apply.region.block.insert_op_before(made, second)
    second.res.replace_all_uses_with(made.res)
    assert (made.offset_mapping is None) != (first.offset_mapping is None), "the difference that matters"
    module = apply.parent_op().parent_op()
    run(module, StencilCsePass(), StencilDcePass())
    assert analysis.accesses(apply) == [(0, (1,))]
    assert [op.name for op in apply.region.block.ops] == ["stencil.access", "arith.addf", "stencil.return"]


def test_a_dead_access_does_not_widen_the_halo():
    b = Body()
    x = b.access("u", 0)
    b.unary("math.absf", b.access("u", -4))
    module = module_of(b.text, [x])
    assert analysis.halo(run(module, FootprintPass())) == ((4, 0),), "it would be loaded"
    run(module, StencilDcePass())
    apply = analysis.the_apply(module)
    assert "halo_lo" not in apply.attributes, "facts about the old body must go"
    assert analysis.halo(module) == ((0, 0),) == analysis.halo(run(module, FootprintPass()))


def test_footprint_is_per_field_and_asymmetric():
    b = Body()
    total = b.add(b.access("u", -3, 0, 1), b.access("u", 1, 0, 2), b.access("w", 0, -1, 0))
    module = run(module_of(b.text, [total], fields=["u", "v", "w"], ndim=3), FootprintPass())
    u, v, w = analysis.the_apply(module).attributes["footprint"]
    assert [u.data[k].get_values() for k in ("lo", "hi")] == [(-3, 0, 1), (1, 0, 2)]
    assert v.name == "unit"
    assert [w.data[k].get_values() for k in ("lo", "hi")] == [(0, -1, 0), (0, -1, 0)]
    assert analysis.halo(module) == ((3, 1), (1, 0), (0, 2))
    assert analysis.field_names(module) == ("u", "v", "w")
    assert analysis.accesses(analysis.the_apply(module)) == [(0, (-3, 0, 1)), (0, (1, 0, 2)), (2, (0, -1, 0))]


@pytest.mark.parametrize("change", [FoldConstantsPass(), StencilCsePass(), StencilDcePass()], ids=lambda p: p.name)
def test_a_pass_that_changes_the_body_drops_facts_about_it(change):
    b = Body()
    x, one = b.access("u", 0), b.constant(1.0)
    result = b.add(b.mul(x, one), b.access("u", 0))
    module = run(module_of(b.text, [result]))
    apply = analysis.the_apply(module)
    before = set(apply.attributes)
    run(module, change)
    assert set(apply.attributes) == before, "nothing left to change, nothing dropped"
    module = run(module_of(b.text, [result]), FootprintPass(), RooflinePass())
    if isinstance(change, StencilDcePass):
        # Folding by hand leaves the product without users.
        fold(analysis.the_apply(module))
    run(module, change)
    left = set(analysis.the_apply(module).attributes)
    assert before == set(analysis.FACTS) and not left & set(analysis.FACTS)
