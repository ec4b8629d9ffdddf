"""Scatter accumulators: the sums of outputs whose planes have not all been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.schedule.builder import Value
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.linear import Coefficient
from stencil_dsl.schedule.plan import Group, Sum

if TYPE_CHECKING:
    from stencil_dsl.schedule.streaming_body import Body

SHARE_FROM = 3
"""Groups from which on it pays to form the contribution of +dx and -dx once and add it twice."""


class Scatter:
    """State of all sums of a kernel: accumulator k of a sum belongs to the k-th output that is still open."""

    def __init__(self, body: Body) -> None:
        self.body, self.b = body, body.b
        self.open: dict[tuple[int, int, int], list[Value | None]] = {}
        self.done: dict[tuple[int, int, int], Value] = {}
        for i, total in enumerate(body.plan.sums):
            for j, lane in body.rows_lanes:
                self.open[i, j, lane] = [None] * total.open_outputs

    # -- carried through the loop

    def _slots(self) -> list[tuple[tuple[int, int, int], int]]:
        return [(key, k) for key, slots in self.open.items() for k in range(len(slots))]

    def carried(self) -> list[Value]:
        values = []
        for key, k in self._slots():
            value = self.open[key][k]
            assert value is not None
            self.b.hint(value, f"acc{k}")
            values.append(value)
        return values

    def adopt(self, values: list[Value]) -> list[Value]:
        """Continue from these accumulators; returns the values that are not accumulators."""
        slots = self._slots()
        for (key, k), value in zip(slots, values, strict=False):
            self.open[key][k] = value
        return values[len(slots) :]

    def assume_open(self) -> None:
        """Stand-ins for the head's accumulators, where only the steady state matters."""
        for slots in self.open.values():
            slots[:] = [self.b.token() for _ in slots]  # type: ignore[attr-defined]

    # -- planes

    def head(self, x0: Value) -> None:
        """Take the planes before the first complete output: they count only for outputs inside the chunk."""
        for i, total in enumerate(self.body.plan.sums):
            for m in range(total.lo, total.hi):
                for j, lane in self.body.rows_lanes:
                    slots = self.open[i, j, lane]
                    wanted = {dx: m - dx for dx in range(total.lo, m + 1)}
                    self._add(total, j, lane, x0, m, wanted, slots)

    def advance(self, x: Value, t: int, remaining: int | None) -> None:
        """Take plane x + t + hi of every sum; `remaining` outputs follow this one in the chunk (None: enough)."""
        for i, total in enumerate(self.body.plan.sums):
            for j, lane in self.body.rows_lanes:
                slots: list[Value | None] = [*self.open[i, j, lane], None]
                last = total.open_outputs if remaining is None else min(total.open_outputs, remaining)
                wanted = {total.hi - k: k for k in range(last + 1)}
                self._add(total, j, lane, x, t + total.hi, wanted, slots)
                value = slots.pop(0)
                assert value is not None
                self.done[i, j, lane] = value
                self.open[i, j, lane] = slots

    def _add(
        self,
        total: Sum,
        j: int,
        lane: int,
        x: Value,
        shift: int,
        wanted: dict[int, int],
        slots: list[Value | None],
    ) -> None:
        """Add what plane x + shift contributes at each wanted offset to the accumulator of its slot."""
        b = self.b
        for mirrored in self._mirrored(total, wanted):
            dx, sign = mirrored
            shared: Value | None = None
            for group in total.groups:
                for c in (c for d, c in group.vector if d == dx):
                    shared = self._accumulate(shared, c, *self._group(group, j, lane, x, shift))
            assert shared is not None
            slots[wanted[dx]] = b.add(slots[wanted[dx]], shared)
            slots[wanted[-dx]] = b.scaled_add(slots[wanted[-dx]], sign, shared)
            wanted = {d: k for d, k in wanted.items() if abs(d) != dx}
        for group in total.groups:
            for dx, c in group.vector:
                if dx in wanted:
                    k = wanted[dx]
                    slots[k] = self._accumulate(slots[k], c, *self._group(group, j, lane, x, shift))

    @staticmethod
    def _mirrored(total: Sum, wanted: dict[int, int]) -> list[tuple[int, float]]:
        """Offsets dx whose contribution is that of -dx, up to a common sign, in enough groups to share it."""
        found = []
        for dx in [d for d in wanted if d > 0 and -d in wanted]:
            pairs = []
            for group in total.groups:
                vector = dict(group.vector)
                if dx in vector or -dx in vector:
                    pairs.append((vector.get(dx), vector.get(-dx)))
            for sign in (1.0, -1.0):
                same = all(a is not None and b is not None and a.scaled(sign).key == b.key for a, b in pairs)
                if same and len(pairs) >= SHARE_FROM:
                    found.append((dx, sign))
                    break
        return found

    def _accumulate(self, acc: Value | None, c: Coefficient, sign: int, value: Value) -> Value:
        if c.scalar is None:
            return self.b.scaled_add(acc, sign * c.number, value)
        scalar = self.b.expression(c.scalar, _no_access, self.body.scalars)
        if abs(c.number) != 1.0:
            scalar = self.b.map("mul", self.b.constant(abs(c.number)), scalar)
        product = self.b.map("mul", scalar, value)
        return self.b.scaled_add(acc, 1.0 if sign * c.number > 0 else -1.0, product)

    # -- sums within a plane

    def _group(self, group: Group, j: int, lane: int, x: Value, shift: int) -> tuple[int, Value]:
        """Sign and value of a group's sum: row by row, so that rows shared by several outputs are summed once."""
        rows: dict[int, list[tuple[int, Node]]] = {}
        for sign, atom in group.members:
            rows.setdefault(_anchor(atom), []).append((sign, atom))
        parts = [self._row(rows[anchor], j, lane, x, shift) for anchor in sorted(rows)]
        return self._signed_sum(parts)

    def _row(self, members: list[tuple[int, Node]], j: int, lane: int, x: Value, shift: int) -> tuple[int, Value]:
        """Mirror images along z first: other coefficients want the same pair sums."""
        by_z: dict[int, list[tuple[int, Node]]] = {}
        for sign, atom in members:
            by_z.setdefault(abs(atom.offset[-1]) if atom.op == "access" else -1, []).append((sign, atom))
        parts = []
        for _, same in sorted(by_z.items(), key=lambda item: item[0], reverse=True):
            same = sorted(same, key=lambda m: m[1].offset)
            parts.append(self._signed_sum([(s, self._atom(a, j, lane, x, shift)) for s, a in same]))
        return self._signed_sum(parts)

    def _atom(self, atom: Node, j: int, lane: int, x: Value, shift: int) -> Value:
        return self.b.expression(
            atom,
            lambda n: self.body.value(n, x, shift, j, lane),
            self.body.scalars,
            ("atom", x, shift, j, lane),
        )

    def _signed_sum(self, parts: list[tuple[int, Value]]) -> tuple[int, Value]:
        first, total = parts[0]
        for sign, value in parts[1:]:
            total = self.b.map("add" if sign == first else "sub", total, value)
        return first, total


def _anchor(atom: Node) -> int:
    """The lowest row an atom reads, along y."""
    return min(a.offset[1] for a in accesses([atom])) if len(_any_offset(atom)) == 3 else 0


def _any_offset(atom: Node) -> tuple[int, ...]:
    return accesses([atom])[0].offset


def _no_access(node: Node) -> Value:
    raise AssertionError("a coefficient reads no field")
