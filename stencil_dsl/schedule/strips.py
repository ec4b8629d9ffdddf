"""Cuts an interior that blocks do not divide into the part that whole blocks cover and the strips that are left.

A block that overhangs the interior computes cells that nobody wants: rows of 513 cells in tiles of 128 take the time of
640. A strip of a cell costs a launch and the memory around it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.layout import Box
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import AXES, Schedule

MOST_LEFT = 0.25
"""Share of the cells that strips may have: more is no strip, and is swept better in one pass."""

CUTS: tuple[Any, ...] = ("z", "y", "yz", "xz", "xyz")
"""Along x alone chunks of about the same length serve as well."""


def block(schedule: Schedule) -> tuple[int, ...]:
    """Cells along each axis that one block covers."""
    cells = list(schedule.tile)
    if schedule.kind != "shifted":
        cells[0] = schedule.chunk
        cells[-1] *= schedule.pair
        if len(cells) == 3:
            cells[1] *= schedule.rows
    return tuple(cells)


def left_over(shape: Sequence[int], schedule: Schedule) -> tuple[int, ...]:
    """Cells along each axis that a schedule cuts off; none of an axis that is shorter than a block."""
    named = AXES[len(shape)]
    blocks = zip(shape, block(schedule), named, strict=True)
    return tuple(n % b if axis in schedule.strips and n > b else 0 for n, b, axis in blocks)


def cut(shape: Sequence[int], schedule: Schedule) -> tuple[Box, ...]:
    """Disjoint boxes that make up an interior: first what whole blocks cover, then the strips along z, y and x.

    One box where nothing is left over. The strip along x has the corners, and that along z none: its tiles are tall
    along y, and the memory behind an array lets tiles overhang unchecked along z, but only a few rows along y.
    """
    rest = [(0, n) for n in shape]
    strips = []
    for axis, left in enumerate(left_over(shape, schedule)):
        if left:
            end = shape[axis] - left
            strips.append((*rest[:axis], (end, shape[axis]), *rest[axis + 1 :]))
            rest[axis] = (0, end)
    return (tuple(rest), *reversed(strips))


def part(problem: Problem, box: Box) -> Problem:
    """The same stencil on a box of the interior.

    Raises:
        ScheduleError: for a box of parts of rows that are periodic.
    """
    assert problem.shape is not None
    if any(problem.periodic) and box[-1] != (0, problem.shape[-1]):
        raise ScheduleError("periodic rows have no strips along z: a part of a row is no ring; use strips along x or y")
    shape = tuple(hi - lo for lo, hi in box)
    return replace(problem, shape=shape, inputs=tuple(p.part(box) for p in problem.inputs))


def main_part(problem: Problem, schedule: Schedule) -> tuple[Problem, Schedule]:
    """What whole blocks cover, and the schedule of its one kernel."""
    assert problem.shape is not None
    return part(problem, cut(problem.shape, schedule)[0]), schedule.with_(strips="")


def cuts(shape: Sequence[int], schedule: Schedule) -> list[Any]:
    """Values of `Schedule.strips`, other than the schedule's own, that leave a few cells along every axis named."""
    found = []
    for axes in CUTS:
        left = left_over(shape, schedule.with_(strips=axes)) if set(axes) <= set(AXES[len(shape)]) else ()
        kept = prod(n - r for n, r in zip(shape, left, strict=True)) if left else 0
        if axes != schedule.strips and sum(r > 0 for r in left) == len(axes) and 1 - kept / prod(shape) <= MOST_LEFT:
            found.append(axes)
    return found if len(shape) > 1 else []
