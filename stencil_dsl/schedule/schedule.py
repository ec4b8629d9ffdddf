"""What a schedule is: the choices that decide how a stencil runs, none of which changes what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from stencil_dsl.dialects import boundary
from stencil_dsl.errors import ScheduleError

PAIR_BYTES = 16

AXES = {rank: "".join(names) for rank, names in boundary.AXES.items()}
"""Names of the axes by rank, the slowest first, as one word."""


@dataclass(frozen=True)
class Schedule:
    """How a stencil is laid out over blocks, threads and time.

    Attributes:
        kind: "shifted" loads one tile per distinct access; "streaming" marches along the slowest axis and loads
            every value of a plane once, scattering it into the outputs that are still open. "shuffle" streams as well,
            and takes neighbours along the contiguous axis from the other lanes of a warp: by device functions of a
            tile library, which need a 13.5 toolkit.
        tile: extent of the tile along each axis, powers of two (streaming: 1 along the slowest axis). With pairs the
            last extent counts pairs, with "shuffle" lanes.
        warps: warps of a block, 4 or 8 (32 threads each); 1, 2 and 16 where the toolkit takes them.
        occupancy: blocks that must fit one SM at a time, which bounds registers; None leaves it to the compiler.
        order: "source" keeps the source's order of operations; "fast" reassociates sums (relative error about 1e-15
            of the largest partial sum in float64).
        block_order: which axis consecutive blocks walk first: "z" (contiguous) or "y".
        loads: "unchecked" where memory behind the array allows it ("auto"), never, or as a demand.
        static_shape: compile extents and strides in; otherwise one kernel serves every shape (shifted only).
        rows: streaming: row tiles a block owns along y; they share their loads.
        chunk: streaming: planes a block marches over; chunks are balanced, so this is an upper bound.
        pair: streaming: neighbours along z that one thread holds, 1 or as many as fill 16 bytes (shuffle: 1, 2 or 4).
        unroll: streaming: planes a trip of the loop.
        ahead: streaming: request the block's own rows one plane early.
        loads_first: streaming: write a trip's loads before its arithmetic.
        sums: streaming: what is added to the accumulators first. "rows": one row of a plane after the other along y, so
            that a row is done with early; "inward" and "outward": from the block's edges to its own rows, or from
            those on (where the blocks divide the rows evenly); "groups": rows that have one coefficient are summed and
            multiplied once.
        latency: hint on loads, 1 (near) to 10 (DRAM), or None.
        carry: streaming: values of earlier planes that are not scattered are loaded again ("reload") or carried
            through the loop as raw loads ("queue"; with pairs, those for which a trip has as many planes).
        head_loop: streaming: take the first planes of a chunk in a loop rather than in straight-line code.
        split_tail: streaming: leave out of the last planes of a chunk what no output of it needs.
        opt_level: of the tile assembler, 0 to 3.
        strips: axes along which the cells that no whole block covers are cut off, such as "z" or "yz" ("": none). They
            become strips, boxes that are swept by kernels of their own with schedules that the model chooses for them.
            A block covers `tile` cells, times `rows` along y and `pair` along z; along x, `chunk` where it streams.
            An axis with fewer cells than a block is left whole.
    """

    kind: Literal["shifted", "streaming", "shuffle"] = "shifted"
    tile: tuple[int, ...] = (1, 1, 128)
    warps: int = 4
    occupancy: int | None = None
    order: Literal["source", "fast"] = "source"
    block_order: Literal["z", "y"] = "z"
    loads: Literal["auto", "unchecked", "checked"] = "auto"
    static_shape: bool = True
    rows: int = 1
    chunk: int = 64
    pair: int = 1
    unroll: int = 1
    ahead: bool = False
    loads_first: bool = False
    sums: Literal["rows", "inward", "outward", "groups"] = "rows"
    latency: int | None = None
    carry: Literal["reload", "queue"] = "reload"
    head_loop: bool = True
    split_tail: bool = True
    opt_level: int = 3
    strips: Literal["", "z", "y", "x", "yz", "xz", "xy", "xyz"] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tile", tuple(self.tile))
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ScheduleError(f"Schedule.{name} is one of {allowed}, got {getattr(self, name)!r}")
        if not 1 <= len(self.tile) <= 3 or any(not _power_of_two(t) for t in self.tile):
            raise ScheduleError(f"Schedule.tile has one to three extents, powers of two, got {self.tile}")
        for name in ("rows", "chunk", "unroll"):
            if getattr(self, name) < 1:
                raise ScheduleError(f"Schedule.{name} is at least 1, got {getattr(self, name)}")
        if self.occupancy is not None and not 1 <= self.occupancy <= 32:
            raise ScheduleError(f"Schedule.occupancy is None or 1 to 32, got {self.occupancy}")
        if self.latency is not None and not 1 <= self.latency <= 10:
            raise ScheduleError(f"Schedule.latency is None or 1 to 10, got {self.latency}")
        if self.kind != "shifted" and not self.static_shape:
            raise ScheduleError("a streaming schedule compiles the shape in; use kind='shifted' without it")
        if self.strips and not self.static_shape:
            raise ScheduleError("strips are cut off a shape that is compiled in; use static_shape=True, or strips=''")

    def check(self, ndim: int, itemsize: int) -> None:
        """Refuse what cannot be applied to a stencil of this rank and element size.

        Raises:
            ScheduleError: naming the field and the values allowed.
        """
        if len(self.tile) != ndim:
            raise ScheduleError(f"a {ndim}-D stencil needs a tile of {ndim} extents, got {self.tile}")
        if self.strips and (ndim == 1 or not set(self.strips) <= set(AXES[ndim])):
            allowed = "''" if ndim == 1 else f"'' or axes of {AXES[ndim]!r}"
            raise ScheduleError(f"Schedule.strips of a {ndim}-D stencil is {allowed}, got {self.strips!r}")
        if self.kind == "shifted":
            return
        if ndim == 1:
            raise ScheduleError("a 1-D stencil has no axis to stream along; use kind='shifted'")
        if self.tile[0] != 1:
            raise ScheduleError(f"streaming tiles are one plane thick, got tile {self.tile}; write (1, ...)")
        if self.kind == "streaming" and self.pair not in (1, PAIR_BYTES // itemsize):
            raise ScheduleError(f"Schedule.pair is 1 or {PAIR_BYTES // itemsize} here, got {self.pair}")
        if ndim == 2 and self.rows != 1:
            raise ScheduleError("a 2-D stencil has no rows beside the streamed axis; use rows=1")

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the defaults, so that stored schedules stay readable."""
        default = Schedule()
        out = {k: v for k, v in asdict(self).items() if k in ("kind", "tile") or v != getattr(default, k)}
        return out | {"tile": list(self.tile)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schedule:
        known = {f.name for f in fields(cls)}
        if unknown := set(data) - known:
            raise ScheduleError(f"unknown schedule fields {sorted(unknown)}; known: {sorted(known)}")
        return cls(**{**data, "tile": tuple(data["tile"])})

    def with_(self, **changes: Any) -> Schedule:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def __str__(self) -> str:
        parts = [f"({','.join(map(str, self.tile))}{f',{self.pair}' if self.pair > 1 else ''})"]
        if self.kind != "shifted":
            parts += [f"rows {self.rows}", f"chunk {self.chunk}"]
            parts += [f"unroll {self.unroll}"] * (self.unroll > 1) + [self.carry] * (self.carry != "reload")
            parts += ["loads first"] * self.loads_first
            parts += [f"{self.sums} first"] * (self.sums != "rows") + ["one tail"] * (not self.split_tail)
            parts += ["ahead"] * self.ahead + ["straight head"] * (not self.head_loop)
        parts += [f"occupancy {self.occupancy}"] * (self.occupancy is not None)
        parts += [f"{self.warps} warps"] * (self.warps != 4) + [f"latency {self.latency}"] * (self.latency is not None)
        parts += ["checked"] * (self.loads == "checked") + ["dynamic"] * (not self.static_shape)
        parts += [f"{self.block_order} first"] * (self.block_order != "z")
        parts += [f"strips {self.strips}"] * (self.strips != "") + [self.order]
        return f"{self.kind} " + ", ".join(parts)


_CHOICES: dict[str, tuple[Any, ...]] = {
    "kind": ("shifted", "streaming", "shuffle"),
    "order": ("source", "fast"),
    "block_order": ("z", "y"),
    "loads": ("auto", "unchecked", "checked"),
    "carry": ("reload", "queue"),
    "sums": ("rows", "inward", "outward", "groups"),
    "warps": (1, 2, 4, 8, 16),
    "pair": (1, 2, 4),
    "opt_level": (0, 1, 2, 3),
    "strips": ("", "z", "y", "x", "yz", "xz", "xy", "xyz"),
}


def _power_of_two(n: int) -> bool:
    return n >= 1 and n & (n - 1) == 0
