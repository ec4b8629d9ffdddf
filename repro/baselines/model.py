"""The nine rows as sums of terms: what the hand-written kernels and the generators here start from.

A row is written down a second time, independently of the DSL's frontend (only the coefficients are shared,
with `repro.stencils`), so that a mistake in either shows when values are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

Offset = tuple[int, int, int]
#: Fields that are multiplied, all read at the same offset.
Product = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """``coefficient * product of fields at offset``."""

    coefficient: float
    product: Product
    offset: Offset


@dataclass(frozen=True)
class Model:
    """One row of the table.

    Attributes:
        id: as in the tables.
        fields, outputs: names, in the order of the DSL's stencil.
        sums: for each output the terms that are added.
        finish: what becomes of a finished sum ``s``, as a C++ expression; ``{p}`` stands for the centre of
            field p.
        relu: every value read is replaced by max(value, 0) before it is multiplied.
    """

    id: str
    fields: tuple[str, ...]
    outputs: tuple[str, ...]
    sums: tuple[tuple[Term, ...], ...]
    finish: str = "{s}"
    relu: bool = False

    @property
    def finish_fields(self) -> tuple[str, ...]:
        """Fields whose centre the finish reads."""
        return tuple(f for f in self.fields if "{" + f + "}" in self.finish)

    @property
    def radius(self) -> Offset:
        """Widest reach along x, y and z over all fields."""
        offsets = [term.offset for terms in self.sums for term in terms]
        return tuple(max(abs(o[axis]) for o in offsets) for axis in range(3))  # type: ignore[return-value]

    def loads(self) -> set[tuple[str, Offset]]:
        """Distinct (field, offset)."""
        read = {(f, t.offset) for terms in self.sums for t in terms for f in t.product}
        return read | {(f, (0, 0, 0)) for f in self.finish_fields}

    def fields_of(self, outputs: Iterable[int]) -> tuple[str, ...]:
        """The fields that some of the outputs read, in the row's order."""
        used = {f for k in outputs for t in self.sums[k] for f in t.product} | set(self.finish_fields)
        return tuple(f for f in self.fields if f in used)

    def only(self, outputs: tuple[int, ...]) -> Model:
        """The row with some of its outputs."""
        return replace(
            self,
            fields=self.fields_of(outputs),
            outputs=tuple(self.outputs[k] for k in outputs),
            sums=tuple(self.sums[k] for k in outputs),
        )

    @property
    def bytes_per_point(self) -> int:
        """Compulsory traffic in float64: every field once, every output once."""
        return 8 * (len(self.fields) + len(self.outputs))

    def evaluate(self, read: Callable[[str, Offset], Any], xp: Any) -> list[Any]:
        """Every output from ``read(field, offset)``, an array of the interior's shape, with NumPy or the like."""

        def value(field: str, offset: Offset) -> Any:
            return xp.maximum(read(field, offset), 0.0) if self.relu else read(field, offset)

        results = []
        for terms in self.sums:
            total = 0.0
            for term in terms:
                total = total + term.coefficient * math.prod(value(f, term.offset) for f in term.product)
            results.append(self._finished(total, read, xp))
        return results

    def _finished(self, total: Any, read: Callable[[str, Offset], Any], xp: Any) -> Any:
        names = {f: read(f, (0, 0, 0)) for f in self.finish_fields} | {"s": total}
        text = self.finish.format(**{name: name for name in names})
        return eval(text, {"__builtins__": {}, "fabs": xp.abs}, names)  # one of the three texts below


#: Products that are added before anything else, with the coefficient of each offset.
Source = tuple[Product, ...]


def sources(terms: Iterable[Term]) -> dict[Source, dict[Offset, float]]:
    """A sum as sources with their coefficients by offset.

    Products with the same coefficient everywhere form one source, as c1 q1 + q4 under the x derivative: the
    sum of the two is formed once an offset instead of being multiplied twice.
    """
    by_product: dict[Product, dict[Offset, float]] = {}
    for term in terms:
        table = by_product.setdefault(term.product, {})
        table[term.offset] = table.get(term.offset, 0.0) + term.coefficient
    # The same product may occur along several axes with different partners: split it by coefficient classes.
    pieces: dict[tuple[tuple[Offset, float], ...], list[Product]] = {}
    for prod, table in by_product.items():
        for part in _axis_parts(table) if len(by_product) > 1 else [table]:
            pieces.setdefault(tuple(sorted(part.items())), []).append(prod)
    merged: dict[Source, dict[Offset, float]] = {}
    for key, products in pieces.items():
        merged.setdefault(tuple(products), {}).update(key)
    return merged


