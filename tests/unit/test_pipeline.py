"""The level-2 passes together: values, idempotence, counts; and the pipeline as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from level2 import LEVEL2, Body, level2_texts, module_of, parse, run, same_bits
from xdsl.passes import ModulePass

from stencil_dsl.errors import StencilError
from stencil_dsl.reference.numpy_eval import evaluate, random_inputs
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.fold_constants import FoldConstantsPass
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.pipeline import PassManager
from stencil_dsl.transforms.roofline import RooflinePass

SHAPES = {1: (37,), 2: (6, 7), 3: (3, 5, 4)}


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


def test_same_bits_sees_the_sign_of_zero():
    zero, minus, nan = np.array([0.0]), np.array([-0.0]), np.array([np.nan])
    assert same_bits([zero, nan], [zero, -nan])
    assert not same_bits([zero], [minus]) and not same_bits([zero], [nan])


# Asserts below see numbers and text only: the `repr` of IR, which pytest prints, can be exponentially long.


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(level2_texts())
def test_every_pass_keeps_every_bit_and_the_pipeline_is_idempotent(text):
    module = parse(text)
    before = values(module)
    for p in LEVEL2:
        run(module, p)
        kept = same_bits(values(module), before)
        assert kept, f"{p.name} changed a value"
    once = str(module)
    twice = str(run(module))
    assert twice == once


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(level2_texts())
def test_counts_agree_with_a_plain_recount(text):
    module = run(parse(text))
    names = [o.name for o in analysis.the_apply(module).region.walk()]
    printed = str(module)
    loads = re.findall(r"stencil.access %(\w+)\[([-\d, ]+)\]", printed)
    counts, halo = analysis.roofline(module), analysis.halo(module)
    assert counts["accesses"] == len(loads) == len(set(loads)), "one access per distinct value is left"
    arrays = len({field for field, _ in loads}) + len(analysis.output_names(module))
    size = 8 if "f64" in text else 4
    assert counts["bytes"] == size * arrays
    free = {"stencil.access", "stencil.return", "arith.constant", "arith.negf"}
    assert counts["flops"] == sum(name not in free for name in names) <= counts["flops_per_access"]
    offsets = [tuple(map(int, offset.split(","))) for _, offset in loads]
    for axis, widths in enumerate(halo):
        along = [0, *(offset[axis] for offset in offsets)]
        assert widths == (-min(along), max(along))


# -- the pipeline as a value ------------------------------------------------------------------------------


def test_the_default_pipeline_prints_and_reads_back():
    pm = PassManager.default_pipeline()
    assert str(pm) == "lower-source,fold-constants,stencil-cse,stencil-dce,footprint,roofline"
    assert PassManager.from_spec(str(pm)) == pm and str(PassManager.from_spec("")) == ""


def test_pipelines_are_shortened_and_extended_without_changing_the_original():
    pm = PassManager.from_spec("fold-constants,stencil-cse,footprint")
    assert str(pm.without("stencil-cse")) == "fold-constants,footprint"
    assert str(pm.insert_before("stencil-cse", "stencil-dce")) == "fold-constants,stencil-dce,stencil-cse,footprint"
    assert str(pm.insert_after("footprint", RooflinePass())) == "fold-constants,stencil-cse,footprint,roofline"
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
