"""Hand-written kernels of the random expressions, from the same tree as the DSL's text: arrays, and bricks."""

from __future__ import annotations

from typing import Any

from repro.baselines.base import Baseline, Launch, Shape, ceil_div, literal
from repro.baselines.bricks import NEIGHBOURS, BrickGrid
from repro.baselines.harness import BaselineVariant
from repro.baselines.model import Model, Offset, Term
from repro.baselines.trans_body import Row, Scatter
from repro.random_draws import Draw, Spelling, draw, grid
from stencil_dsl.testing.question import Target

#: Block extents (z, y, x): the papers' shape, and two with long rows.
BLOCKS: tuple[Shape, ...] = ((8, 8, 8), (32, 4, 4), (64, 4, 1))
#: Brick extents (x, y, z), a warp each, and whether the planes of a brick are a loop or straight code.
BRICKS: tuple[tuple[Shape, bool], ...] = (((8, 8, 8), True), ((4, 4, 32), True), ((8, 8, 8), False))
#: A small interior that neither blocks nor bricks divide.
SMALL: Shape = (9, 7, 19)


def ids() -> list[str]:
    """Variant ids, of each kind the default first."""
    return [f"arr-b{_text(b)}" for b in BLOCKS] + [f"trans-b{_text(b)}{'-loop' * loop}" for b, loop in BRICKS]


def baseline(case: str, id: str, shape: Shape) -> Baseline:
    """The kernel of a case that an id of `ids` names."""
    kind, extents, *loop = id.split("-")
    x, y, z = map(int, extents.removeprefix("b").split("x"))
    return array(case, shape, (x, y, z)) if kind == "arr" else bricks(case, shape, (x, y, z), bool(loop))


def reads(of: Draw) -> Model:
    """What a draw reads, as a model: fields and offsets are right, the sum is not what it computes."""
    seen: dict[tuple[str, Offset], None] = {}

    def note(field: str, offset: Offset) -> str:
        seen[field, offset] = None
        return "0"

    for term in of.terms:
        term(Spelling(note, repr, ("a", "b", "c"), "{}{}{}{}"))
    return Model(of.name, of.fields, ("out",), (tuple(Term(1.0, (f,), o) for f, o in seen),))


def array(case: str, shape: Shape, block: Shape) -> Baseline:
    """One thread a cell, every access a load."""
    of = draw(case)
    launch = Launch(case, grid(shape, block), block, (*of.fields, "out"))
    return Baseline(case, "arr", {"b": _text(block)}, shape, of.cuda(shape, block), (launch,), reads=reads(of))


def bricks(case: str, shape: Shape, brick: Shape, loop: bool) -> Baseline:
    """One warp a brick, neighbours by shuffle.

    Args:
        loop: planes are a loop, in which an element is loaded once a plane that reads it; else straight code, in which
            every element of the brick and its surroundings is loaded once, and wide expressions spill.
    """
    of = draw(case)
    m = reads(of)
    name = f"trans_{case}"
    count = BrickGrid(shape, brick).interior.size
    text = (PlaneLoop if loop else Gather)(of, m, name, brick, count).text()
    launch = Launch(name, (ceil_div(count, 1), 1, 1), (32, 1, 1), (*m.fields, "out", "bricks", "near"))
    config = {"b": _text(brick), "loop": loop}
    return Baseline(case, "trans", config, shape, text, (launch,), bricks=brick, reads=m)


class Gather(Scatter):
    """Writes the brick kernel of an expression.

    Terms that combine several offsets belong to one output and cannot be scattered: each output's vector is put
    together from shifted vectors. Loads and shifts are shared by all outputs of the brick.
    """

    def __init__(self, of: Draw, m: Model, name: str, brick: Shape, count: int) -> None:
        super().__init__(m, name, brick, warps=1, blocks=0, count=count)
        self.draw = of

    def _body(self) -> None:
        for x in range(self.bx):
            for row in range(self.rows):
                self._output(x, row, str(self._vector(x, row)))

    def _output(self, x: int, row: int, place: str) -> None:
        def read(field: str, offset: Offset) -> str:
            dx, dy, dz = offset
            return self._row_sum(((field,),), x + dx, row, dy, ((dz, 1),))

        spelling = Spelling(read, literal, ("fmax", "fmin", "fabs"), "({} > {} ? {} : {})")
        total = f"out_{x}_{row}"
        for n, term in enumerate(self.draw.terms):
            text = term(spelling)
            self.block.add(f"double {total} = {text};" if n == 0 else f"{total} += {text};")
        here = self.block.let(f"brick * {self._volume} + lane", "own", "const int")
        self.block.add(f"out[{here} + {place}] = {total};")


class PlaneLoop(Gather):
    """The same with a loop over the planes of a brick; what would be a plane's number is its distance dx here."""

    def _body(self) -> None:
        self.block.add("#pragma unroll 1")
        self.block.add(f"for (int x = 0; x < {self.bx}; ++x) {{")
        for row in range(self.rows):
            self._output(0, row, f"{self._plane_of(0)} + {row * 32}")
        self.block.add("}")

    def _plane_of(self, dx: int) -> str:
        """Offset of plane x + dx in the brick that holds it."""
        return self.block.let(f"((x + {dx}) & {self.bx - 1}) * {self.rows * 32}", "plane", "const int")

    def _load(self, field: str, x: int, row: Row, around: bool) -> str:
        place, needed = self._address(x, row, around)
        inner = row % self.rows if isinstance(row, int) else 0
        value = f"{field}[{place} + {self._plane_of(x)} + {inner * 32}]"
        return self.block.let(f"{needed} ? {value} : 0.0" if needed else value, field)

    def _near(self, x: int, y: int, z: int) -> str:
        if x == 0:
            return super()._near(0, y, z)
        outside = f"x + {x} < 0 ? 0 : 9" if x < 0 else f"x + {x} >= {self.bx} ? 18 : 9"
        side = self.block.let(outside, "side", "const int")
        return self.block.let(f"near[{side} + {NEIGHBOURS.index((-1, y, z))}]", "brick", "const int")


class DrawVariant(BaselineVariant):
    """A kernel of a random expression; without a device its text runs on the CPU."""

    def __init__(self, case: str, shape: Shape, id: str) -> None:
        super().__init__(baseline(case, id, shape), id)
        self.case = case

    def validate(self, target: Target) -> dict[str, Any] | None:
        from repro.baselines import emulate

        if emulate.compiler() is None:
            return None
        worst = host_error(self.case, self.id)
        why = "" if worst <= 1e-13 else f"relative error {worst:.3g} exceeds 1e-13"
        return {"ok": not why, "max_rel_err": worst, "how": f"host run, {_text(SMALL)}", "why": why}


def host_error(case: str, id: str) -> float:
    """The largest error of a kernel's text, run on the CPU, against NumPy; relative to the largest value."""
    import numpy as np

    from repro.baselines.check import fields, outputs_on_host
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.testing.sources import RandomField
    from stencil_dsl.testing.sweeps import reference

    of, made = draw(case), baseline(case, id, SMALL)
    sources = {name: RandomField(seed) for seed, name in enumerate(of.fields)}
    (want,) = reference(Definition.of(of.stencil(), "float64"), sources, {})((0, 0, 0), SMALL)
    (got,) = outputs_on_host(made, fields(made))
    return float(np.nan_to_num(np.abs(got - want), nan=np.inf).max() / np.abs(want).max())


def _text(extents: Shape) -> str:
    return "x".join(map(str, extents))
