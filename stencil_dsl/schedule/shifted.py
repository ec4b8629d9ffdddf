"""The shifted schedule: every block computes one tile and loads one tile for each distinct access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from stencil_dsl.dialects import tile
from stencil_dsl.dialects.hints import hint_of
from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.builder import Numbering, TileBuilder, Value
from stencil_dsl.schedule.counting import CountingBuilder, Counts
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.layout import Layout, round_up
from stencil_dsl.schedule.problem import Lowered, Param, Problem, check_grid, grid_axes
from stencil_dsl.schedule.rings import check_rings
from stencil_dsl.schedule.schedule import AXES, Schedule


def covering_extents(layout: Layout, cover: tuple[int, ...], reach: tuple[int, ...]) -> tuple[int, ...]:
    """Extents an array must be given so that tiles covering the interior, moved by `reach`, stay inside it."""
    return tuple(max(e, o + c + r) for e, o, c, r in zip(layout.extents, layout.origin, cover, reach, strict=True))


def required_elements(layout: Layout, cover: tuple[int, ...], reach: tuple[int, ...]) -> int:
    """Elements that must be readable from the array's first one on, for loads of whole tiles."""
    return box_elements(layout, covering_extents(layout, cover, reach))


def box_elements(layout: Layout, extents: tuple[int, ...]) -> int:
    """Elements from the first to the last of an array with other extents: what a kernel is told must exist."""
    return 1 + sum((e - 1) * stride for e, stride in zip(extents, layout.strides, strict=True))


def reach_of(nodes: list[Node], field: int, ndim: int) -> tuple[int, ...]:
    """How far behind the cell the accesses of a field go, per axis."""
    mine = [a.offset for a in nodes if a.field == field]
    return tuple(max((o[axis] for o in mine), default=0) for axis in range(ndim))


def uncheckable(problem: Problem, tile_shape: tuple[int, ...]) -> str | None:
    """Why whole tiles cannot be loaded without checks, or None where they can."""
    if problem.shape is None:
        # The caller has compared run-time extents with what can be read, and says so in the capacity.
        return None if all(p.capacity for p in problem.inputs) else "some array has no padding behind its rows"
    return uncovered(problem.fields, problem.graph.outputs, problem.shape, problem.inputs, tile_shape)


def uncovered(
    names: Sequence[str],
    outputs: Sequence[Node],
    shape: tuple[int, ...],
    layouts: Sequence[Layout],
    tile_shape: tuple[int, ...],
) -> str | None:
    """Which field has too little memory behind it for tiles that cover an interior, or None."""
    cover = tuple(round_up(n, t) for n, t in zip(shape, tile_shape, strict=True))
    nodes = accesses(outputs)
    for index, (name, layout) in enumerate(zip(names, layouts, strict=True)):
        need = required_elements(layout, cover, reach_of(nodes, index, len(shape)))
        if need > layout.capacity:
            return f"field {name!r} has {layout.capacity} readable elements, tiles of {tile_shape} read up to {need}"
    return None


def kernel_block(problem: Problem, params: list[Param], pair: int) -> Block:
    """The kernel's entry block with one argument a parameter."""
    types = []
    for p in params:
        if p.kind == "scalar":
            types.append(problem.element)
        else:
            paired = pair > 1 and p.kind == "field" and not p.single
            types.append(tile.ArrayType(problem.ndim + paired, problem.element))
    block = Block(arg_types=types)
    for arg, p in zip(block.args, params, strict=True):
        arg.name_hint = hint_of(p.name)
    return block


def wrap_module(problem: Problem, body: Block, schedule: Schedule, params: list[Param], grid) -> ModuleOp:
    """The kernel and the host function that launches it."""
    types = [a.type for a in body.args]
    kernel = tile.KernelOp(problem.name, Region(body), schedule.occupancy, schedule.warps)
    host = Block(arg_types=types)
    for arg, p in zip(host.args, params, strict=True):
        arg.name_hint = hint_of(p.name)
    host.add_ops([tile.LaunchOp(problem.name, list(grid or ()), list(host.args)), func.ReturnOp()])
    return ModuleOp([kernel, func.FuncOp(f"launch_{problem.name}", (types, []), Region(host))])


def output_names(problem: Problem) -> list[str]:
    return ["out"] if len(problem.outputs) == 1 else [f"{name}_out" for name in problem.outputs]


@dataclass(frozen=True)
class Outline:
    """Everything about a lowering but its operations.

    Attributes:
        checked: loads test every element against their view.
    """

    params: tuple[Param, ...]
    grid: tuple[int, ...] | None
    axes: tuple[int, ...]
    checked: bool


