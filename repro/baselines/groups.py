"""Sums arranged for kernels that visit one plane at a time and scatter what they find to the open outputs.

Within plane x every access (dx, dy, dz) of output o is a contribution to o(x - dx). Accesses of one source with
the same coefficients over dx (up to sign) are added first and multiplied once for each dx: a *group*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repro.baselines.base import literal
from repro.baselines.model import Model, Product, Source, Term, sources

#: (dz, sign) of the accesses in one row.
ZSet = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Group:
    """``sum over members of sign * source(dy, dz)``, times a coefficient for each dx.

    Attributes:
        rows: dy to the accesses in that row.
        by_dx: coefficient of each plane distance.
    """

    source: Source
    rows: tuple[tuple[int, ZSet], ...]
    by_dx: tuple[tuple[int, float], ...]


def plane_groups(terms: Iterable[Term]) -> list[Group]:
    """The groups of one sum; together they are the whole sum."""
    groups = []
    for source, table in sources(terms).items():
        by_dx: dict[tuple[int, int], dict[int, float]] = {}
        for (dx, dy, dz), coefficient in table.items():
            by_dx.setdefault((dy, dz), {})[dx] = coefficient
        classes: dict[tuple[tuple[int, float], ...], list[tuple[int, int, int]]] = {}
        for (dy, dz), vector in sorted(by_dx.items()):
            sign = 1 if vector[max(vector)] > 0 else -1
            key = tuple(sorted((dx, sign * c) for dx, c in vector.items()))
            classes.setdefault(key, []).append((dy, dz, sign))
        for key, members in classes.items():
            rows: dict[int, list[tuple[int, int]]] = {}
            for dy, dz, sign in members:
                rows.setdefault(dy, []).append((dz, sign))
            if all(sign < 0 for *_, sign in members):
                key = tuple((dx, -c) for dx, c in key)
                rows = {dy: [(dz, -sign) for dz, sign in zs] for dy, zs in rows.items()}
            groups.append(Group(source, tuple((dy, tuple(zs)) for dy, zs in rows.items()), key))
    return groups


class Block:
    """Statements of a straight piece of code; an expression that was named before is not computed again."""

    def __init__(self, indent: str = "  ") -> None:
        self.lines: list[str] = []
        self._indent = indent
        self._names: dict[str, str] = {}

    def let(self, text: str, hint: str, ctype: str = "const double") -> str:
        """A name for the value of text."""
        if text not in self._names:
            self._names[text] = f"{hint}_{len(self._names)}"
            self.add(f"{ctype} {self._names[text]} = {text};")
        return self._names[text]

    def add(self, line: str) -> None:
        self.lines.append(self._indent + line)


def signed_sum(parts: Iterable[tuple[str, int]]) -> str:
    """``a + b - c``, positive parts first."""
    parts = sorted(parts, key=lambda part: -part[1])
    text = ("" if parts[0][1] > 0 else "-") + parts[0][0]
    return text + "".join(f" {'+' if sign > 0 else '-'} {name}" for name, sign in parts[1:])


def source_text(source: Source, value: Mapping[str, str], block: Block) -> str:
    """A source from the values of its fields at one place: a factor common to all products is taken out."""
    common = [f for f in source[0] if all(f in p for p in source)]
    if len(source) > 1 and common:
        rest = [_without(p, common[0]) for p in source]
        total = block.let(" + ".join(_product(p, value) for p in rest), "t")
        return f"{total} * {value[common[0]]}"
    return " + ".join(_product(p, value) for p in source)


def _without(product: Product, field: str) -> Product:
    index = product.index(field)
    return product[:index] + product[index + 1 :]


def _product(product: Product, value: Mapping[str, str]) -> str:
    return " * ".join(value[f] for f in product)


def relu_text(value: str) -> str:
    """Twice max(value, 0): one addition, the modulus is free. Coefficients are halved in turn."""
    return f"{value} + fabs({value})"


def scale(m: Model) -> float:
    """Factor of all coefficients that makes up for `relu_text`."""
    return 0.5 if m.relu else 1.0


def contributions(values: Mapping[int, list[tuple[float, str]]], block: Block) -> dict[int, str]:
    """For each dx the text to add to its accumulator, from (coefficient, group value) pairs.

    A combination of three or more groups that two dx share is computed once.
    """
    texts = {dx: " + ".join(f"{literal(c)} * {v}" for c, v in pairs) for dx, pairs in values.items()}
    for text in dict.fromkeys(t for dx, t in texts.items() if len(values[dx]) >= 3):
        users = [dx for dx, t in texts.items() if t == text]
        if len(users) > 1:
            name = block.let(text, "w")
            texts |= dict.fromkeys(users, name)
    return texts
