"""Splits an expression for streaming: what is scattered plane by plane, and what is evaluated when a plane is done.

A *sum* collects terms each of which reads one plane only (the offset along the streamed axis is the same in all its
accesses). Terms are evaluated where their plane is loaded and added to the outputs that are still open. Everything
else is a *final* expression over sums and direct accesses, evaluated once per output cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stencil_dsl.schedule.expr import Graph, Node
from stencil_dsl.schedule.linear import Coefficient, Linearizer


@dataclass(frozen=True)
class Group:
    """Atoms of one plane that enter the outputs with the same coefficients.

    Attributes:
        vector: offset along the streamed axis to coefficient.
        members: sign and atom, each atom moved to offset 0.
    """

    vector: tuple[tuple[int, Coefficient], ...]
    members: tuple[tuple[int, Node], ...]


@dataclass(frozen=True)
class Sum:
    """A scattered sum: planes [lo, hi] around an output contribute to it."""

    groups: tuple[Group, ...]
    lo: int
    hi: int

    @property
    def open_outputs(self) -> int:
        """Accumulators a cell needs while planes stream by."""
        return self.hi - self.lo


@dataclass(frozen=True)
class Final:
    """A node of a final expression.

    Attributes:
        kind: "sum" (of `sums[index]`), "node" (evaluated in place), or the name of an operation on `args`.
    """

    kind: str
    args: tuple[Final, ...] = ()
    index: int = -1
    node: Node | None = None


@dataclass
class Plan:
    """What to compute, one final expression an output."""

    graph: Graph
    sums: list[Sum] = field(default_factory=list)
    finals: list[Final] = field(default_factory=list)

    def late_nodes(self) -> list[Node]:
        """The nodes that finals evaluate in place."""
        found: list[Node] = []
        seen: set[int] = set()
        stack = list(self.finals)
        while stack:
            final = stack.pop()
            if id(final) in seen:
                continue
            seen.add(id(final))
            stack.extend(final.args)
            if final.node is not None and not final.node.uniform:
                found.append(final.node)
        return found


def fold(root: Final, value: Callable[[Final, list[Any]], Any]) -> Any:
    """Evaluate a final expression from its leaves up, each part once: it may be deep, and share parts.

    Args:
        value: gives the value of a part from those of its arguments.
    """
    known: dict[int, Any] = {}
    stack = [root]
    while stack:
        final = stack[-1]
        missing = [a for a in final.args if id(a) not in known]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if id(final) not in known:
            known[id(final)] = value(final, [known[id(a)] for a in final.args])
    return known[id(root)]


def make_plan(graph: Graph, fast: bool) -> Plan:
    """Plan all outputs; in source order nothing is scattered, since that would change the order of additions."""
    if fast not in graph.plans:
        plan = graph.plans[fast] = Plan(graph)
        make = _Planner(plan).final if fast else lambda n: Final("node", node=n)
        plan.finals = [make(n) for n in graph.outputs]
    return graph.plans[fast]


class _Planner:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.linear = Linearizer(plan.graph)
        self.known: dict[int, Final] = {}
        self.terms: dict[int, list[tuple[Coefficient, Node | None]] | None] = {}
        self.scattered: dict[int, list[Final]] = {}
        self.sum_index: dict[Sum, int] = {}

    def final(self, root: Node) -> Final:
        """The final expression of a node; what it is made of comes first, however deep it is."""
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [a for a in self._parts(node) if a.id not in self.known]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if node.id not in self.known:
                self.known[node.id] = self._final(node)
        return self.known[root.id]

    def _terms(self, node: Node) -> list[tuple[Coefficient, Node | None]] | None:
        """The terms of a sum; None for a node that is not one. Scattered sums are numbered as they are met."""
        if node.uniform or node.op == "access":
            return None
        if node.id not in self.terms:
            terms = self.linear.terms(node)
            self.terms[node.id] = None if len(terms) == 1 and terms[0][1] is node else terms
            local = [(c, a) for c, a in self.terms[node.id] or [] if a is not None and len(a.planes) == 1]
            self.scattered[node.id] = [self._scatter(run) for run in _runs(local)]
        return self.terms[node.id]

    def _parts(self, node: Node) -> list[Node]:
        """The nodes whose finals a node's own final is made of."""
        if node.uniform or node.op == "access":
            return []
        terms = self._terms(node)
        return list(node.args) if terms is None else [a for _, a in terms if a is not None and len(a.planes) > 1]

    def _final(self, node: Node) -> Final:
        if node.uniform or node.op == "access":
            return Final("node", node=node)
        terms = self._terms(node)
        if terms is None:
            return Final(node.op, tuple(self.known[a.id] for a in node.args))
        # A reader of the same plane first, then what had to wait for others.
        parts = list(self.scattered[node.id])
        parts += [self._scaled(c, self.known[a.id]) for c, a in terms if a is not None and len(a.planes) > 1]
        parts += [Final("node", node=self._uniform(c)) for c, a in terms if a is None]
        if not parts:
            # Every term cancelled.
            return Final("node", node=self.graph.const(0.0))
        total = parts[0]
        for part in parts[1:]:
            total = Final("add", (total, part))
        return total

    def _uniform(self, c: Coefficient) -> Node:
        number = self.graph.const(c.number)
        return number if c.scalar is None else self.graph.op("mul", number, c.scalar)

    def _scaled(self, c: Coefficient, value: Final) -> Final:
        if c.key == (1.0, -1):
            return value
        return Final("mul", (Final("node", node=self._uniform(c)), value))

    def _scatter(self, terms: Iterable[tuple[Coefficient, Node]]) -> Final:
        vectors: dict[Node, dict[int, list[Coefficient]]] = {}
        for c, atom in terms:
            dx = next(iter(atom.planes))
            here = self.graph.shift(atom, (-dx,) + (0,) * (self.graph.ndim - 1))
            vectors.setdefault(here, {}).setdefault(dx, []).append(c)
        total = Sum(tuple(_group(vectors)), *_span(vectors))
        if total not in self.sum_index:
            self.sum_index[total] = len(self.plan.sums)
            self.plan.sums.append(total)
        return Final("sum", index=self.sum_index[total])