def _axis_parts(table: dict[Offset, float]) -> list[dict[Offset, float]]:
    """The offsets of a table axis by axis; those on no single axis stay together."""
    parts: dict[Any, dict[Offset, float]] = {}
    for offset, coefficient in table.items():
        axes = tuple(axis for axis in range(3) if offset[axis])
        parts.setdefault(axes, {})[offset] = coefficient
    return list(parts.values())


def _star(weights: tuple[float, ...], field: str) -> tuple[Term, ...]:
    terms = [Term(weights[0], (field,), (0, 0, 0))]
    for r, axis, sign in product(range(1, len(weights)), range(3), (-1, 1)):
        terms.append(Term(weights[r], (field,), _along(axis, sign * r)))
    return tuple(terms)


def _along(axis: int, r: int) -> Offset:
    return tuple(r if a == axis else 0 for a in range(3))  # type: ignore[return-value]


def _box(table: Any, radius: int) -> tuple[Term, ...]:
    reach = range(-radius, radius + 1)
    return tuple(Term(table[abs(a)][abs(b)][abs(c)], ("u",), (a, b, c)) for a, b, c in product(reach, repeat=3))


def _derivative(axis: int, scale: float, weights: Mapping[int, float], *products: Product) -> list[Term]:
    """Terms of minus the derivative of a sum of products along an axis."""
    return [
        Term(-sign * scale * w, p, _along(axis, sign * r))
        for r, w in weights.items()
        for p in products
        for sign in (1, -1)
    ]


def _cns(scales: tuple[float, float, float], weights: Mapping[int, float]) -> Model:
    def output(x: tuple[Product, ...], y: tuple[Product, ...], z: tuple[Product, ...]) -> tuple[Term, ...]:
        return tuple(t for a, ps in enumerate((x, y, z)) for t in _derivative(a, scales[a], weights, *ps))

    momenta = []
    for c, own in (("c1", 0), ("c2", 1), ("c3", 2)):
        parts = [((c, q),) + ((("q4",),) if axis == own else ()) for axis, q in enumerate(("q1", "q2", "q3"))]
        momenta.append(output(*parts))
    energy = output(*((("c4", q), ("q4", q)) for q in ("q1", "q2", "q3")))
    fields = ("c1", "c2", "c3", "c4", "q1", "q2", "q3", "q4")
    outputs = ("rho", "mx", "my", "mz", "ene")
    return Model("cns", fields, outputs, (output((("c1",),), (("c2",),), (("c3",),)), *momenta, energy))


@cache
def model(row: str) -> Model:
    """The row called by its id, such as "star-7".

    Raises:
        KeyError: for another name; the message lists the rows.
    """
    from repro import stencils as s

    stars = {"star-7": s.STAR_7, "star-13": s.STAR_13, "star-19": s.STAR_19, "star-25": s.STAR_25}
    if row in stars:
        return Model(row, ("u",), ("out",), (_star(stars[row], "u"),))
    if row in ("box-27", "box-125"):
        table, radius = (s.BOX_27, 1) if row == "box-27" else (s.BOX_125, 2)
        return Model(row, ("u",), ("out",), (_box(table, radius),))
    if row == "iso3dfd":
        weights = (3 * s.LAP_8[0], *s.LAP_8[1:])
        finish = "2.0 * {p} - {p_prev} + {vel} * {s}"
        return Model(row, ("p", "p_prev", "vel"), ("out",), (_star(weights, "p"),), finish)
    if row == "cond":
        offsets = [(0, 0, 0), *(_along(axis, sign) for axis in range(3) for sign in (-1, 1))]
        terms = tuple(Term(c, ("u",), o) for c, o in zip(s.COND, offsets, strict=True))
        return Model(row, ("u",), ("out",), (terms,), "fabs({s})", relu=True)
    if row == "cns":
        return _cns((s.X[0], s.Y[0], s.Z[0]), dict(s.CNS))
    raise KeyError(f"no row {row!r}; the rows are {', '.join(ROWS)}")


ROWS = ("star-7", "star-13", "star-19", "star-25", "box-27", "box-125", "iso3dfd", "cond", "cns")
