"""Level 1 as IR: text both ways, verification, and the driver that runs passes on files."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_cases import context, define, lower, read, reparse
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from stencil_dsl import StencilError
from stencil_dsl.dialects import source
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.transforms import registry
from stencil_dsl.transforms.lower_source import LowerSourcePass

KITCHEN_SINK = """
    def f(u, v, dt, i, j):
        a = max(u[i - 1, j], v[i, j + 2], 0.1) ** 3 / (1 + abs(dt))
        if a > 0 and not u[i, j] != v[i, j] or dt <= 1:
            b, c = sqrt(abs(a)), -a
        else:
            b, c = floor(a) ** 1.5, a ** -2
        return b, where(b >= c, b, c), a
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_levels_survive_their_text(dtype: str) -> None:
    f = read(KITCHEN_SINK)
    again = reparse(f.module(dtype))
    assert again.is_structurally_equivalent(f.module(dtype))
    text = str(lower(f, dtype))
    assert ("f32" in text) == (dtype == "float32") and ("f64" in text) == (dtype == "float64")


def test_lowering_keeps_names_and_places() -> None:
    f = read(KITCHEN_SINK)
    module = f.module()
    LowerSourcePass().apply(context(), module)
    text = str(module)
    assert 'fields = ["u", "v"], scalars = ["dt"], outputs = ["f_0", "f_1", "f_2"]' in text
    assert "%b = math.sqrt" in text and "source." not in text


@settings(max_examples=60, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False), dtype=st.sampled_from(["float64", "float32"]))
def test_constants_survive_their_text(value: float, dtype: str) -> None:
    if dtype == "float32":
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float32(value)):
                return
    f = read("def f(u, i): return u[i] + C", C=value)
    want = value if dtype == "float64" else float(np.float32(value))
    found = [op.value.value.data for op in reparse(f.module(dtype)).walk() if isinstance(op, source.ConstantOp)]
    assert [(v, np.signbit(v)) for v in found] == [(want, np.signbit(want))]


def test_field_type_has_one_to_three_dimensions() -> None:
    assert str(source.FieldType(3, f32)) == "!source.field<3 x f32>"
    for ndim in (0, 4):
        with pytest.raises(VerifyException, match="1 to 3 dimensions"):
            source.FieldType(ndim, f64)


def test_a_body_must_yield() -> None:
    block = Block(arg_types=[source.FieldType(1, f64)])
    block.add_op(source.AccessOp(block.args[0], (0,)))
    names = {"fields": ["u"], "scalars": [], "indices": ["i"], "outputs": ["f"]}
    module = ModuleOp([source.StencilOp("f", names, Region(block))])
    with pytest.raises(VerifyException, match="is not a terminator"):
        module.verify()


def test_several_stencils_lower_in_place() -> None:
    module = read("def f(u, i): return u[i]").module()
    other = Stencil(define("def g(u, v, i): return u[i] * v[i]", "g")).module()
    (op,) = other.ops
    op.detach()
    module.body.block.add_op(op)
    LowerSourcePass().apply(context(), module)
    module.verify()
    assert str(module).count("stencil.apply") == 2


def test_every_registered_pass_loads_under_its_name() -> None:
    for name, factory in registry.available().items():
        assert factory().name == name
    with pytest.raises(StencilError, match="unknown pass 'nope'; known are lower-source"):
        registry.load("nope")
