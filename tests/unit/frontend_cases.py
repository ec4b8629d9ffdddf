"""Helpers for tests of the frontend: stencils from text, and plain Python as the oracle."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, stencil
from xdsl.parser import Parser

from stencil_dsl.dialects.source import Source, StencilOp
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.transforms.lower_source import LowerSourcePass

HALO, SHAPE = 5, 3
_count = itertools.count()


def define(text: str, name: str = "f", **names: Any) -> Any:
    """Run `text` with its source in linecache, as notebooks do, and give what it calls `name`."""
    filename = f"<case {next(_count)}>"
    text = textwrap.dedent(text).lstrip("\n")
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "case", **names}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def read(text: str, **names: Any) -> Stencil:
    """The stencil `f` of a text that defines it without a decorator."""
    return Stencil(define(text, **names))


def context() -> Context:
    ctx = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, math.Math, stencil.Stencil, Source):
        ctx.load_dialect(dialect)
    return ctx


def reparse(module: builtin.ModuleOp) -> builtin.ModuleOp:
    """The module read back from its own text; fails where the text changes on the way."""
    text = str(module)
    again = Parser(context(), text).parse_module()
    again.verify()
    assert str(again) == text
    return again


def lower(f: Stencil, dtype: str = "float64") -> builtin.ModuleOp:
    """Level 2 of a stencil; both levels go through their text on the way."""
    module = reparse(f.module(dtype))
    LowerSourcePass().apply(context(), module)
    module.verify()
    return reparse(module)


def operations(f: Stencil, dtype: str = "float64") -> list[str]:
    """The level-1 body as short text: operation, kind or offset or value."""
    (op,) = f.module(dtype).ops
    assert isinstance(op, StencilOp)
    names = []
    for inner in op.body.block.ops:
        detail = ""
        if "kind" in inner.properties:
            detail = f" {inner.kind.data}"
        elif inner.name == "source.access":
            detail = f" {inner.field.name_hint}{list(inner.offsets)}"
        elif inner.name == "source.constant":
            detail = f" {inner.value.value.data!r}"
        names.append(inner.name.removeprefix("source.") + detail)
    return names


def check(f: Stencil, *scalars: float, rtol: float = 0.0) -> None:
    """Compare the level-2 meaning with the Python function itself, called at every point."""
    rng = np.random.default_rng(7)
    full = (SHAPE + 2 * HALO,) * f.ndim
    fields = [rng.uniform(-1.0, 1.0, full) for _ in f.fields]
    got = evaluate(lower(f), fields, [(HALO,) * f.ndim] * len(fields), (SHAPE,) * f.ndim, scalars)
    arguments = [np.float64(value) for value in scalars]
    for point in itertools.product(range(SHAPE), repeat=f.ndim):
        want = f.fn(*fields, *arguments, *(p + HALO for p in point))
        want = want if isinstance(want, tuple) else (want,)
        assert len(got) == len(want) == len(f.outputs)
        for array, value in zip(got, want, strict=True):
            np.testing.assert_allclose(array[point], float(value), rtol=rtol, atol=0.0)
