"""Levels of kernels whose names are hard to keep apart."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, scf, stencil
from xdsl.ir import SSAValue
from xdsl.parser import Parser

import stencil_dsl
from stencil_dsl import Schedule
from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.dialects.source import Source
from stencil_dsl.dialects.tile import Tile


@stencil_dsl.stencil
def stress(s, s_1_1, s_1_2, s_1, i, j):
    t_1_1 = s_1_1[i, j] * s_1[i, j]
    t_1_2 = s_1_2[i, j - 1] * s[i - 1, j]
    return t_1_1 + t_1_2, t_1_1 - s[i, j]


@pytest.mark.parametrize("schedule", [Schedule(tile=(1, 16)), Schedule("streaming", tile=(1, 8), order="fast")])
def test_numbered_names_parse_back(schedule) -> None:
    context = Context()
    for dialect in (
        builtin.Builtin, func.Func, arith.Arith, math.Math, scf.Scf, stencil.Stencil, Source, Tile,
    ):  # fmt: skip
        context.load_dialect(dialect)
    kernel = stencil_dsl.compile(stress, shape=(5, 33), schedule=schedule)
    for level in ("source", "stencil", "tile"):
        Parser(context, kernel.ir(level)).parse_module().verify()
    assert kernel.definition.fields == ("s", "s_1_1", "s_1_2", "s_1")
    assert kernel.validate(device="cpu")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("u", "u"), ("u_1", "u"), ("u_0_0", "u_0"), ("s_1_1", "s"), ("s_1_2_3", "s"), ("u_m1_0", "u_m1"), ("t_10_7", "t")],
)
def test_hints_end_in_no_number(name, hint) -> None:
    assert SSAValue.extract_valid_name(hint_of(name)) == hint


def test_another_toolkit_lowers_nothing_again():
    kernel = stencil_dsl.compile(stress, shape=(64, 256))
    other = kernel.with_toolkit("13.4")
    assert (kernel.toolkit, other.toolkit, other.options.toolkit) == (None, "13.4", "13.4")
    assert other.schedule == kernel.schedule and other.lowered is kernel.lowered
    assert other.for_shape((8, 128)).toolkit == "13.4"
