"""The schedule a stencil gets when none is asked for."""

from __future__ import annotations

from stencil_dsl.schedule.expr import Graph
from stencil_dsl.schedule.schedule import Schedule


def default_schedule(graph: Graph, dtype: str, shape: tuple[int, ...] | None, target: str) -> Schedule:
    """One element a thread in rows of 128."""
    return Schedule(tile=(1,) * (graph.ndim - 1) + (128,))
