"""The streaming schedule: blocks march along the slowest axis and load every value of a plane once.

A block owns `rows` row tiles along y and a chunk of planes along x. For output plane x the plane x + hi of a sum is
loaded; its values are scattered into the outputs x .. x + (hi - lo) that are still open, which are carried through the
loop as accumulators, and output x is complete. Before the loop (*head*) the planes that only open outputs are taken
in straight-line code; after it (*tail*) those that only close outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.builder import TileBuilder
from stencil_dsl.schedule.counting import CountingBuilder, Counts
from stencil_dsl.schedule.expr import Node, accesses
from stencil_dsl.schedule.layout import Layout
from stencil_dsl.schedule.plan import Plan, make_plan
from stencil_dsl.schedule.problem import Lowered, Param, Problem, check_grid, grid_axes
from stencil_dsl.schedule.rings import check_rings, ring_fields
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shifted import box_elements, kernel_block, output_names, wrap_module
from stencil_dsl.schedule.streaming_body import Body, Geometry


def plan_accesses(plan: Plan) -> list[Node]:
    """Every access a plan makes, at its true offset along the streamed axis."""
    graph = plan.graph
    nodes = list(plan.late_nodes())
    for total in plan.sums:
        for group in total.groups:
            for dx, _ in group.vector:
                shift = (dx,) + (0,) * (graph.ndim - 1)
                nodes += [graph.shift(atom, shift) for _, atom in group.members]
    return accesses(nodes)


def lead_of(plan: Plan) -> int:
    """Planes that the foremost sum reads ahead of the output it completes."""
    return max((s.hi for s in plan.sums if s.hi > 0), default=0)


def roomy(problem: Problem, plan: Plan) -> bool:
    """Whether every field has the planes that any sum reads; a field with a narrower halo ends before them."""
    return all(p.halo[0][1] >= lead_of(plan) for p in problem.inputs)


def geometry(problem: Problem, schedule: Schedule, plan: Plan) -> Geometry:
    """Tiles, chunks and trips for a shape, with what does not fit it made to fit.

    Raises:
        ScheduleError: where no adjustment helps.
    """
    assert problem.shape is not None
    shape, pair = problem.shape, schedule.pair
    tz = schedule.tile[-1]
    ty = schedule.tile[1] if problem.ndim == 3 else 1
    ny = shape[1] if problem.ndim == 3 else 1
    tiles_y = -(-ny // ty)
    rows = min(schedule.rows, tiles_y)
    if problem.inplace:
        # Clamped blocks would compute some rows twice, from values already overwritten.
        rows = gcd(rows, tiles_y)
    lead, room = lead_of(plan), roomy(problem, plan)
    tail = lead if schedule.split_tail or not room else 0
    if schedule.ahead:
        tail = max(tail, 1)
    nx = shape[0]
    chunks = max(1, min(-(-nx // schedule.chunk), nx))
    if not room:
        tail = min(lead + schedule.ahead, nx)
        chunks = min(chunks, nx // tail)
    unroll = schedule.unroll
    shortest = nx // unroll // chunks * unroll
    if nx % unroll or shortest == 0 or (shortest < tail and not room):
        unroll, shortest = 1, nx // chunks
    if shortest < tail:
        tail = 0
    # What does not fill a trip of the loop joins the tail.
    tail += (shortest - tail) % unroll if unroll > 1 else 0
    return Geometry(
        nx=nx,
        ny=ny,
        nz=shape[-1],
        ty=ty,
        tz=tz,
        pair=pair,
        rows=rows,
        tiles_y=tiles_y,
        tiles_z=-(-shape[-1] // (tz * pair)),
        chunks=chunks,
        tail=tail,
        unroll=unroll,
    )


@dataclass(frozen=True)
class _Reach:
    """How far the loads of a field go behind the interior's covering tiles."""

    extents: tuple[int, ...]
    required: int