def outline(problem: Problem, schedule: Schedule) -> Outline:
    """Parameters and launch geometry.

    Raises:
        ScheduleError: where the schedule asks for unchecked loads that memory does not allow.
    """
    schedule.check(problem.ndim, problem.itemsize)
    shape, tiles, ndim = problem.shape, schedule.tile, problem.ndim
    why = uncheckable(problem, tiles)
    if schedule.loads == "unchecked" and why:
        raise ScheduleError(f"unchecked loads are not possible: {why}; use padded arrays or loads='auto'")
    checked = schedule.loads == "checked" or (schedule.loads == "auto" and why is not None)
    nodes = accesses(problem.graph.outputs)
    check_rings(problem, schedule, nodes)
    axes = grid_axes(ndim, schedule.block_order)
    fields = [Param("field", i, n) for i, n in enumerate(problem.fields)]
    rest = [Param("output", i, n, shape) for i, n in enumerate(output_names(problem))]
    rest += [Param("scalar", i, n) for i, n in enumerate(problem.scalars)]
    if shape is None:
        return Outline((*fields, *rest), None, axes, checked)
    counts = [-(-n // t) for n, t in zip(shape, tiles, strict=True)]
    cover = tuple(shape) if checked else tuple(c * t for c, t in zip(counts, tiles, strict=True))
    reaches = [reach_of(nodes, i, ndim) for i in range(len(fields))]
    layouts = list(zip(problem.inputs, reaches, strict=True))
    known = [replace(p, shape=covering_extents(x, cover, r)) for p, (x, r) in zip(fields, layouts, strict=True)]
    return Outline((*known, *rest), check_grid(counts, axes), axes, checked)


def lower(problem: Problem, schedule: Schedule) -> Lowered:
    """Lower to level 3; raises like `outline`."""
    o = outline(problem, schedule)
    block = kernel_block(problem, list(o.params), 1)
    builder = TileBuilder(block, problem.element, schedule.tile, schedule.order == "fast")
    _Body(problem, schedule, builder, o).build()
    module = wrap_module(problem, block, schedule, list(o.params), o.grid)
    return Lowered(module, problem.name, o.params, o.grid, o.axes, schedule.tile, checked=o.checked)


def count(problem: Problem, schedule: Schedule) -> Counts:
    """What `lower` would emit; raises like `outline`."""
    o = outline(problem, schedule)
    builder = CountingBuilder(len(o.params), schedule.tile, schedule.order == "fast")
    _Body(problem, schedule, builder, o).build()
    return builder.counts()


class _Body:
    def __init__(self, problem: Problem, schedule: Schedule, builder: Numbering, o: Outline) -> None:
        self.problem, self.schedule, self.checked, self.b = problem, schedule, o.checked, builder
        n = len(problem.fields)
        self.fields = builder.arguments[:n]
        self.outs = builder.arguments[n : n + len(problem.outputs)]
        self.scalars = builder.arguments[n + len(problem.outputs) :]
        names = AXES[problem.ndim]
        ids = {axis: builder.block_id(g, f"b{names[axis]}") for g, axis in enumerate(o.axes)}
        self.index = [ids[axis] for axis in range(problem.ndim)]
        self.cover = [self._cover(axis, names[axis]) for axis in range(problem.ndim)]

    def _cover(self, axis: int, name: str) -> int | Value:
        """Extent of a view: the interior, rounded up to whole tiles where loads are not checked."""
        t = self.schedule.tile[axis]
        if self.problem.shape is not None:
            n = self.problem.shape[axis]
            return n if self.checked else round_up(n, t)
        extent = self.b.extent(self.outs[0], axis, f"n{name}")
        if self.checked or t == 1:
            return extent
        return self.b.iop("mul", self.b.iop("ceildiv", extent, t), t, f"cover_{name}")

    def _around(self, node: Node) -> Value:
        """A tile of neighbours along a periodic row, and at any offset along the other axes."""
        value, shape, tiles = self.fields[node.field], self.problem.shape, self.schedule.tile
        origin, ndim = self.problem.inputs[node.field].origin, self.problem.ndim
        assert shape is not None
        index = []
        for axis in range(ndim):
            name = f"cells_{AXES[ndim][axis]}"
            last, cells = axis == ndim - 1, self.index[axis]
            if tiles[axis] > 1 or last:
                cells = self.b.cells(cells, axis, ndim, tiles[axis], name)
            if last:
                cells = self.b.wrap(cells, node.offset[-1], shape[-1], origin[-1], "around")
            else:
                value = self.b.slice(value, axis, origin[axis] + node.offset[axis], self.cover[axis])
            index.append(cells)
        return self.b.gather(value, index, tiles, self.checked)

    def load(self, node: Node) -> Value:
        """A tile of the window that holds, for every cell of the interior, its neighbour at an offset."""
        if node.offset[-1] and self.problem.wraps(node.field):
            return self._around(node)
        value = self.fields[node.field]
        origin = self.problem.inputs[node.field].origin
        sign = "".join(f"_{'m' if o < 0 else 'p'}{abs(o)}" if o else "_0" for o in node.offset)
        for axis in range(self.problem.ndim):
            start, extent = origin[axis] + node.offset[axis], self.cover[axis]
            name = f"{self.problem.fields[node.field]}{sign}" if axis == self.problem.ndim - 1 else None
            value = self.b.slice(value, axis, start, extent, name)
        return self.b.load(value, self.index, self.schedule.tile, self.checked, self.schedule.latency)

    def build(self) -> None:
        shape = self.problem.shape
        exact = shape is not None and all(n % t == 0 for n, t in zip(shape, self.schedule.tile, strict=True))
        waiting = []
        for out, node in zip(self.outs, self.problem.graph.outputs, strict=True):
            waiting.append((self.b.expression(node, self.load, self.scalars), out))
            # In place, a later output may read what this one overwrites.
            if self.problem.inplace and len(waiting) < len(self.outs):
                continue
            for value, target in waiting:
                self.b.store(value, target, self.index, checked=not exact or self.schedule.loads == "checked")
            waiting.clear()
