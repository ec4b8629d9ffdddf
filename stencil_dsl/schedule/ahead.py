"""Loads one plane ahead: the block's own rows of the next plane are requested before this plane is worked on.

A block has few bytes on their way from device memory at a time, and rows of neighbouring blocks come from the caches;
what covers the latency is asking early for the rows that only this block brings in. They are carried as raw loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.schedule.builder import Value
from stencil_dsl.schedule.expr import Node, accesses

if TYPE_CHECKING:
    from stencil_dsl.schedule.streaming_body import Body


class Ahead:
    """The rows that are loaded ahead, and those that have arrived.

    Attributes:
        keys: (field, row, plane offset of its first use in a trip).
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.keys: list[tuple[int, int, int]] = []
        self.here: dict[tuple[int, int, int], Value] = {}
        self.x: Value | None = None
        if not body.schedule.ahead or not body.g.tail or not body.g.trips:
            # Without a tail the last trip would ask for a plane that nobody has, and without a trip even the first.
            return
        leads: dict[tuple[int, int], set[int]] = {}
        for total in body.plan.sums:
            for group in total.groups:
                for _, atom in group.members:
                    for node in accesses([atom]):
                        self._note(node, total.hi, leads)
        for node in accesses(body.plan.late_nodes()):
            self._note(node, node.offset[0], leads)
        # A plane that a field has read before is near already; only its foremost one comes from afar.
        foremost = {field: max(max(p) for (f, _), p in leads.items() if f == field) for field, _ in leads}
        self.keys = [(f, row, foremost[f]) for (f, row), planes in sorted(leads.items()) if foremost[f] in planes]

    def _note(self, node: Node, plane: int, leads: dict[tuple[int, int], set[int]]) -> None:
        """Note which of the block's own rows an access reads in a plane, without a shift along z."""
        g = self.body.g
        for j, lane in self.body.rows_lanes:
            row = self.body.row_of(node, j)
            own = self.body.planar or (row % g.ty == 0 and 0 <= row < g.rows * g.ty)
            if own and (lane + node.offset[-1]) // g.pair == 0:
                leads.setdefault((node.field, row), set()).add(plane)

    def first(self, x0: Value) -> list[Value]:
        """What the first trip starts with."""
        return [self.body.load(field, x0, lead, row, 0) for field, row, lead in self.keys]

    def start(self, x: Value, values: list[Value], trips: int) -> None:
        """Begin a trip of the loop: ask for the planes after it."""
        self.x = x
        self.here = {key: value for key, value in zip(self.keys, values, strict=True)}
        for field, row, lead in self.keys:
            for t in range(1, trips + 1):
                self.here[field, row, lead + t] = self.body.load_raw(field, x, lead + t, row, 0)

    def last(self, x: Value, values: list[Value]) -> None:
        """Behind the loop only what it has left is here."""
        self.start(x, values, 0)

    def ends(self, trips: int) -> list[Value]:
        return [self.here[field, row, lead + trips] for field, row, lead in self.keys]

    def find(self, field: int, x: Value, shift: int, row: int, z: int) -> Value | None:
        return self.here.get((field, row, shift)) if z == 0 and x is self.x else None