def _runs(terms: list[tuple[Coefficient, Node]]) -> list[list[tuple[Coefficient, Node]]]:
    """Terms by runs of planes without a gap, each of which is scattered by itself.

    An accumulator that a plane adds nothing to would only change places in the loop, and tileiras 13.3 to 13.5
    compute wrong values for computed tiles that do (`probes/test_miscompiled_queue.py`).
    """
    by_plane: dict[int, list[tuple[Coefficient, Node]]] = {}
    for term in terms:
        by_plane.setdefault(next(iter(term[1].planes)), []).append(term)
    starts = sorted(dx for dx in by_plane if dx - 1 not in by_plane)
    ends = [*starts[1:], max(by_plane, default=0) + 1]
    return [
        [t for t in terms if start <= next(iter(t[1].planes)) < end] for start, end in zip(starts, ends, strict=False)
    ]


def _span(vectors: dict[Node, dict[int, list[Coefficient]]]) -> tuple[int, int]:
    planes = [dx for vector in vectors.values() for dx in vector]
    return min(planes), max(planes)


def _group(vectors: dict[Node, dict[int, list[Coefficient]]]) -> list[Group]:
    """Atoms with one coefficient vector, up to a sign, form a group and are multiplied once per plane offset."""
    groups: dict[tuple, tuple[tuple[tuple[int, Coefficient], ...], list[tuple[int, Node]]]] = {}
    for atom, by_plane in vectors.items():
        # An atom whose coefficients carry different scalars cannot be merged: one layer for each.
        layers = max(len(cs) for cs in by_plane.values())
        for layer in range(layers):
            vector = tuple(sorted(((dx, cs[layer]) for dx, cs in by_plane.items() if layer < len(cs)), key=_first))
            sign = -1 if vector[0][1].number < 0 else 1
            vector = tuple((dx, c.scaled(sign)) for dx, c in vector)
            key = tuple((dx, *c.key) for dx, c in vector)
            groups.setdefault(key, (vector, []))[1].append((sign, atom))
    return [Group(vector, tuple(members)) for vector, members in groups.values()]


def _first(item: tuple[int, Coefficient]) -> int:
    return item[0]
