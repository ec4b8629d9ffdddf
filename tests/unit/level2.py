"""Level-2 modules for tests: from text, by a small writer, at random (hypothesis); running and comparing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, stencil
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from stencil_dsl.transforms.cse import StencilCsePass
from stencil_dsl.transforms.dce import StencilDcePass
from stencil_dsl.transforms.fold_constants import FoldConstantsPass
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.roofline import RooflinePass

# All passes after lower-source, in the order of the default pipeline.
LEVEL2 = (FoldConstantsPass(), StencilCsePass(), StencilDcePass(), FootprintPass(), RooflinePass())

SHORT = {"float64": "f64", "float32": "f32"}


def parse(text: str) -> builtin.ModuleOp:
    """Parse and verify a module of the level-2 dialects."""
    ctx = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, math.Math, stencil.Stencil):
        ctx.load_dialect(dialect)
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module


def _array(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{n}"' for n in names) + "]"


def text_of(
    body: str,
    results: Sequence[str],
    *,
    fields: Sequence[str] = ("u",),
    scalars: Sequence[str] = (),
    ndim: int = 1,
    dtype: str = "float64",
) -> str:
    """Text of a module around `body`, in which `T` stands for the element type and `F` for the field type."""
    elem = SHORT[dtype]
    temp = f"!stencil.temp<{'?x' * ndim}{elem}>"
    arguments = [f"%{n}_in : {temp}" for n in fields] + [f"%{n}_in : {elem}" for n in scalars]
    operands = [f"%{n} = %{n}_in : {temp}" for n in fields] + [f"%{n} = %{n}_in : {elem}" for n in scalars]
    temps, elems = ", ".join([temp] * len(results)), ", ".join([elem] * len(results))
    outputs = ["f"] if len(results) == 1 else [f"f_{i}" for i in range(len(results))]
    handles = ", ".join(f"%r{i}" for i in range(len(results)))
    body = body.replace(": T", f": {elem}").replace(": F", f": {temp}")
    return f"""
builtin.module {{
  func.func @f({", ".join(arguments)}) -> ({temps}) attributes
      {{fields = {_array(fields)}, scalars = {_array(scalars)}, outputs = {_array(outputs)}}} {{
    {handles} = stencil.apply({", ".join(operands)}) -> ({temps}) {{
      {body}
      stencil.return {", ".join(results)} : {elems}
    }}
    func.return {handles} : {temps}
  }}
}}"""


def module_of(body: str, results: Sequence[str], **kwargs: Any) -> builtin.ModuleOp:
    """The module that `text_of` writes, parsed and verified."""
    return parse(text_of(body, results, **kwargs))


def run(module: builtin.ModuleOp, *passes: ModulePass) -> builtin.ModuleOp:
    """Run passes in place, all of level 2 by default, verifying after each."""
    for p in passes or LEVEL2:
        p.apply(Context(), module)
        module.verify()
    return module


def same_bits(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    """Equal bits, except that any NaN equals any other: IEEE fixes neither their sign nor their payload."""
    for a, b in zip(left, right, strict=True):
        both_nan = np.isnan(a) & np.isnan(b)
        unsigned = f"u{a.dtype.itemsize}"
        if not (a.dtype == b.dtype and np.all((a.view(unsigned) == b.view(unsigned)) | both_nan)):
            return False
    return len(left) == len(right)


class Body:
    """Writes the body of an apply, one operation a line; values are names. `c * x` etc. are method calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = itertools.count()

    def emit(self, text: str) -> str:
        name = f"%v{next(self._count)}"
        self.lines.append(f"{name} = {text}")
        return name

    def access(self, field: str, *offset: int) -> str:
        return self.emit(f"stencil.access %{field}[{', '.join(map(str, offset))}] : F")

    def constant(self, value: float) -> str:
        return self.emit(f"arith.constant {value:.17e} : T")

    def binary(self, op: str, a: str, b: str) -> str:
        return self.emit(f"arith.{op}f {a}, {b} : T")

    def add(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.binary("add", total, term)
        return total

    def sub(self, a: str, b: str) -> str:
        return self.binary("sub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.binary("mul", a, b)

    def scale(self, c: float, value: str) -> str:
        return self.mul(self.constant(c), value)

    def unary(self, op: str, a: str) -> str:
        return self.emit(f"{op} {a} : T")

    def select(self, predicate: str, a: str, b: str, yes: str, no: str) -> str:
        condition = self.emit(f"arith.cmpf {predicate}, {a}, {b} : T")
        return self.emit(f"arith.select {condition}, {yes}, {no} : T")

    @property
    def text(self) -> str:
        return "\n      ".join(self.lines)


# Numbers that make folding and signs visible: units, zeros of both signs, f32-inexact, extremes.
CONSTANTS = (0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 2.0, 1.0 / 3.0, 1e-30, 3e38, 1e300)
PREDICATES = ("oeq", "une", "olt", "ole", "ogt", "oge")


@st.composite
def level2_texts(draw: st.DrawFn) -> str:
    """Random small modules: 1 to 3 fields, 1 to 3 dimensions, both dtypes, one or two outputs.

    Text, not IR: hypothesis prints the arguments of a failing test by `repr`, and that of an xDSL operation
    repeats its operands, which for a value used twice at every step is exponential.
    """
    ndim = draw(st.integers(1, 3))
    fields = ["u", "v", "w"][: draw(st.integers(1, 3))]
    scalars = ["dt"][: draw(st.integers(0, 1))]
    body = Body()
    values = [f"%{s}" for s in scalars]

    def value() -> str:
        return draw(st.sampled_from(values))

    offsets = st.tuples(*[st.integers(-2, 2)] * ndim)
    for _ in range(draw(st.integers(3, 25))):
        kinds = ["access", "constant"] + (["binary"] * 5 + ["unary", "select"] if values else [])
        match draw(st.sampled_from(kinds)):
            case "access":
                new = body.access(draw(st.sampled_from(fields)), *draw(offsets))
            case "constant":
                new = body.constant(draw(st.sampled_from(CONSTANTS)))
            case "binary":
                op = draw(st.sampled_from(["add", "sub", "mul", "div", "minimum", "maximum"]))
                new = body.binary(op, value(), value())
            case "unary":
                new = body.unary(draw(st.sampled_from(["arith.negf", "math.absf"])), value())
            case _:
                new = body.select(draw(st.sampled_from(PREDICATES)), *(value() for _ in range(4)))
        values.append(new)
    count = draw(st.integers(1, 2))
    # The last values are the interesting roots; earlier ones may stay dead.
    results = [values[-1 - i] for i in range(count)]
    dtype = draw(st.sampled_from(["float64", "float32"]))
    return text_of(body.text, results, fields=fields, scalars=scalars, ndim=ndim, dtype=dtype)
