"""What a shuffle schedule would emit in one trip of its loop, counted without writing a device function.

The body of the schedule is built as always; a function that counts stands for the device function, and its operations
and those of the kernel are one list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stencil_dsl.schedule.builder import Value
from stencil_dsl.schedule.counting import CountingBuilder, Counts
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shuffle_body import ShuffleBody
from stencil_dsl.schedule.streaming import Outline


class CountingFunction:
    """What `ShuffleBody` asks of a `DeviceFunction`, by a builder whose values are numbers."""

    def __init__(self, b: CountingBuilder) -> None:
        self.b = b
        self.results: list[Value] = []

    def row(self, tile: Value) -> list[Value]:
        return [self.b.extract(tile, part) for part in range(self.b.pair)] if self.b.pair > 1 else [tile]

    def lane(self, tile: Value, kind: str) -> Value:
        return tile

    def neighbour(self, row: Value, halo: Value, distance: int) -> Value:
        return self.b.shuffle(row, halo, distance)

    def give_lane(self, value: Value) -> int:
        self.results.append(value)
        return len(self.results) - 1

    def give_row(self, values: Sequence[Value]) -> int:
        return self.give_lane(self.b.joined_row(values))


class CountingBody(ShuffleBody):
    """The main loop of a shuffle schedule, counted."""

    k: CountingBuilder  # type: ignore[assignment]

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        f = CountingFunction(self.k)
        self.f, self.b, self.waiting = f, self.k, []  # type: ignore[assignment]
        yield
        for number, use in self.waiting:
            use(f.results[number])
        self.f = self.b = None

    def build(self) -> None:
        k, g = self.k, self.g
        carried = [k.token() for _ in self.sums.slots()]
        with k.loop(self.x0, self.x1, g.unroll, carried, "x") as (x, values, ends, _):
            self.sums.adopt(values)
            with self.call("plane"):
                for t in range(g.unroll):
                    self.trip(x, t, None)
            ends += [slots[at] for slots, at in self.sums.slots()]


def count(problem: Problem, schedule: Schedule, o: Outline) -> Counts:
    """What a thread does in one trip of the loop; the same for all chunks and hints, and for any number of warps."""
    g = o.geometry
    key = ("shuffle", schedule.order, g.pair, g.rows, g.unroll, g.tiles_y % g.rows > 0)
    if key not in problem.graph.counts:
        lane = (1,) * (problem.ndim - 1) + (g.tz,)
        builder = CountingBuilder(len(o.params), lane, schedule.order == "fast", g.pair)
        CountingBody(problem, schedule, o.plan, g, builder, o.axes).build()  # type: ignore[arg-type]
        assert builder.loop_counts is not None
        problem.graph.counts[key] = builder.loop_counts
    return problem.graph.counts[key]
