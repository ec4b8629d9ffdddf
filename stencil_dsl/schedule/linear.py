"""Linear forms: a sum as coefficients times atoms, the algebra behind reassociated ("fast") schedules.

An atom is anything that is not itself a sum: an access, a product of fields, a function value. A coefficient is a
number, or a number times an expression of run-time scalars.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from stencil_dsl.schedule.expr import Graph, Node


@dataclass(frozen=True)
class Coefficient:
    """`number * scalar`; `scalar` is a uniform node, or None for 1."""

    number: float
    scalar: Node | None = None

    @property
    def key(self) -> tuple[float, int]:
        return self.number, -1 if self.scalar is None else self.scalar.id

    def scaled(self, by: float) -> Coefficient:
        return Coefficient(self.number * by, self.scalar)


class Linearizer:
    """Linear forms of the nodes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def terms(self, node: Node) -> list[tuple[Coefficient, Node | None]]:
        """The terms of a node; the atom None stands for 1. Equal atoms are merged where their scalars agree.

        A part that is shared is taken apart once, after all that it is a part of: operands are older than what is made
        of them.
        """
        merged: dict[tuple[int, int], tuple[float, Node | None, Node | None]] = {}
        pending = {(node.id, -1): (node, Coefficient(1.0))}
        heap = [(-node.id, -1)]
        while heap:
            negative, scalar = heapq.heappop(heap)
            below: list[tuple[Node, Coefficient]] = []
            for c, part in self._split(*pending.pop((-negative, scalar)), below):
                key = (-1 if part is None else part.id, c.key[1])
                number = merged[key][0] + c.number if key in merged else c.number
                merged[key] = (number, c.scalar, part)
            for child, c in reversed(below):
                place = (child.id, c.key[1])
                if place in pending:
                    c = Coefficient(pending[place][1].number + c.number, c.scalar)
                else:
                    heapq.heappush(heap, (-child.id, c.key[1]))
                pending[place] = (child, c)
        rank = self._first_seen(node)
        terms = [(Coefficient(n, s), atom) for n, s, atom in merged.values() if n != 0.0]
        return sorted(terms, key=lambda t: len(rank) if t[1] is None else rank[t[1].id])

    def _first_seen(self, node: Node) -> dict[int, int]:
        """Atoms in the order of the source, so that emitted sums read like it."""
        rank: dict[int, int] = {}
        seen: set[int] = set()
        stack = [(node, Coefficient(1.0))]
        while stack:
            current, factor = stack.pop()
            if current.id in seen:
                continue
            seen.add(current.id)
            for _, part in self._split(current, factor, stack):
                if part is not None:
                    rank.setdefault(part.id, len(rank))
        return rank

    def _split(
        self, node: Node, factor: Coefficient, stack: list[tuple[Node, Coefficient]]
    ) -> Iterable[tuple[Coefficient, Node | None]]:
        """Push the parts of a sum, or give the node as a term of its own."""
        op, args = node.op, node.args
        if node.uniform:
            return [(self._times(factor, node), None)]
        if op == "add":
            stack += [(args[1], factor), (args[0], factor)]
        elif op == "sub":
            stack += [(args[1], factor.scaled(-1.0)), (args[0], factor)]
        elif op == "neg":
            stack.append((args[0], factor.scaled(-1.0)))
        elif op == "mul" and (args[0].uniform or args[1].uniform):
            uniform, other = args if args[0].uniform else (args[1], args[0])
            stack.append((other, self._times(factor, uniform)))
        elif op == "div" and args[1].uniform:
            stack.append((args[0], self._over(factor, args[1])))
        elif op in ("max", "min") and (zero := self._against_zero(node)) is not None:
            # max(x, 0) = (x + |x|) / 2: one addition with a free |.|, against a compare and two selects.
            half = factor.scaled(0.5)
            stack += [
                (self.graph.op("abs", zero), half if op == "max" else half.scaled(-1.0)),
                (zero, half),
            ]
        else:
            return [(factor, node)]
        return []

    @staticmethod
    def _against_zero(node: Node) -> Node | None:
        """x of max(x, 0) or min(x, 0) in either order."""
        for a, b in (node.args, node.args[::-1]):
            if b.op == "const" and b.value == 0.0:
                return a
        return None

    def _times(self, factor: Coefficient, uniform: Node) -> Coefficient:
        if uniform.op == "const":
            return factor.scaled(uniform.value)
        if uniform.op == "neg":
            return self._times(factor.scaled(-1.0), uniform.args[0])
        if uniform.op == "mul":
            return self._times(self._times(factor, uniform.args[0]), uniform.args[1])
        if factor.scalar is None:
            return Coefficient(factor.number, uniform)
        a, b = sorted((factor.scalar, uniform), key=lambda n: n.id)
        return Coefficient(factor.number, self.graph.op("mul", a, b))

    def _over(self, factor: Coefficient, uniform: Node) -> Coefficient:
        if uniform.op == "const":
            return factor.scaled(1.0 / uniform.value)
        return self._times(factor, self.graph.op("div", self.graph.const(1.0), uniform))
