"""All three levels of a random stencil verify, print and parse back; the front end means what Python computes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf, stencil
from xdsl.dialects import math as math_dialect
from xdsl.parser import Parser

from stencil_dsl.dialects.simt import Simt
from stencil_dsl.dialects.source import Source
from stencil_dsl.dialects.tile import Tile
from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.testing.random_cases import ZEROS, Case, random_values
from stencil_dsl.testing.random_stencils import RandomStencil
from stencil_dsl.testing.strategies import cases, stencils

MAX_OFFSET = 4


def context() -> Context:
    ctx = Context()
    for dialect in (
        builtin.Builtin, func.Func, arith.Arith, math_dialect.Math, scf.Scf, stencil.Stencil, Source, Tile, Simt
    ):  # fmt: skip
        ctx.load_dialect(dialect)
    return ctx


def nameless(module: builtin.ModuleOp) -> str:
    """The text without names of values: where two have one hint, xDSL numbers them anew each time."""
    module = module.clone()
    for op in module.walk():
        values = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
        for value in values:
            value.name_hint = None
    return str(module)


@settings(max_examples=settings().max_examples // 2)
@given(cases("source") | cases("fast"))
def test_every_level_parses_back(case: Case) -> None:
    kernel = case.kernel(static=case.schedule.static_shape)
    modules = (kernel.definition.source, kernel.definition.stencil, kernel.lowered.module)
    for module in modules:
        assert module is not None
        module.verify()
        again = Parser(context(), str(module)).parse_module()
        again.verify()
        assert nameless(again) == nameless(module)


@settings(max_examples=settings().max_examples // 2)
@given(cases("source") | cases("fast"))
def test_emitted_file_is_the_same_every_time(case: Case) -> None:
    """Text that depends on addresses or hashes would miss the kernel cache in the next process."""
    static = case.schedule.static_shape
    assert case.kernel(static=static).source == case.kernel(static=static).source


def _python_where(condition: bool, a: float, b: float) -> float:
    return a if condition else b


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@settings(max_examples=2 * settings().max_examples)
@given(f=stencils(library=True), seed=st.integers(0, 999))
def test_reference_is_python_at_every_point(f: RandomStencil, seed: int, dtype: str) -> None:
    """The Python function itself, called at each point with NumPy scalars, against front end, passes and reference."""
    element = np.dtype(dtype).type
    fn = f.function()
    definition = Definition.of(f.stencil(), dtype)
    rng = np.random.default_rng(seed)
    shape = (2,) * f.ndim
    # Python reads values that are not used, the stencil does not: its halo may be narrower than the offsets.
    full, origin = (2 + 2 * MAX_OFFSET,) * f.ndim, (MAX_OFFSET,) * f.ndim
    fields = [random_values(full, dtype, rng, ZEROS) for _ in f.fields]
    scalars = [float(element(s)) for s in rng.uniform(0.5, 1.5, len(f.scalars))]
    got = evaluate(definition.stencil, fields, [origin] * len(fields), shape, scalars)
    names = {n: getattr(np, n) for n in ("sqrt", "floor", "sin", "cos", "tanh", "exp", "log")}
    fn.__globals__.update(names, where=_python_where)
    for point in itertools.product(*map(range, shape)):
        with np.errstate(all="ignore"):
            index = [p + o for p, o in zip(point, origin, strict=True)]
            want = fn(*fields, *(element(s) for s in scalars), *index)
        for array, value in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            assert _close(float(array[point]), float(value), dtype), (point, array[point], value)


def _close(got: float, want: float, dtype: str) -> bool:
    """Equal up to a few roundings: powers are multiplied out, vector functions are not scalar ones."""
    if math.isnan(got) or math.isnan(want):
        return math.isnan(got) and math.isnan(want)
    return got == want or abs(got - want) <= 1e-5 * max(1.0, abs(want)) * (1.0 if dtype == "float32" else 1e-8)
