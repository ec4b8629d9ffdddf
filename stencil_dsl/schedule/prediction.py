"""What a cost model says of a schedule, and what the models of all kinds have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from stencil_dsl.schedule.expr import accesses
from stencil_dsl.schedule.problem import Problem

SHARPNESS = 8.0
"""How much the busiest resource hides the others: they combine as a p-norm."""


@dataclass(frozen=True)
class Prediction:
    """Cost of one sweep under one schedule.

    Attributes:
        seconds: predicted time of a sweep.
        bound: the resource that takes longest.
        times: seconds that each resource would take alone.
        loads: elements loaded per cell; arithmetic: floating point instructions per cell.
        registers: estimated per thread; resident: blocks that fit one SM.
        batches: rounds of loads in a trip that registers force.
        waste: cells computed over cells wanted. redundant: planes loaded over planes of a chunk.
        waves: blocks over what the GPU holds at a time.
        spills: registers are expected not to suffice.
        shuffles: 32-bit values that a thread gets from another lane, a cell.
        strips: seconds of `seconds` that strips take, which the rest says nothing of.
    """

    seconds: float
    bound: str
    times: dict[str, float]
    loads: float
    arithmetic: float
    registers: int
    resident: int
    batches: float
    waste: float
    redundant: float
    waves: float
    spills: bool
    shuffles: float = 0.0
    strips: float = 0.0

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def together(times: Mapping[str, float], sharpness: float = SHARPNESS) -> float:
    """Seconds of a sweep whose resources would take these alone."""
    return sum(t**sharpness for t in times.values()) ** (1 / sharpness)


def reaches(problem: Problem) -> list[list[int]]:
    """For each field and axis, the widths of the halo on both sides together."""
    nodes = accesses(problem.graph.outputs)
    reaches = []
    for field in range(len(problem.fields)):
        offsets = [n.offset for n in nodes if n.field == field] or [(0,) * problem.ndim]
        reaches.append([max(o[a] for o in offsets) - min(o[a] for o in offsets) for a in range(problem.ndim)])
    return reaches
