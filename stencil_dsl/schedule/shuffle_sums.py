"""Scattered sums of the shuffle schedule: what a plane adds to the outputs that are still open.

Between calls an accumulator is a tile that only device functions look into, within a call it is a register. How
equal subexpressions are found is left to the compiler of the device functions, which sees a plane as a whole; sums are
formed row by row and by distance along z, so that it finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.schedule.builder import Value
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.linear import Coefficient
from stencil_dsl.schedule.plan import Group, Sum

if TYPE_CHECKING:
    from stencil_dsl.schedule.shuffle_body import ShuffleBody

SHARE_FROM = 3
"""Groups from which on it pays to form the contribution of +dx and -dx once and add it twice."""

Key = tuple[int, int, int]
"""Number of the sum, row of the block, element of the lane."""


class Sums:
    """State of all sums of a kernel.

    Attributes:
        open: accumulators; number k of a sum belongs to the k-th output that is still open.
        done: sums of the outputs that the last plane completed.
    """

    def __init__(self, body: ShuffleBody) -> None:
        self.body = body
        self.open: dict[Key, list[Value | None]] = {}
        self.done: dict[Key, Value] = {}
        for i, total in enumerate(body.plan.sums):
            for j, lane in body.rows_lanes:
                self.open[i, j, lane] = [None] * total.open_outputs

    def slots(self) -> list[tuple[list[Value | None], int]]:
        """Every accumulator's place, in one order."""
        return [(slots, k) for slots in self.open.values() for k in range(len(slots))]

    def adopt(self, values: list[Value]) -> None:
        """Continue from these accumulators."""
        for (slots, k), value in zip(self.slots(), values, strict=True):
            slots[k] = value

    def take(self, key: Key, x: Value, shift: int, wanted: dict[int, int]) -> None:
        """Add what plane x + shift contributes at each wanted offset to the accumulator of its slot."""
        i, j, lane = key
        total, slots, b = self.body.plan.sums[i], self.open[key], self.body.b
        needed = [g for g in total.groups if any(dx in wanted for dx, _ in g.vector)]
        formed = [(g, self._group(g, j, lane, x, shift)) for g in needed]
        rest = dict(wanted)
        for dx, sign in _mirrored(total, wanted):
            shared: Value | None = None
            for group, value in formed:
                for c in (c for d, c in group.vector if d == dx):
                    shared = self._accumulate(shared, c, *value)
            assert shared is not None
            slots[wanted[dx]] = b.add(slots[wanted[dx]], shared)
            slots[wanted[-dx]] = b.scaled_add(slots[wanted[-dx]], sign, shared)
            del rest[dx], rest[-dx]
        for group, value in formed:
            for dx, c in group.vector:
                if dx in rest:
                    slots[rest[dx]] = self._accumulate(slots[rest[dx]], c, *value)

    def _accumulate(self, acc: Value | None, c: Coefficient, sign: int, value: Value) -> Value:
        b = self.body.b
        if c.scalar is None:
            return b.scaled_add(acc, sign * c.number, value)
        scalar = b.expression(c.scalar, _no_access, self.body.scalars)
        if abs(c.number) != 1.0:
            scalar = b.map("mul", b.constant(abs(c.number)), scalar)
        return b.scaled_add(acc, 1.0 if sign * c.number > 0 else -1.0, b.map("mul", scalar, value))

    def _group(self, group: Group, j: int, lane: int, x: Value, shift: int) -> tuple[int, Value]:
        """Sign and value of a group's sum."""
        rows: dict[int, dict[int, list[tuple[int, Node]]]] = {}
        for sign, atom in group.members:
            distance = abs(atom.offset[-1]) if atom.op == "access" else -1
            rows.setdefault(_anchor(atom), {}).setdefault(distance, []).append((sign, atom))
        parts = []
        for _, by_distance in sorted(rows.items()):
            pairs = []
            for _, members in sorted(by_distance.items(), reverse=True):
                values = [(s, self._atom(a, j, lane, x, shift)) for s, a in sorted(members, key=lambda m: m[1].offset)]
                pairs.append(self._signed_sum(values))
            parts.append(self._signed_sum(pairs))
        return self._signed_sum(parts)

    def _atom(self, atom: Node, j: int, lane: int, x: Value, shift: int) -> Value:
        body = self.body
        place = ("atom", x, shift, j, lane)
        return body.b.expression(atom, lambda n: body.value(n, x, shift, j, lane), body.scalars, place)

    def _signed_sum(self, parts: list[tuple[int, Value]]) -> tuple[int, Value]:
        first, total = parts[0]
        for sign, value in parts[1:]:
            total = self.body.b.map("add" if sign == first else "sub", total, value)
        return first, total


def _mirrored(total: Sum, wanted: dict[int, int]) -> list[tuple[int, float]]:
    """Offsets dx whose contribution is that of -dx, up to a common sign, in enough groups to form it once."""
    found = []
    for dx in [d for d in wanted if d > 0 and -d in wanted]:
        vectors = [dict(g.vector) for g in total.groups]
        pairs = [(v.get(dx), v.get(-dx)) for v in vectors if dx in v or -dx in v]
        for sign in (1.0, -1.0):
            if len(pairs) >= SHARE_FROM and all(a and b and a.scaled(sign).key == b.key for a, b in pairs):
                found.append((dx, sign))
                break
    return found


def _anchor(atom: Node) -> int:
    """The lowest row an atom reads, along y."""
    offsets = [a.offset for a in accesses([atom])]
    return min(o[1] for o in offsets) if len(offsets[0]) == 3 else 0


def _no_access(node: Node) -> Value:
    raise AssertionError("a coefficient reads no field")
