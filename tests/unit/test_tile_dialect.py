"""Level 3 prints, parses back to the same operations, and verifies."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from stencil_dsl import Schedule, compile, stencil
from stencil_dsl.dialects.tile import Tile


@stencil
def plane(u, v, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j] - v[i, j + 1]), abs(v[i - 1, j])


@stencil
def cube(u, i, j, k):
    return 0.4 * u[i, j, k] + 0.1 * (u[i - 1, j, k] + u[i, j + 1, k] + u[i, j, k - 1])


ROW = Schedule(tile=(1, 128))
CASES = [
    (plane, (33, 300), ROW),
    (plane, (33, 300), ROW.with_(occupancy=4, warps=8, latency=2, loads="checked", block_order="y")),
    (plane, None, ROW.with_(static_shape=False)),
    (plane, (32, 512), Schedule("streaming", tile=(1, 128), pair=2, chunk=8, order="fast", unroll=2)),
    (plane, (32, 300), Schedule("streaming", tile=(1, 128), carry="queue", chunk=8)),
    (cube, (8, 9, 300), Schedule("streaming", tile=(1, 2, 64), pair=2, rows=2, chunk=4, order="fast")),
]


def parse(text: str) -> builtin.ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, scf.Scf, Tile):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


@pytest.mark.parametrize(("f", "shape", "schedule"), CASES)
def test_text_is_the_same_module(f, shape, schedule) -> None:
    kernel = compile(f, shape=shape, schedule=schedule)
    again = parse(kernel.ir("tile"))
    again.verify()
    assert again.is_structurally_equivalent(kernel.lowered.module)


def test_equivalence_notices_a_change() -> None:
    kernel = compile(cube, shape=(8, 8, 256), schedule=Schedule(tile=(1, 1, 128)))
    text = kernel.ir("tile")
    other = text.replace("grid [2, 8, 8]", "grid [2, 8, 4]", 1)
    assert text != other
    assert not parse(other).is_structurally_equivalent(kernel.lowered.module)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('tile.map "add"', 'tile.map "plus"'), "unknown elementwise operation 'plus'"),
        (('tile.map "add"', 'tile.map "neg"'), "'neg' takes 1 operands, got 2"),
        (("1x1x128", "1x1x100"), "powers of two, got [1, 1, 100]"),
    ],
)
def test_what_is_no_program(change, message) -> None:
    text = compile(cube, shape=(8, 8, 256), schedule=Schedule(tile=(1, 1, 128))).ir("tile")
    assert change[0] in text
    with pytest.raises(VerifyException) as error:
        parse(text.replace(*change)).verify()
    assert message in str(error.value)
