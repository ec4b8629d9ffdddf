"""Random stencils as Python source text: what a user might write, only more of everything in one expression."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stencil_dsl.testing.choose import Choose, chance

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil

FIELDS, SCALARS, INDICES = ("u", "v", "w", "p"), ("dt", "kappa"), ("i", "j", "k")
CONSTANTS = ("2", "3", "1", "0", "0.5", "2.0", "-0.25", "1.5", "0.1", "-0.3", "0.7", "1 / 3", "-1", "1.2345678901e-3")
"""Integers, numbers that float32 holds exactly, numbers that no binary format holds."""

COEFFICIENTS = ("0.5", "0.1", "-0.25", "2", "0.03", "-1", "1 / 12", "0.1")
LEAVES = 14
"""Accesses a stencil may make outside its sums: expressions stay small enough to interpret."""


@dataclass(frozen=True)
class RandomStencil:
    """A stencil as text; equal cases have equal text.

    Attributes:
        pointwise: fields that are read at the cell itself only, on purpose.
        rounded: every operation is correctly rounded (no exp, sin, ...), so that results do not depend on a library.
    """

    name: str
    text: str
    fields: tuple[str, ...]
    scalars: tuple[str, ...]
    ndim: int
    pointwise: tuple[str, ...] = ()
    rounded: bool = True

    def stencil(self) -> Stencil:
        """Read the text as `@stencil` would read a file."""
        from stencil_dsl.frontend.stencil import Stencil

        return Stencil(self.function())

    def function(self) -> Any:
        """The plain Python function, its text registered in linecache."""
        filename = f"<random stencil {zlib.crc32(self.text.encode()):08x}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        names: dict[str, Any] = {"__name__": "random_stencils"}
        exec(compile(self.text, filename, "exec"), names)
        return names[self.name]

    def __repr__(self) -> str:
        return f"\n{self.text}"


class Writer:
    """Writes expressions of one stencil.

    Args:
        fast: only what reassociated sums change by rounding: no jumps (floor, comparisons) on sums.
        library: functions whose last bit is up to a library (exp, sin, ...) may occur.
        pointwise: the first field is read at the cell itself only.
    """

    def __init__(self, choose: Choose, fast: bool, library: bool = False, pointwise: bool = False) -> None:
        self.choose, self.fast, self.library = choose, fast, library
        self.ndim = choose.one_of((3, 2, 1, 3, 2, 3))
        self.fields = FIELDS[: choose.integer(1, 4)]
        self.centred = self.fields[:1] if pointwise else ()
        self.scalars = SCALARS[: choose.integer(0, 2)]
        radius = choose.one_of((1, 2, 1, 3, 4))
        self.reach = [(choose.integer(0, radius), choose.integer(0, radius)) for _ in range(self.ndim)]
        self.leaves = LEAVES
        self.rounded = True
        self.locals: list[str] = []
        self.coefficients = [choose.one_of(COEFFICIENTS) for _ in range(3)]

    # -- leaves

    def access(self, field: str | None = None, offset: tuple[int, ...] | None = None) -> str:
        self.leaves -= 1
        field = field or self.choose.one_of(self.fields)
        if offset is None:
            offset = tuple(self.choose.integer(-lo, hi) for lo, hi in self.reach)
            if chance(self.choose, 50):
                axis = self.choose.integer(0, self.ndim - 1)
                offset = tuple(o if a == axis else 0 for a, o in enumerate(offset))
        if field in self.centred:
            offset = (0,) * self.ndim
        where = ", ".join(
            name + (f" {'-' if o < 0 else '+'} {abs(o)}" if o else "") for name, o in zip(INDICES, offset, strict=False)
        )
        return f"{field}[{where}]"

    def constant(self) -> str:
        return f"({self.choose.one_of(CONSTANTS)})"

    def leaf(self) -> str:
        kinds: list[Callable[[], str]] = [self.access, self.access, self.access, self.constant]
        if self.scalars:
            kinds.append(lambda: self.choose.one_of(self.scalars))
        if self.locals:
            kinds += [lambda: self.choose.one_of(self.locals)] * 2
        return self.choose.one_of(kinds)()

    # -- sums over a neighbourhood

    def coefficient(self) -> str:
        text = self.choose.one_of(self.coefficients)
        if self.scalars and chance(self.choose, 15):
            return f"{self.choose.one_of(self.scalars)} * ({text})"
        return f"({text})"

    def neighbourhood(self) -> list[tuple[int, ...]]:
        """Offsets: a star, both ends of an axis, a small box, or scattered ones."""
        kind = self.choose.one_of(("star", "line", "box", "scattered"))
        zero = (0,) * self.ndim
        ends = [zero[:a] + (o,) + zero[a + 1 :] for a, reach in enumerate(self.reach) for o in (-reach[0], reach[1])]
        if kind == "star":
            return list(dict.fromkeys([zero, *ends]))
        if kind == "line":
            axis = self.choose.integer(0, self.ndim - 1)
            low, high = self.reach[axis]
            return [zero[:axis] + (o,) + zero[axis + 1 :] for o in range(-low, high + 1)]
        if kind == "box":
            corners: list[tuple[int, ...]] = [()]
            for low, high in self.reach:
                corners = [c + (o,) for c in corners for o in range(-min(low, 1), min(high, 1) + 1)]
            return corners
        count = self.choose.integer(1, 5)
        return [tuple(self.choose.integer(-lo, hi) for lo, hi in self.reach) for _ in range(count)]

    def total(self) -> str:
        """A sum of accesses, each with a coefficient, or groups of them with a common one."""
        field, offsets = self.choose.one_of(self.fields), self.neighbourhood()
        left = self.leaves
        terms = [self.access(field, o) for o in offsets]
        self.leaves = left - 3
        if chance(self.choose, 40):
            inner = " + ".join(terms)
            return f"{self.coefficient()} * ({inner})"
        text = self.choose.one_of(("", "", "-")) + f"{self.coefficient()} * {terms[0]}"
        for term in terms[1:]:
            text += f"{self.choose.one_of((' + ', ' + ', ' - '))}{self.coefficient()} * {term}"
        return f"({text})"

    # -- conditions

    def side(self, depth: int) -> str:
        """One side of a comparison."""
        if not self.fast:
            return self.value(depth - 1)
        form = self.choose.one_of(("{}", "-{}", "0.3 * {}", "abs({})"))
        return form.format(self.access()) if chance(self.choose, 70) else self.constant()

    def condition(self, depth: int) -> str:
        kind = self.choose.one_of(("compare", "compare", "compare", "not", "and", "or"))
        if kind == "compare" or depth <= 0:
            sign = self.choose.one_of(("<", ">", "<=", ">=", "==", "!="))
            return f"{self.side(depth)} {sign} {self.side(depth)}"
        if kind == "not":
            return f"not ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)}) {kind} ({self.condition(depth - 1)})"

    # -- values

    def away_from_zero(self, depth: int) -> str:
        """A value of at least 0.5 in magnitude, of either sign."""
        form = self.choose.one_of(("({} + abs({}))", "(-{} - abs({}))"))
        return form.format(self.choose.one_of(("1.5", "0.7", "2")), self.value(depth))

    def value(self, depth: int) -> str:
        """An expression, in parentheses where it needs them."""
        if depth <= 0 or self.leaves <= 0:
            return self.leaf()
        kinds: list[Callable[..., str]] = [self.leaf, self.total, self.total]
        kinds += [self._binary] * 5
        kinds += [self._scaled, self._negated, self._quotient, self._extremum, self._extremum, self._clipped]
        kinds += [self._absolute, self._choice, self._power, self._root]
        if not self.fast:
            kinds.append(self._floor)
        if self.library:
            kinds += [self._library] * 3
        kind = self.choose.one_of(kinds)
        return kind() if kind in (self.leaf, self.total) else kind(depth - 1)

    def _binary(self, depth: int) -> str:
        sign = self.choose.one_of(("+", "-", "*", "+", "-", "*"))
        return f"({self.value(depth)} {sign} {self.value(depth)})"

    def _scaled(self, depth: int) -> str:
        return f"{self.coefficient()} * {self.value(depth)}"

    def _negated(self, depth: int) -> str:
        return f"(-{self.value(depth)})"

    def _quotient(self, depth: int) -> str:
        under = self.choose.one_of(("3", "0.7", "-1.5", *self.scalars, ""))
        return f"({self.value(depth)} / {under or self.away_from_zero(depth)})"

    def _extremum(self, depth: int) -> str:
        return f"{self.choose.one_of(('min', 'max'))}({self.value(depth)}, {self.value(depth)})"

    def _clipped(self, depth: int) -> str:
        form = self.choose.one_of(("max({}, 0)", "min({}, 0.0)", "max(0.0, {})", "min({}, 0.1)"))
        return form.format(self.value(depth))

    def _absolute(self, depth: int) -> str:
        return f"abs({self.value(depth)})"

    def _choice(self, depth: int) -> str:
        condition, a, b = self.condition(depth), self.value(depth), self.value(depth)
        return f"where({condition}, {a}, {b})" if chance(self.choose, 50) else f"({a} if {condition} else {b})"

    def _power(self, depth: int) -> str:
        exponent = self.choose.one_of(("2", "3", "1", "0", "5", "-1", "-2"))
        base = self.away_from_zero(depth - 1) if exponent[0] == "-" else f"({self.value(min(depth, 1))})"
        return f"({base} ** {exponent})" if exponent[0] != "-" else f"({base} ** ({exponent}))"

    def _root(self, depth: int) -> str:
        return f"sqrt({self.choose.one_of(('1.5', '0.7'))} + abs({self.value(depth)}))"

    def _floor(self, depth: int) -> str:
        return f"floor({self.value(depth)})"

    def _library(self, depth: int) -> str:
        self.rounded = False
        form = self.choose.one_of(("sin({})", "cos({})", "tanh({})", "exp(-abs({}))", "log(1.5 + abs({}))"))
        return form.format(self.value(depth))


def random_stencil(
    choose: Choose, fast: bool = False, library: bool = False, pointwise: bool = False, name: str = "f"
) -> RandomStencil:
    """A stencil of one to four fields in one to three dimensions with one to three outputs."""
    writer = Writer(choose, fast, library, pointwise)
    lines = []
    for n in range(choose.integer(0, 2)):
        lines.append(f"t{n} = {writer.value(choose.integer(1, 3))}")
        writer.locals.append(f"t{n}")
    outputs = []
    for _ in range(choose.one_of((1, 1, 2, 3))):
        writer.leaves = LEAVES
        outputs.append(writer.value(choose.integer(1, 4)))
    # Fields come before scalars by being subscripted, and indices by standing in a subscript.
    body = "\n".join([*lines, *outputs])
    missing = [f for f in writer.fields if f"{f}[" not in body]
    outputs[0] = " + ".join([outputs[0], *(writer.access(f) for f in missing)])
    params = [*writer.fields, *writer.scalars, *INDICES[: writer.ndim]]
    text = f"def {name}({', '.join(params)}):\n"
    text += "".join(f"    {line}\n" for line in lines) + f"    return {', '.join(outputs)}\n"
    return RandomStencil(name, text, writer.fields, writer.scalars, writer.ndim, tuple(writer.centred), writer.rounded)