def _reach(layout: Layout, offsets: list[tuple[int, ...]], g: Geometry, ndim: int) -> _Reach:
    cover = [g.nx, g.tiles_y * g.ty, g.tiles_z * g.tz * g.pair]
    cover = cover if ndim == 3 else [cover[0], cover[2]]
    if not offsets:
        return _Reach(layout.extents, 0)
    most = [max(o[axis] for o in offsets) for axis in range(ndim)]
    # A shifted pair is made of the two aligned pairs it lies in.
    most[-1] = -(-most[-1] // g.pair) * g.pair
    ends = [o + c + m for o, c, m in zip(layout.origin, cover, most, strict=True)]
    # Whole pairs only: an odd last element of a caller's row is behind everything that is read.
    have = [*layout.extents[:-1], layout.extents[-1] // g.pair * g.pair]
    extents = tuple(max(e, n) for e, n in zip(ends, have, strict=True))
    return _Reach(extents, box_elements(layout, extents))


def check_layouts(problem: Problem, schedule: Schedule, reaches: list[_Reach]) -> None:
    """Streaming loads are never checked, so memory has to be as they need it.

    Raises:
        ScheduleError: naming the field.
    """
    for name, layout, reach in zip(problem.fields, problem.inputs, reaches, strict=True):
        if reach.required > layout.capacity:
            raise ScheduleError(
                f"field {name!r} has {layout.capacity} readable elements, streaming reads up to {reach.required};"
                " use arrays made by stencil_dsl.empty or asarray, or kind='shifted'"
            )
        uneven = [s for s in layout.strides[:-1] if s % schedule.pair] + [layout.origin[-1] % schedule.pair]
        if layout.strides[-1] != 1 or any(uneven):
            raise ScheduleError(f"field {name!r}: rows do not start on pairs of {schedule.pair}; use pair=1")


@dataclass(frozen=True)
class Outline:
    """Everything about a lowering but its operations."""

    plan: Plan
    geometry: Geometry
    params: tuple[Param, ...]
    grid: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def rings(self) -> list[int]:
        """Fields with a parameter of single elements beside their pairs."""
        return [p.index for p in self.params if p.single]


def outline(problem: Problem, schedule: Schedule) -> Outline:
    """Plan, tiles and launch geometry.

    Raises:
        ScheduleError: without a static shape, or where memory does not allow unchecked loads.
    """
    schedule.check(problem.ndim, problem.itemsize)
    if problem.shape is None:
        raise ScheduleError("a streaming schedule needs the shape; pass shape=..., or kind='shifted'")
    if schedule.loads == "checked":
        raise ScheduleError("streaming loads are unchecked; use kind='shifted' with loads='checked'")
    plan = make_plan(problem.graph, schedule.order == "fast")
    if problem.shape[0] < lead_of(plan) and not roomy(problem, plan):
        # Fewer planes than a sum reaches ahead, in arrays that end with them: there is nothing to stream.
        plan = make_plan(problem.graph, False)
    g = geometry(problem, schedule, plan)
    nodes = plan_accesses(plan)
    offsets = [[a.offset for a in nodes if a.field == i] for i in range(len(problem.fields))]
    if schedule.kind == "shuffle":
        # Neighbours along z come from the lanes of the row itself, which is loaded whether it is read or not.
        offsets = [[*o, *(p[:-1] + (0,) for p in o)] for o in offsets]
    check_rings(problem, schedule, nodes)
    reaches = [_reach(p, o, g, problem.ndim) for p, o in zip(problem.inputs, offsets, strict=True)]
    check_layouts(problem, schedule, reaches)
    params = [Param("field", i, n, r.extents) for i, (n, r) in enumerate(zip(problem.fields, reaches, strict=True))]
    # Pairs have no element in the middle of a shift, so rings are read from a view of single elements.
    rings = ring_fields(problem, nodes) if g.pair > 1 else []
    params += [Param("field", i, f"{problem.fields[i]}_cells", reaches[i].extents, single=True) for i in rings]
    for o, name in enumerate(output_names(problem)):
        copies = [(t, j) for t in range(g.unroll) for j in range(g.rows)]
        for t, j in copies:
            suffix = "" if len(copies) == 1 else f"_{j}" if g.unroll == 1 else f"_{t}_{j}"
            params.append(Param("output", o, name + suffix, problem.shape))
    params += [Param("scalar", i, n) for i, n in enumerate(problem.scalars)]
    axes = grid_axes(problem.ndim, schedule.block_order)
    blocks_y = -(-g.tiles_y // g.rows)
    counts = [g.chunks, blocks_y, g.tiles_z] if problem.ndim == 3 else [g.chunks, g.tiles_z]
    return Outline(plan, g, tuple(params), check_grid(counts, axes), axes)


def _compute_tile(problem: Problem, g: Geometry) -> tuple[int, ...]:
    return ((1, g.ty, g.tz) if problem.ndim == 3 else (1, g.tz)) + (1,) * (g.pair > 1)


def lower(problem: Problem, schedule: Schedule) -> Lowered:
    """Lower to level 3; raises like `outline`."""
    o = outline(problem, schedule)
    g = o.geometry
    block = kernel_block(problem, list(o.params), g.pair)
    fast = schedule.order == "fast"
    builder = TileBuilder(block, problem.element, _compute_tile(problem, g), fast, schedule.loads_first)
    Body(problem, schedule, o.plan, g, builder, o.axes, o.rings).build()
    module = wrap_module(problem, block, schedule, list(o.params), o.grid)
    owned = (g.planes(0), g.rows * g.ty, g.tz * g.pair)
    return Lowered(
        module,
        problem.name,
        o.params,
        o.grid,
        o.axes,
        owned if problem.ndim == 3 else (owned[0], owned[2]),
        pair=g.pair,
    )


def count(problem: Problem, schedule: Schedule, o: Outline) -> Counts:
    """What one trip of the loop would be; the same for all chunks and hints."""
    g = o.geometry
    sums = len(o.plan.sums)
    ahead = schedule.ahead and g.tail > 0
    order = (schedule.order, schedule.sums, g.tiles_y % g.rows > 0)
    key = (problem.periodic, order, sums, schedule.carry, ahead, g.ty, g.tz, g.pair, g.rows, g.unroll)
    if key in problem.graph.counts:
        return problem.graph.counts[key]
    builder = CountingBuilder(len(o.params), _compute_tile(problem, g), schedule.order == "fast", g.pair)
    Body(problem, schedule, o.plan, g, builder, o.axes, o.rings).build()
    assert builder.loop_counts is not None
    problem.graph.counts[key] = builder.loop_counts
    return builder.loop_counts
