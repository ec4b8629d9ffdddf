"""Which schedules are worth considering for a stencil."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from stencil_dsl.schedule.expr import Graph
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.plan import make_plan
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule

THREADS = 128
ROW_TILES = ((1, 128), (2, 64), (4, 32))
"""(y, z) tiles with one element, or one pair, a thread."""

WIDE = 6
"""Open outputs from which on rows are added from the block's edges inward: 19 and 25 points gained 1 to 10 %."""

THIN = 32
"""Boxes with fewer cells along y or z have tiles as narrow."""

NARROW_TILES = ((8, 16), (16, 8))
"""For rows that the others do not divide: less of the last tile is waste."""


def plain_schedule(ndim: int) -> Schedule:
    """Rows of 128, one element a thread, in source order: legal for any stencil on any array."""
    return Schedule(tile=(1,) * (ndim - 1) + (THREADS,))


def shifted_candidates(ndim: int) -> Iterator[Schedule]:
    """One element a thread, in source order: the schedules that any array and any stencil can have."""
    tiles: dict[int, tuple[tuple[int, ...], ...]] = {
        1: ((128,), (256,)),
        2: ((1, 128), (2, 64), (4, 32)),
        3: ((1, 1, 128), (1, 2, 64), (1, 4, 32)),
    }
    for tile in tiles[ndim]:
        yield Schedule(tile=tile)
        yield Schedule(tile=tile, occupancy=8)
    if ndim == 3:
        yield Schedule(tile=(2, 4, 32), warps=8, occupancy=4)


def thin_candidates(shape: Sequence[int], order: str) -> Iterator[Schedule]:
    """Shifted tiles for boxes with a few cells along y or z: strips beside a sweep, single planes.

    A box that is thin along z has tiles as narrow, one row a thread; several planes deep, threads share the planes'
    values through the L1.
    """
    if len(shape) == 1 or min(shape[1:]) >= THIN:
        return
    planes = shape[0] if len(shape) == 3 else 1
    y, z = (min(_power_of_two_from(n), THREADS) for n in shape[-2:])
    for narrow in (z, z // 2) if z < THIN else (32, 64, 128):
        for deep in (1, 2, 4, 8, 16):
            rows = THREADS // (deep * narrow) if narrow else 0
            if 1 <= rows <= y and deep <= planes:
                tile = (deep, rows, narrow)[3 - len(shape) :]
                yield from (Schedule(tile=tile, order=order, occupancy=n) for n in (None, 8))  # type: ignore[arg-type]


def _power_of_two_from(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()


def streaming_candidates(graph: Graph, dtype: str, shape: tuple[int, ...] | None, order: str) -> Iterator[Schedule]:
    """The streaming schedules of a stencil, from the ones that mostly win to the rest."""
    if graph.ndim == 1:
        return
    pair = PAIR_BYTES // ITEMSIZE[dtype]
    tiles: tuple[tuple[int, int], ...] = ROW_TILES if graph.ndim == 3 else ((1, 128), (1, 256), (1, 64))
    if graph.ndim == 3 and shape is not None and shape[-1] % (pair * ROW_TILES[-1][1]):
        tiles += NARROW_TILES
    rows = (2, 1, 3, 4) if graph.ndim == 3 else (1,)
    mixed = any(len(n.planes) > 1 and n.op not in ("add", "sub", "neg") for n in graph.outputs)
    # Where many outputs are open, registers are short, and the order in which rows are used decides.
    wide = any(s.open_outputs >= WIDE for s in make_plan(graph, order == "fast").sums)
    carries = ("reload", "queue") if mixed or order == "source" else ("reload",)
    for width, tile, row, chunk, occupancy, unroll, carry in product(
        (pair, 1), tiles, rows, (32, 64), (4, 3, 5, 2, 6, 8), (1, 2), carries
    ):
        shape_tile = (1, *tile) if graph.ndim == 3 else (1, tile[1])
        warps = max(4, shape_tile[-1] // 32) if graph.ndim == 2 else 4
        if warps > 4 and occupancy > 4:
            continue
        # Two planes a trip double what is in registers; with more rows or fewer blocks it never won.
        if graph.ndim == 3 and unroll == 2 and (row > 2 or occupancy != 4):
            continue
        if shape is not None and (chunk > 2 * shape[0] or row * (tile[0] if graph.ndim == 3 else 1) > 2 * shape[-2]):
            continue
        yield Schedule(
            kind="streaming",
            tile=shape_tile,
            warps=warps,
            occupancy=occupancy,
            order=order,  # type: ignore[arg-type]
            rows=row,
            chunk=chunk,
            pair=width,
            unroll=unroll,
            carry=carry,  # type: ignore[arg-type]
            sums="inward" if wide and row == 2 else "rows",
        )


def candidates(graph: Graph, dtype: str, shape: tuple[int, ...] | None, order: str = "fast") -> list[Schedule]:
    """All candidates, legal for the rank but not yet for the shape."""
    found = list(streaming_candidates(graph, dtype, shape, order)) if shape is not None else []
    return found + [s.with_(order=order) for s in shifted_candidates(graph.ndim)]
