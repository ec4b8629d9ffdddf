"""The level-2 passes: what they compute, what they must not change, and the pipeline as a value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from level2 import Body, level2_modules, module_of
from xdsl.context import Context

from stencil_dsl.errors import StencilError
from stencil_dsl.reference.numpy_eval import evaluate, random_inputs
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.cse import StencilCsePass
from stencil_dsl.transforms.dce import StencilDcePass
from stencil_dsl.transforms.fold_constants import FoldConstantsPass
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.pipeline import PassManager
from stencil_dsl.transforms.roofline import RooflinePass

LEVEL2 = (FoldConstantsPass(), StencilCsePass(), StencilDcePass(), FootprintPass(), RooflinePass())
SHAPES = {1: (37,), 2: (6, 7), 3: (3, 5, 4)}


def run(module, *passes):
    for p in passes or LEVEL2:
        p.apply(Context(), module)
        module.verify()
    return module


def values(module, seed=0):
    """The outputs on inputs that include both zeros, infinity and NaN."""
    apply = analysis.the_apply(module)
    shape = SHAPES[apply.get_rank()]
    # The same arrays for every version of one module, however far the footprint shrinks.
    inputs = random_inputs(module, shape, halo=[(2, 2)] * len(shape), seed=seed)
    for array in inputs.fields:
        flat = array.reshape(-1)
        for start, special in enumerate((0.0, -0.0, 1.0, np.inf, -np.inf, np.nan)):
            flat[start::13] = special
    return evaluate(module, inputs.fields, inputs.origins, shape, inputs.scalars)


def same_bits(left, right):
    """Equal bits, except that any NaN equals any other: IEEE fixes neither their sign nor their payload."""
    for a, b in zip(left, right, strict=True):
        both_nan = np.isnan(a) & np.isnan(b)
        unsigned = f"u{a.dtype.itemsize}"
        if not (a.dtype == b.dtype and np.all((a.view(unsigned) == b.view(unsigned)) | both_nan)):
            return False
    return len(left) == len(right)


def test_same_bits_sees_the_sign_of_zero():
    zero, minus, nan = np.array([0.0]), np.array([-0.0]), np.array([np.nan])
    assert same_bits([zero, nan], [zero, -nan])
    assert not same_bits([zero], [minus]) and not same_bits([zero], [nan])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(level2_modules())
def test_every_pass_keeps_every_bit_and_the_pipeline_is_idempotent(module):
    before = values(module)
    for p in LEVEL2:
        run(module, p)
        assert same_bits(values(module), before), f"{p.name} changed a value"
    once = str(module)
    assert str(run(module)) == once


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(level2_modules())
def test_counts_agree_with_a_plain_recount(module):
    apply = analysis.the_apply(run(module))
    ops = list(apply.region.block.ops)
    loads = [(o.temp, tuple(o.offset)) for o in ops if o.name == "stencil.access"]
    counts = analysis.roofline(module)
    assert counts["accesses"] == len(loads) == len(set(loads)), "one access per distinct value is left"
    size = 8 if analysis.dtype_name(apply) == "float64" else 4
    assert counts["bytes"] == size * (len({f for f, _ in loads}) + len(apply.res))
    free = {"stencil.access", "stencil.return", "arith.constant", "arith.negf"}
    assert counts["flops"] == sum(o.name not in free for o in ops) <= counts["flops_per_access"]
    for axis, (lo, hi) in enumerate(analysis.halo(module)):
        assert lo == max([0, *(-offset[axis] for _, offset in loads)])
        assert hi == max([0, *(offset[axis] for _, offset in loads)])


# -- fold-constants ------------------------------------------------------------------------------------


def body_after(passes, write, dtype="float64"):
    """Operations left of `write(body, x)`, x an access at the centre, less the return."""
    b = Body()
    result = write(b, b.access("u", 0))
    module = run(module_of(b.text, [result], dtype=dtype), *passes, StencilDcePass())
    return list(analysis.the_apply(module).region.block.ops)[:-1]


def folded(write, dtype="float64"):
    return body_after([FoldConstantsPass()], write, dtype)


def folded_number(write, dtype="float64"):
    """The constant that the whole of `write(body, x)` folds to."""
    [op] = folded(write, dtype)
    assert op.name == "arith.constant"
    return op.value.value.data


def test_folding_is_done_in_float64_and_rounded_once():
    def third(b, x):
        return b.binary("div", b.constant(1.0), b.constant(3.0))

    assert folded_number(third) == 1.0 / 3.0
    assert folded_number(third, "float32") == float(np.float32(1.0) / np.float32(3.0))
    # exp(1) in float64, then rounded.
    e = folded_number(lambda b, x: b.unary("math.exp", b.constant(1.0)), "float32")
    assert e == float(np.float32(math.e))
    # A chain folds link by link: its values are those of the element type.
    chain = folded_number(lambda b, x: b.binary("mul", third(b, x), b.constant(3.0)), "float32")
    assert chain == float(np.float32(1.0) / np.float32(3.0) * np.float32(3.0))
    assert (
        folded_number(lambda b, x: b.binary("mul", b.constant(3e38), b.constant(10.0)), "float32") == math.inf
    )


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
    assert [op.name for op in folded(write)] == ["stencil.access"]


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
    assert folded(write)[-1].name in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf")
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
    assert [op.name for op in folded(write)][-1] != "arith.constant"


# -- stencil-cse and stencil-dce -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "kept"),
    [
        (lambda b, x: b.mul(b.access("u", 1), b.access("u", 1)), 2),
        (lambda b, x: b.sub(b.add(x, b.access("u", 1)), b.add(b.access("u", 1), x)), 4),
        (lambda b, x: b.add(b.mul(x, b.constant(0.1)), b.mul(b.constant(0.1), x)), 4),
        # These would change bits, or are not the same value.
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

    names = [op.name for op in body_after([StencilCsePass()], write)]
    assert names.count("arith.cmpf") == 1 and names.count("arith.select") == 1


def test_an_access_made_in_python_equals_a_parsed_one():
    from xdsl.dialects import stencil

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


# -- the pipeline as a value ------------------------------------------------------------------------------


def test_the_default_pipeline_prints_and_reads_back():
    pm = PassManager.default_pipeline()
    assert str(pm) == "lower-source,fold-constants,stencil-cse,stencil-dce,footprint,roofline"
    assert PassManager.from_spec(str(pm)) == pm and str(PassManager.from_spec("")) == ""


def test_pipelines_are_shortened_and_extended_without_changing_the_original():
    pm = PassManager.from_spec("fold-constants,stencil-cse,footprint")
    assert str(pm.without("stencil-cse")) == "fold-constants,footprint"
    assert (
        str(pm.insert_before("stencil-cse", "stencil-dce"))
        == "fold-constants,stencil-dce,stencil-cse,footprint"
    )
    assert (
        str(pm.insert_after("footprint", RooflinePass())) == "fold-constants,stencil-cse,footprint,roofline"
    )
    assert pm.append("stencil-dce").names()[-1] == "stencil-dce" and len(pm) == 3
    with pytest.raises(StencilError, match="no pass 'roofline' in this pipeline; it has fold-constants"):
        pm.without("roofline")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no-such-pass", "unknown pass 'no-such-pass'; known are .*fold-constants"),
        ("footprint{width=3}", "pass 'footprint'.*width"),
        ("footprint{", "cannot read the pass pipeline"),
    ],
)
def test_bad_specs_are_refused(spec, message):
    with pytest.raises(StencilError, match=message):
        PassManager.from_spec(spec)


def test_run_verifies_and_names_the_pass_that_broke_the_module():
    from dataclasses import dataclass

    from xdsl.passes import ModulePass

    @dataclass(frozen=True)
    class Break(ModulePass):
        name = "break"

        def apply(self, ctx, op):
            analysis.the_apply(op).region.block.last_op.detach()

    b = Body()
    result = b.access("u", 0)
    module = module_of(b.text, [result])
    seen = []
    pm = PassManager((FoldConstantsPass(), Break(), FootprintPass()))
    with pytest.raises(StencilError, match="after the pass break"):
        pm.run(module, after_each=lambda p, m: seen.append(p.name))
    assert seen == ["fold-constants"]
