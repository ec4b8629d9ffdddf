"""Scatter accumulators: the sums of outputs whose planes have not all been seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stencil_dsl.schedule.builder import Value
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.linear import Coefficient
from stencil_dsl.schedule.plan import Group, Sum

if TYPE_CHECKING:
    from stencil_dsl.schedule.streaming_body import Body

LOOP_FROM = 2
"""Planes from which on the head is worth a loop of its own."""

SHARE_FROM = 3
"""Groups from which on it pays to form the contribution of +dx and -dx once and add it twice."""


@dataclass
class _Plane:
    """One plane of one sum for one row and lane.

    Attributes:
        slots: accumulators of the outputs that are open.
        wanted: offset along the streamed axis to the slot of the output it belongs to.
        mirrored: offsets dx > 0 whose contribution equals that of -dx, up to the sign given; it is formed once.
        shared: what has been formed of it.
    """

    total: Sum
    shift: int
    key: tuple[int, int, int]
    slots: list[Value | None]
    wanted: dict[int, int]
    mirrored: dict[int, float] = field(default_factory=dict)
    shared: dict[int, Value] = field(default_factory=dict)


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
        """Take the planes before the first complete output: they count only for outputs inside the chunk.

        Planes that come before the chunk itself are few loads each and are taken in straight-line code. From the
        chunk's first plane on all neighbours are read, as in the main loop, so a loop takes them.
        """
        farthest = max((s.hi for s in self.body.plan.sums), default=0)
        looped = [
            i
            for i, s in enumerate(self.body.plan.sums)
            if s.hi == farthest >= LOOP_FROM
            and s.open_outputs
            and self.body.schedule.head_loop
            and self.body.g.planes(self.body.g.chunks - 1) >= farthest
        ]
        for i, total in enumerate(self.body.plan.sums):
            end, skipped = (0, total.hi) if i in looped else (total.hi, 0)
            for m in range(total.lo, end):
                wanted = {dx: m - dx + skipped for dx in range(total.lo, m + 1)}
                self._take([_Plane(total, m, key, self.open[key], wanted) for key in self._keys(i)], x0)
        if looped:
            self._head_loop(looped, x0, farthest)

    def _head_loop(self, sums: list[int], x0: Value, planes: int) -> None:
        """Planes x0 .. x0 + planes: like the main loop, but what completes lies before the chunk and is dropped."""
        b = self.b
        keys = [key for i in sums for key in self._keys(i)]
        for key in keys:
            self.open[key] = [b.constant(0.0) if v is None else v for v in self.open[key]]
        width = [len(self.open[key]) for key in keys]
        start = [v for key in keys for v in self.open[key]]
        for value in start:
            b.hint(value, "head")
        with b.loop(x0, b.iop("add", x0, planes), 1, start, "plane") as (plane, values, ends, results):
            self._refill(keys, width, values)
            taken = []
            for i in sums:
                total = self.body.plan.sums[i]
                wanted = {total.hi - k: k for k in range(1, total.open_outputs + 1)}
                for key in self._keys(i):
                    self.open[key].append(None)
                    taken.append(_Plane(total, 0, key, self.open[key], wanted))
            self._take(taken, plane)
            for each in taken:
                each.slots.pop(0)
            ends += [v for key in keys for v in self.open[key]]
        self._refill(keys, width, results)

    def _refill(self, keys: list[tuple[int, int, int]], width: list[int], values: list[Value]) -> None:
        for key, n in zip(keys, width, strict=True):
            self.open[key], values = list(values[:n]), values[n:]

    def advance(self, x: Value, t: int, remaining: int | None) -> None:
        """Take plane x + t + hi of every sum; `remaining` outputs follow this one in the chunk (None: enough)."""
        planes = []
        for i, total in enumerate(self.body.plan.sums):
            last = total.open_outputs if remaining is None else min(total.open_outputs, remaining)
            wanted = {total.hi - k: k for k in range(last + 1)}
            for key in self._keys(i):
                self.open[key].append(None)
                planes.append(_Plane(total, t + total.hi, key, self.open[key], wanted))
        self._take(planes, x)
        for plane in planes:
            value = plane.slots.pop(0)
            assert value is not None
            self.done[plane.key] = value

    def _keys(self, i: int) -> list[tuple[int, int, int]]:
        return [(i, j, lane) for j, lane in self.body.rows_lanes]

    def _take(self, planes: list[_Plane], x: Value) -> None:
        """Add what planes contribute to the accumulators of their open outputs.

        All sums and rows of a block advance together, row by row of what is loaded: a row is used by all outputs that
        read it and is then done with, so that few rows are in registers at a time. Which rows come first is up to the
        schedule: the assembler keeps to it where registers are short.
        """
        schedule, g = self.body.schedule, self.body.g
        work: list[tuple[int, int, _Plane, Group, int | None]] = []
        for number, plane in enumerate(planes):
            plane.mirrored = self._mirrored(plane.total, plane.wanted)
            first = plane.key[1] * g.ty
            for group in plane.total.groups:
                places = [dx for dx, _ in group.vector if dx in plane.wanted]
                rows = sorted(_by_row(group))
                single = len(places) == 1 and abs(places[0]) not in plane.mirrored
                if single and schedule.sums != "groups":
                    work += [(first + row, number, plane, group, row) for row in rows]
                elif places:
                    work.append((first + rows[-1], number, plane, group, None))
        middle = (g.rows - 1) * g.ty
        # Rows that two blocks compute have to come out the same, wherever in its block a row lies.
        outward = 0 if g.tiles_y % g.rows else {"inward": -1, "outward": 1}.get(schedule.sums, 0)
        for _, _, plane, group, row in sorted(work, key=lambda w: (outward * abs(2 * w[0] - middle), *w[:2])):
            self._add(plane, group, row, x)
        for plane in planes:
            for dx, sign in plane.mirrored.items():
                shared, slots = plane.shared[dx], plane.slots
                slots[plane.wanted[dx]] = self.b.add(slots[plane.wanted[dx]], shared)
                slots[plane.wanted[-dx]] = self.b.scaled_add(slots[plane.wanted[-dx]], sign, shared)

    def _add(self, plane: _Plane, group: Group, row: int | None, x: Value) -> None:
        """Add a group, or one row of it, to all outputs it belongs to."""
        _, j, lane = plane.key
        rows = _by_row(group)
        wanted = sorted(rows) if row is None else [row]
        sign, value = self._signed_sum([self._row(rows[r], j, lane, x, plane.shift) for r in wanted])
        for dx, c in group.vector:
            if dx in plane.mirrored:
                plane.shared[dx] = self._accumulate(plane.shared.get(dx), c, sign, value)
            elif -dx not in plane.mirrored and dx in plane.wanted:
                k = plane.wanted[dx]
                plane.slots[k] = self._accumulate(plane.slots[k], c, sign, value)

    @staticmethod
    def _mirrored(total: Sum, wanted: dict[int, int]) -> dict[int, float]:
        """Offsets dx whose contribution is that of -dx, up to a common sign, in enough groups to share it."""
        found = {}
        for dx in [d for d in wanted if d > 0 and -d in wanted]:
            pairs = []
            for group in total.groups:
                vector = dict(group.vector)
                if dx in vector or -dx in vector:
                    pairs.append((vector.get(dx), vector.get(-dx)))
            for sign in (1.0, -1.0):
                same = all(a is not None and b is not None and a.scaled(sign).key == b.key for a, b in pairs)
                if same and len(pairs) >= SHARE_FROM:
                    found[dx] = sign
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


def _by_row(group: Group) -> dict[int, list[tuple[int, Node]]]:
    """The members of a group by the lowest row that each reads: rows are shared by several outputs of a block."""
    rows: dict[int, list[tuple[int, Node]]] = {}
    for sign, atom in group.members:
        rows.setdefault(_anchor(atom), []).append((sign, atom))
    return rows


def _anchor(atom: Node) -> int:
    """The lowest row an atom reads, along y."""
    return min(a.offset[1] for a in accesses([atom])) if len(_any_offset(atom)) == 3 else 0


def _any_offset(atom: Node) -> tuple[int, ...]:
    return accesses([atom])[0].offset


def _no_access(node: Node) -> Value:
    raise AssertionError("a coefficient reads no field")
