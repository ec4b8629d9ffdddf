"""The kernel body of the streaming schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stencil_dsl.schedule.ahead import Ahead
from stencil_dsl.schedule.builder import Numbering, Value
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.plan import Final, Plan, fold
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.scatter import Scatter
from stencil_dsl.schedule.schedule import AXES, Schedule


@dataclass(frozen=True)
class Geometry:
    """Extents, tiles and trips of one streaming kernel, in cells unless said otherwise.

    Attributes:
        tiles_y, tiles_z: tiles that cover the interior.
        chunks: blocks along the streamed axis; planes are dealt out evenly, `unroll` at a time.
        tail: planes at the end of a chunk that are not taken in the loop.
        unroll: planes a trip.
    """

    nx: int
    ny: int
    nz: int
    ty: int
    tz: int
    pair: int
    rows: int
    tiles_y: int
    tiles_z: int
    chunks: int
    tail: int
    unroll: int

    @property
    def trips(self) -> bool:
        """Whether any chunk has planes beside its tail."""
        return self.planes(0) > self.tail

    def planes(self, chunk: int) -> int:
        """Length of a chunk; the first ones are the longest."""
        base, rest = divmod(self.nx // self.unroll, self.chunks)
        return (base + (chunk < rest)) * self.unroll


Queue = dict[tuple[int, int, int], dict[int, Value]]
"""(field, row, z) to plane offset to raw tile."""


def chunk_of(b: Numbering, g: Geometry, block: Value) -> tuple[Value, Value]:
    """First plane of a block's chunk and the first behind it."""
    base, rest = divmod(g.nx // g.unroll, g.chunks)
    if not rest:
        first = b.iop("mul", block, base * g.unroll, "x0")
        return first, b.iop("add", first, base * g.unroll, "x1")

    def dealt(chunks: Value, name: str) -> Value:
        """Planes of so many chunks, of which the first `rest` have a share more than the others."""
        shares = b.iop("add", b.iop("mul", chunks, base), b.iop("min", chunks, rest), None if g.unroll > 1 else name)
        return b.iop("mul", shares, g.unroll, name) if g.unroll > 1 else shares

    return dealt(block, "x0"), dealt(b.iop("add", block, 1), "x1")


class Body:
    """Builds the operations of one kernel.

    A place is (x, shift, row, lane): the tile of a row at plane x + shift, where x is an index value and shift is
    folded into a view. Lanes are the elements of a pair; each is a tile of its own.
    """

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        plan: Plan,
        g: Geometry,
        builder: Numbering,
        axes: Sequence[int],
        rings: Sequence[int] = (),
    ) -> None:
        self.problem, self.schedule, self.plan, self.g, self.b = problem, schedule, plan, g, builder
        self.planar = problem.ndim == 2
        n_fields, n_outs = len(problem.fields), len(problem.outputs) * g.rows * g.unroll
        arguments = list(builder.arguments)
        self.fields, arguments = arguments[:n_fields], arguments[n_fields:]
        self.singles, arguments = dict(zip(rings, arguments, strict=False)), arguments[len(rings) :]
        self.outs, self.scalars = arguments[:n_outs], arguments[n_outs:]
        self.rows_lanes = [(j, lane) for j in range(g.rows) for lane in range(g.pair)]
        self._block_indices(axes)
        self.scatter = Scatter(self)
        self.queued = self._queued() if schedule.carry == "queue" else {}
        self.ahead = Ahead(self)

    def _block_indices(self, axes: Sequence[int]) -> None:
        names = AXES[self.problem.ndim]
        ids = {axis: self.b.block_id(i, "b" + names[axis]) for i, axis in enumerate(axes)}
        b, g = self.b, self.g
        self.bz = ids[self.problem.ndim - 1]
        if not self.planar:
            first = b.iop("mul", ids[1], g.rows) if g.rows > 1 else ids[1]
            # The last block moves back instead of overhanging: it computes some rows a second time.
            spill = g.tiles_y % g.rows
            self.y = b.iop("min", first, g.tiles_y - g.rows, "y") if spill else first
        self.x0, self.x1 = chunk_of(b, g, ids[0])

    # -- memory

    def _rows(self, field: int, shift: int, row: int) -> list[tuple[int, int, int]]:
        """Windows, (axis, start, extent), of a field moved by planes and cells along y."""
        g, layout = self.g, self.problem.inputs[field]
        # A window for a later plane of a trip ends earlier: x never gets as far as the chunk's last plane there.
        first = layout.origin[0] + shift
        windows = [(0, first, min(g.nx, layout.extents[0] - first))]
        if not self.planar:
            # Blocks start at tile 0 .. tiles_y - rows; what a later row reads is in `row`.
            windows.append((1, layout.origin[1] + row, (g.tiles_y - g.rows + 1) * g.ty))
        return windows

    def _view(self, field: int, shift: int, row: int, z: int) -> Value:
        """Window of a field moved by planes, cells along y and (pairs of) cells along z."""
        g, origin = self.g, self.problem.inputs[field].origin
        windows = self._rows(field, shift, row)
        windows.append((self.problem.ndim - 1, origin[-1] // g.pair + z, g.tiles_z * g.tz))
        value = self.fields[field]
        name = self.problem.fields[field]
        for axis, start, extent in windows:
            offset = (shift, row, z)[axis if not self.planar or axis == 0 else 2]
            name += f"_{'m' if offset < 0 else 'p'}{abs(offset)}" if offset else "_0"
            value = self.b.slice(value, axis, start, extent, name)
        return value

    def load(self, field: int, x: Value, shift: int, row: int, z: int) -> Value:
        """One raw tile: a row of cells, or of pairs."""
        early = self.ahead.find(field, x, shift, row, z)
        return self.load_raw(field, x, shift, row, z) if early is None else early

    def load_raw(self, field: int, x: Value, shift: int, row: int, z: int) -> Value:
        """The same, certainly loaded here."""
        g = self.g
        if z and self.problem.wraps(field):
            return self._load_around(field, x, shift, row, z)
        view = self._view(field, shift, row, z)
        index = [x, self.bz] if self.planar else [x, self.y, self.bz]
        shape = [1, g.tz] if self.planar else [1, g.ty, g.tz]
        if g.pair > 1:
            index.append(self.b.index(0))
            shape.append(g.pair)
        return self.b.load(view, index, shape, False, self.schedule.latency)

    def _load_around(self, field: int, x: Value, shift: int, row: int, z: int) -> Value:
        """The same of periodic rows, beyond whose ends is their other one."""
        b, g, p = self.b, self.g, self.problem
        assert p.shape is not None
        view, width, last = self.singles.get(field, self.fields[field]), g.tz * g.pair, p.ndim - 1
        name = f"{p.fields[field]}_cells"
        for axis, start, extent in self._rows(field, shift, row):
            offset = (shift, row)[axis]
            name += f"_{'m' if offset < 0 else 'p'}{abs(offset)}" if offset else "_0"
            view = b.slice(view, axis, start, extent, name)
        cells = b.cells(self.bz, last, p.ndim, width, "z")
        index = [x, b.wrap(cells, z * g.pair, p.shape[-1], p.inputs[field].origin[-1], "around")]
        if not self.planar:
            index.insert(1, self.y if g.ty == 1 else b.cells(self.y, 1, p.ndim, g.ty, "rows"))
        raw = b.gather(view, index, [1, width] if self.planar else [1, g.ty, width], False)
        if g.pair == 1 or b.counting:
            return raw
        return b.reshape(raw, [1, g.tz, g.pair] if self.planar else [1, g.ty, g.tz, g.pair])

    def row_of(self, node: Node, j: int) -> int:
        return 0 if self.planar else j * self.g.ty + node.offset[1]

    def value(self, node: Node, x: Value, shift: int, j: int, lane: int, queue: Queue | None = None) -> Value:
        """Value of an access: from a load at plane x + shift + its offset, or from the queue."""
        z, part = divmod(lane + node.offset[-1], self.g.pair)
        plane, row = shift + node.offset[0], self.row_of(node, j)
        key = (node.field, row, z)
        carried = queue is not None and key in queue
        raw = queue[key][plane] if queue is not None and carried else self.load(node.field, x, plane, row, z)
        return self.lane(raw, part)

    def lane(self, raw: Value, part: int) -> Value:
        return raw if self.g.pair == 1 else self.b.extract(raw, part)

    def store(self, lanes: list[Value], output: int, j: int, t: int, x: Value) -> None:
        g = self.g
        while len(lanes) > 1:
            lanes = [self.b.cat(a, b, self.problem.ndim) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        value = lanes[0]
        if g.pair > 1:
            width = g.tz * g.pair
            value = self.b.reshape(value, [1, width] if self.planar else [1, g.ty, width])
        copy = t if t < g.unroll else 0
        view = self.outs[(output * g.unroll + copy) * g.rows + j]
        for axis, start, extent in ((0, t, g.nx - t), (1, j * g.ty, g.ny - j * g.ty)):
            if start:
                view = self.b.slice(view, axis, start, extent, f"out{output}_at_{t}_{j}")
        overhang = g.nz % (g.tz * g.pair) or g.ny % g.ty
        index = [x, self.bz] if self.planar else [x, self.y, self.bz]
        self.b.store(value, view, index, checked=bool(overhang))

    # -- values of earlier planes

    def _queued(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """Raw tiles that finals read at several planes: (field, row, z) to first and last plane offset.

        Pairs are queued only where none changes places from trip to trip, which makes its lanes wrong: the assembler
        takes them out of it before (see `plan._runs`).
        """
        spans: dict[tuple[int, int, int], set[int]] = {}
        for node in accesses(self.plan.late_nodes()):
            for j, lane in self.rows_lanes:
                z = (lane + node.offset[-1]) // self.g.pair
                spans.setdefault((node.field, self.row_of(node, j), z), set()).add(node.offset[0])
        # The newest of a queue is loaded in the trip, or was in the one before.
        fresh = self.g.unroll - self.schedule.ahead
        return {
            key: (min(p), max(p))
            for key, p in spans.items()
            if len(p) > 1 and (self.g.pair == 1 or max(p) - min(p) <= fresh)
        }

    def _open_queue(self) -> Queue:
        return {
            (f, row, z): {p: self.load(f, self.x0, p, row, z) for p in range(lo, hi)}
            for (f, row, z), (lo, hi) in self.queued.items()
        }

    def _extend_queue(self, queue: Queue, x: Value, t: int) -> None:
        for (f, row, z), (_, hi) in self.queued.items():
            queue[f, row, z][hi + t] = self.load(f, x, hi + t, row, z)

    # -- trips

    def final(self, root: Final, x: Value, t: int, j: int, lane: int, queue: Queue) -> Value:
        """The value of an output for a row and lane of plane x + t, once its sums are complete."""

        def value(final: Final, args: list[Value]) -> Value:
            if final.kind == "sum":
                return self.scatter.done[final.index, j, lane]
            if final.kind == "node":
                assert final.node is not None
                return self.b.expression(
                    final.node,
                    lambda n: self.value(n, x, t, j, lane, queue),
                    self.scalars,
                    (x, t, j, lane),
                )
            return self.b.map({"min": "minnum", "max": "maxnum"}.get(final.kind, final.kind), *args)

        return fold(root, value)

    def trip(self, x: Value, t: int, queue: Queue, remaining: int | None) -> None:
        """Take one plane of every sum and complete the outputs of plane x + t."""
        self._extend_queue(queue, x, t)
        self.scatter.advance(x, t, remaining)
        waiting: list[tuple[list[Value], int, int]] = []
        for output, final in enumerate(self.plan.finals):
            for j in range(self.g.rows):
                lanes = [self.final(final, x, t, j, lane, queue) for lane in range(self.g.pair)]
                if self.problem.inplace:
                    # Another output may still read what this one overwrites.
                    waiting.append((lanes, output, j))
                else:
                    self.store(lanes, output, j, t, x)
        for lanes, output, j in waiting:
            self.store(lanes, output, j, t, x)

    def build(self) -> None:
        b, g = self.b, self.g
        if b.counting:
            self.scatter.assume_open()
        else:
            self.scatter.head(self.x0)
        queue = self._open_queue()
        keys = [(key, p) for key, (lo, hi) in self.queued.items() for p in range(lo, hi)]
        carried = self.scatter.carried() + [queue[key][p] for key, p in keys] + self.ahead.first(self.x0)
        stop, results = self.x0, carried
        if g.trips or b.counting:
            stop = b.iop("sub", self.x1, g.tail, "x_tail") if g.tail else self.x1
            with b.loop(self.x0, stop, g.unroll, carried, "x") as (x, values, ends, results):
                rest = self.scatter.adopt(values)
                inner = self._adopt_queue(keys, rest[: len(keys)])
                self.ahead.start(x, rest[len(keys) :], g.unroll)
                for t in range(g.unroll):
                    self.trip(x, t, inner, None)
                ends += self.scatter.carried()
                ends += [inner[key][p + g.unroll] for key, p in keys] + self.ahead.ends(g.unroll)
        if g.tail and not b.counting:
            rest = self.scatter.adopt(results)
            queue = self._adopt_queue(keys, rest[: len(keys)])
            self.ahead.last(stop, rest[len(keys) :])
            for t in range(g.tail):
                self.trip(stop, t, queue, g.tail - 1 - t)

    @staticmethod
    def _adopt_queue(keys: Iterable[tuple[tuple[int, int, int], int]], values: list[Value]) -> Queue:
        queue: Queue = {}
        for (key, p), value in zip(keys, values, strict=True):
            queue.setdefault(key, {})[p] = value
        return queue
