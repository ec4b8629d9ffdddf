"""The kernel body of the shuffle schedule: loads, one call a plane, stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from stencil_dsl.dialects import simt, tile
from stencil_dsl.schedule.builder import TileBuilder, Value
from stencil_dsl.schedule.expr import Node
from stencil_dsl.schedule.plan import Final, Plan, fold
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import AXES, Schedule
from stencil_dsl.schedule.shuffle_function import DeviceFunction, Shapes
from stencil_dsl.schedule.shuffle_sums import Sums
from stencil_dsl.schedule.streaming import plan_accesses
from stencil_dsl.schedule.streaming_body import Geometry, chunk_of
from stencil_dsl.tilelib.exports import Export


class ShuffleBody:
    """Builds the operations of one kernel, and the device functions that it calls.

    Attributes:
        b: builder of the device function that is being written (what `Sums` computes with).
        functions: descriptions and codes of the finished ones, by name.
    """

    def __init__(
        self, problem: Problem, schedule: Schedule, plan: Plan, g: Geometry, kernel: TileBuilder, axes: Sequence[int]
    ) -> None:
        self.problem, self.schedule, self.plan, self.g, self.k = problem, schedule, plan, g, kernel
        self.planar = problem.ndim == 2
        self.shapes = Shapes(g.tz, g.pair, problem.ndim)
        n_fields, n_outs = len(problem.fields), len(problem.outputs) * g.rows * g.unroll
        self.fields = kernel.arguments[:n_fields]
        self.outs = kernel.arguments[n_fields : n_fields + n_outs]
        self.kernel_scalars = kernel.arguments[n_fields + n_outs :]
        self.scalars = list(range(len(self.kernel_scalars)))
        self.rows_lanes = [(j, lane) for j in range(g.rows) for lane in range(g.pair)]
        self.functions: dict[str, tuple[Export, str]] = {}
        self.f: DeviceFunction | None = None
        self.waiting: list[tuple[int, Callable[[SSAValue], None]]] = []
        self.reach = [lane_reach(plan, field, g.pair) for field in range(n_fields)]
        self._block_indices(axes)
        self.b: Value = None
        self.sums = Sums(self)

    def _block_indices(self, axes: Sequence[int]) -> None:
        names = AXES[self.problem.ndim]
        k, g = self.k, self.g
        ids = {axis: k.block_id(i, "b" + names[axis]) for i, axis in enumerate(axes)}
        self.bz = ids[self.problem.ndim - 1]
        if not self.planar:
            first = k.iop("mul", ids[1], g.rows) if g.rows > 1 else ids[1]
            # The last block moves back instead of overhanging.
            self.y = k.iop("min", first, g.tiles_y - g.rows, "y") if g.tiles_y % g.rows else first
        self.x0, self.x1 = chunk_of(k, g, ids[0])

    # -- memory, in the kernel

    def _view(self, field: int, shift: int, row: int, last: bool) -> SSAValue:
        """Window of a field moved by planes and rows; its last axis starts at the interior, or is left whole."""
        layout, g = self.problem.inputs[field], self.g
        first = layout.origin[0] + shift
        windows = [(0, first, min(g.nx, layout.extents[0] - first))]
        if not self.planar:
            windows.append((1, layout.origin[1] + row, g.tiles_y - g.rows + 1))
        if last:
            windows.append((self.problem.ndim - 1, layout.origin[-1], g.tiles_z * g.tz * g.pair))
        value, name = self.fields[field], self.problem.fields[field]
        for axis, start, extent in windows:
            name += f"_{(shift, row)[axis]}".replace("-", "m") if axis < self.problem.ndim - 1 else ""
            value = self.k.slice(value, axis, start, extent, name if last else f"{name}_near")
        return value

    def _index(self, x: SSAValue) -> list[SSAValue]:
        return [x] if self.planar else [x, self.y]

    def row(self, field: int, x: SSAValue, shift: int, row: int) -> SSAValue:
        view = self._view(field, shift, row, True)
        return self.k.load(view, [*self._index(x), self.bz], self.shapes.row, False, self.schedule.latency)

    def halo(self, field: int, x: SSAValue, shift: int, row: int, part: int) -> SSAValue:
        """For the first and last lanes of each warp, elements of the neighbouring warps' lanes."""
        k, origin = self.k, self.problem.inputs[field].origin[-1]
        numbers = (origin, self.g.pair, part, *self.reach[field])
        lanes = k.outer(
            "halo_index", numbers, lambda: simt.HaloIndexOp(self.bz, *numbers, self.shapes.lane), f"z_near_{part}"
        )
        view = self._view(field, shift, row, False)
        index = [*self._index(x), lanes]
        return k.once("gather", (view, *index), lambda: tile.GatherOp(view, index, self.shapes.lane, False))

    def store(self, value: SSAValue, output: int, j: int, t: int, x: SSAValue) -> None:
        g = self.g
        copy = t if t < g.unroll else 0
        view = self.outs[(output * g.unroll + copy) * g.rows + j]
        for axis, start, extent in ((0, t, g.nx - t), (1, j, g.ny - j)):
            if start:
                view = self.k.slice(view, axis, start, extent, f"out{output}_at_{t}_{j}")
        checked = bool(g.nz % (g.tz * g.pair))
        self.k.store(value, view, [*self._index(x), self.bz], checked=checked)

    # -- values, in the device function

    def row_of(self, node: Node, j: int) -> int:
        return 0 if self.planar else j + node.offset[1]

    def value(self, node: Node, x: SSAValue, shift: int, j: int, lane: int) -> Value:
        """Value of an access for the lane's element number `lane`, at plane x + shift + its offset."""
        assert self.f is not None
        lanes, part = divmod(lane + node.offset[-1], self.g.pair)
        plane, row = shift + node.offset[0], self.row_of(node, j)
        own = self.f.row(self.row(node.field, x, plane, row))[part]
        if lanes == 0:
            return own
        near = self.f.lane(self.halo(node.field, x, plane, row, part), "near")
        return self.f.neighbour(own, near, lanes)

    def final(self, root: Final, x: SSAValue, t: int, j: int, lane: int) -> Value:
        """The value of an output for a row and lane of plane x + t, once its sums are complete."""

        def value(final: Final, args: list[Value]) -> Value:
            if final.kind == "sum":
                return self.sums.done[final.index, j, lane]
            if final.kind == "node":
                assert final.node is not None
                place = (x, t, j, lane)
                return self.b.expression(final.node, lambda n: self.value(n, x, t, j, lane), self.scalars, place)
            kind = {"min": "minnum", "max": "maxnum"}.get(final.kind, final.kind) if self.b.fast else final.kind
            return self.b.map(kind, *args)

        return fold(root, value)

    # -- calls

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """What is computed inside becomes one device function and one call of it."""
        fast = self.schedule.order == "fast"
        f = self.f = DeviceFunction(f"{self.problem.name}_{name}", self.problem.dtype, self.shapes, fast, self._splat)
        self.b = f.b
        before: dict[Value, SSAValue] = {}
        for slots, k in self.sums.slots():
            held: Value = slots[k]
            if held is not None:
                register = f.lane(held, "acc")
                before[register], slots[k] = held, register
        self.waiting = []
        yield
        kept = [(slots, k) for slots, k in self.sums.slots() if slots[k] is not None]
        numbers: dict[Value, int] = {}
        for slots, k in kept:
            if slots[k] not in before and slots[k] not in numbers:
                value: Value = slots[k]
                numbers[value] = f.give_lane(value)
        results = self._finish(f)
        for slots, k in kept:
            slots[k] = before[slots[k]] if slots[k] in before else results[numbers[slots[k]]]
        for number, use in self.waiting:
            use(results[number])
        self.f = self.b = None

    def _splat(self, number: int) -> SSAValue:
        scalar, kind = self.kernel_scalars[number], tile.TileType(self.shapes.one, self.problem.element)
        return self.k.outer("splat", (scalar,), lambda: tile.SplatOp(scalar, kind))

    def _finish(self, f: DeviceFunction) -> Sequence[SSAValue]:
        if not f.outputs:
            return ()
        export, text, inputs = f.finish()
        self.functions[export.name] = (export, text)
        types = [tile.TileType(p.shape, self.problem.element) for p in f.outputs]
        slots = [self._slot(kind) for kind in types]
        op = simt.CallOp(self.library, export.name, [*inputs, *slots], types)
        self.k.blocks[-1].add_op(op)
        for result, p in zip(op.res, f.outputs, strict=True):
            result.name_hint = p.name.split("_")[0]
        return op.res

    def _slot(self, kind: tile.TileType) -> SSAValue:
        """A tile for an output parameter; nobody reads it."""
        return self.k.outer("slot", kind.extents, lambda: simt.SlotOp(kind), "slot")

    @property
    def library(self) -> str:
        return f"{self.problem.name}_lanes"

    # -- planes

    def trip(self, x: SSAValue, t: int, remaining: int | None) -> None:
        """Take one plane of every sum and complete the outputs of plane x + t; inside a call."""
        sums = self.sums
        for i, total in enumerate(self.plan.sums):
            last = total.open_outputs if remaining is None else min(total.open_outputs, remaining)
            for j, lane in self.rows_lanes:
                sums.open[i, j, lane].append(None)
                wanted = {total.hi - k: k for k in range(last + 1)}
                sums.take((i, j, lane), x, t + total.hi, wanted)
                sums.done[i, j, lane] = sums.open[i, j, lane].pop(0)
        assert self.f is not None
        for output, final in enumerate(self.plan.finals):
            for j in range(self.g.rows):
                lanes = [self.final(final, x, t, j, lane) for lane in range(self.g.pair)]
                number = self.f.give_row(lanes)
                self.waiting.append((number, _bound(self.store, output, j, t, x)))

    def head(self) -> None:
        """Planes before the first complete output; each is a call of its own, with what it contributes to the chunk."""
        first = min((s.lo for s in self.plan.sums), default=0)
        last = max((s.hi for s in self.plan.sums), default=0)
        for m in range(first, last):
            with self.call(f"head{m - first}"):
                for i, total in enumerate(self.plan.sums):
                    if total.lo <= m < total.hi:
                        for j, lane in self.rows_lanes:
                            wanted = {dx: m - dx for dx in range(total.lo, m + 1)}
                            self.sums.take((i, j, lane), self.x0, m, wanted)

    def build(self) -> None:
        k, g = self.k, self.g
        self.head()
        stop = self.x0
        if g.trips:
            stop = k.iop("sub", self.x1, g.tail, "x_tail") if g.tail else self.x1
            with k.loop(self.x0, stop, g.unroll, self._carried(), "x") as (x, values, ends, results):
                self.sums.adopt(values)
                with self.call("plane"):
                    for t in range(g.unroll):
                        self.trip(x, t, None)
                ends += self._carried()
            self.sums.adopt(results)
        for t in range(g.tail):
            with self.call(f"tail{t}"):
                self.trip(stop, t, g.tail - 1 - t)

    def _carried(self) -> list[SSAValue]:
        """Accumulators; one that no plane of the head reaches starts at zero."""
        zero = FloatAttr(0.0, self.problem.element)
        kind = tile.TileType(self.shapes.lane, self.problem.element)
        values = []
        for slots, k in self.sums.slots():
            value = slots[k]
            if value is None:
                value = self.k.outer("zero", (), lambda: tile.ConstantOp(zero, kind), "zero")
            values.append(value)
        return values


def _bound(
    store: Callable[[SSAValue, int, int, int, SSAValue], None], output: int, j: int, t: int, x: SSAValue
) -> Callable[[SSAValue], None]:
    return lambda value: store(value, output, j, t, x)


def lane_reach(plan: Plan, field: int, pair: int) -> tuple[int, int]:
    """Lanes to the left and to the right whose elements of a field a lane needs."""
    shifts = [node.offset[-1] for node in plan_accesses(plan) if node.field == field]
    moved = [(lane + dz) // pair for dz in shifts for lane in (0, pair - 1)]
    return max(0, -min(moved, default=0)), max(0, max(moved, default=0))
