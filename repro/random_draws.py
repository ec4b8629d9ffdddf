"""Eight random stencils of the published kind, each as text of the DSL and as a CUDA kernel from one tree.

The published expressions are not printed; these have the same numbers of fields, radius and terms, and the same
ingredients: linear terms, products of two fields, divisions, max, min, abs, a choice on a comparison, negations.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from repro.baselines.base import ceil_div, literal

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil

#: Case -> (fields, radius, terms, seed).
DRAWS = {
    "rnd0": (1, 1, 12, 1000),
    "rnd1": (2, 2, 24, 1001),
    "rnd2": (3, 3, 40, 1002),
    "rnd3": (4, 4, 60, 1003),
    "rnd4": (2, 4, 40, 1004),
    "rnd5": (4, 2, 60, 1005),
    "rnd6": (1, 3, 60, 1006),
    "rnd7": (3, 1, 24, 1007),
}
FIELDS = ("u", "v", "w", "p")
INDICES = ("i", "j", "k")
COEFFICIENTS = (0.5, 0.25, -0.125, 0.1, -0.3, 0.07, 1 / 3, 2.0)
#: Kinds of terms and how often each is drawn.
KINDS = {"linear": 8, "product": 3, "quotient": 2, "max": 1, "min": 1, "abs": 1, "choice": 1, "nested": 2}
Offset = tuple[int, int, int]
#: A read as text: field and offset.
Read = Callable[[str, Offset], str]
#: A term as a function of how a read, a number and the functions max, min and where are written.
Term = Callable[["Spelling"], str]


@dataclass(frozen=True)
class Spelling:
    """How one language writes a read, a number, larger, smaller, absolute and a choice."""

    read: Read
    number: Callable[[float], str]
    calls: tuple[str, str, str]
    choice: str


@dataclass(frozen=True)
class Draw:
    """One random stencil."""

    name: str
    fields: tuple[str, ...]
    radius: int
    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The function as a user of the DSL writes it."""

        def read(field: str, offset: Offset) -> str:
            pairs = zip(INDICES, offset, strict=True)
            at = (n + (f" {'+' if o > 0 else '-'} {abs(o)}" if o else "") for n, o in pairs)
            return f"{field}[{', '.join(at)}]"

        python = Spelling(read, repr, ("max", "min", "abs"), "where({} > {}, {}, {})")
        body = "\n        + ".join(term(python) for term in self.terms)
        return f"def {self.name}({', '.join((*self.fields, *INDICES))}):\n    return (\n        {body}\n    )\n"

    def stencil(self) -> Stencil:
        return _read_text(self.name, self.text)

    def cuda(self, shape: tuple[int, int, int], block: tuple[int, int, int]) -> str:
        """An array kernel in the style of `repro.baselines.arr`: a thread a cell, every access a load."""
        from stencil_dsl.schedule.layout import Layout

        r = self.halo_widths
        layout = Layout.padded(shape, tuple((n, n) for n in r), "float64")
        sx, sy, _ = layout.strides

        def read(field: str, offset: Offset) -> str:
            return f"{field}[{offset[0] * sx + offset[1] * sy + offset[2]}]"

        c = Spelling(read, literal, ("fmax", "fmin", "fabs"), "({} > {} ? {} : {})")
        parameters = [f"const double* __restrict__ {f}" for f in self.fields] + ["double* __restrict__ out"]
        (nx, ny, nz), (bz, by, bx) = shape, block
        return "\n".join(
            [
                f'extern "C" __global__ void __launch_bounds__({bx * by * bz}) {self.name}({", ".join(parameters)}) {{',
                f"  const int z = blockIdx.x * {bz} + threadIdx.x;",
                f"  const int y = blockIdx.y * {by} + threadIdx.y;",
                f"  const int x = blockIdx.z * {bx} + threadIdx.z;",
                f"  if (z >= {nz} || y >= {ny} || x >= {nx}) return;",
                f"  const long long at = {layout.offset}LL + (long long)x * {sx} + y * {sy} + z;",
                *(f"  {array} += at;" for array in (*self.fields, "out")),
                "  double s = 0.0;",
                *(f"  s += {term(c)};" for term in self.terms),
                "  out[0] = s;",
                "}",
                "",
            ]
        )

    @property
    def halo_widths(self) -> tuple[int, int, int]:
        """Cells read along each axis, of all fields together and both sides alike (what `Definition.halo` has)."""
        seen: list[Offset] = []

        def note(field: str, offset: Offset) -> str:
            seen.append(offset)
            return "0"

        for term in self.terms:
            term(Spelling(note, repr, ("a", "b", "c"), "{}{}{}{}"))
        return tuple(max(abs(o[axis]) for o in seen) for axis in range(3))  # type: ignore[return-value]


def grid(shape: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[int, int, int]:
    """Blocks along z, y and x."""
    z, y, x = (ceil_div(n, b) for n, b in zip(reversed(shape), block, strict=True))
    return z, y, x


@cache
def draw(name: str) -> Draw:
    """The stencil of a case; the same in every process."""
    fields, radius, count, seed = DRAWS[name]
    rng = random.Random(seed)
    names = FIELDS[:fields]
    unit = ((radius, 0, 0), (0, radius, 0), (0, 0, radius))
    corners: list[Offset] = [(s * x, s * y, s * z) for x, y, z in unit for s in (-1, 1)]

    def offset() -> Offset:
        if rng.random() < 0.5:  # on an axis, as stars have it
            axis, distance = rng.randrange(3), rng.randint(-radius, radius)
            return tuple(distance if a == axis else 0 for a in range(3))  # type: ignore[return-value]
        return tuple(rng.randint(-radius, radius) for _ in range(3))  # type: ignore[return-value]

    terms = []
    for k in range(count):
        field = names[k % fields] if k < fields else rng.choice(names)
        # The first six reach the radius on both sides of every axis: halos are then as wide as the case says.
        first = corners[k] if k < 6 else offset()
        terms.append(_term(rng, (field, first), (rng.choice(names), offset()), (rng.choice(names), offset())))
    return Draw(name, names, radius, tuple(terms))


def _term(rng: random.Random, a: tuple[str, Offset], b: tuple[str, Offset], c: tuple[str, Offset]) -> Term:
    factor = rng.choice(COEFFICIENTS)
    kind = rng.choices(tuple(KINDS), tuple(KINDS.values()))[0]

    def spell(w: Spelling) -> str:
        x, y, z, n = w.read(*a), w.read(*b), w.read(*c), w.number(factor)
        larger, smaller, absolute = w.calls
        return {
            "linear": f"{n} * {x}",
            "product": f"{n} * {x} * {y}",
            "quotient": f"{n} * {x} / ({w.number(2.0)} + {absolute}({y}))",
            "max": f"{n} * {larger}({x}, {y})",
            "min": f"{n} * {smaller}({x}, {y})",
            "abs": f"{n} * {absolute}({x} - {y})",
            "choice": f"{n} * {w.choice.format(x, y, x, z)}",
            "nested": f"{n} * (-({x} + {y}) + {w.number(0.5)} * {z})",
        }[kind]

    return spell


@cache
def _read_text(name: str, text: str) -> Stencil:
    """Reads the text as `@stencil` would read a file."""
    import linecache

    from stencil_dsl.frontend.stencil import Stencil

    filename = f"<random expression {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names: dict[str, object] = {"__name__": "repro.random_draws"}
    exec(compile(text, filename, "exec"), names)
    return Stencil(names[name])  # type: ignore[arg-type]
