"""A model of several GPUs: how long a step takes and what bounds it, from what one and two of them were measured to do.

A rank computes the cells whose values do not depend on other ranks while faces travel, then the others:

    step = max(inner, faces) + rim + overhead
    faces = for each neighbour at a time: latency + bytes of a face / bandwidth
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Link:
    """Between two GPUs.

    Attributes:
        latency: seconds of a small copy, packing, unpacking and events included.
        bandwidth: bytes a second in one direction.
    """

    latency: float
    bandwidth: float


NVLINK = Link(4.3e-6, 396e9)
"""Between two H200s of one host: copies of 2 kB and of 537 MB from device to device."""


@dataclass(frozen=True)
class Work:
    """A step.

    Attributes:
        seconds_a_cell: of one GPU on many cells.
        radius: ghost cells on each side that are exchanged.
        bytes_a_cell: of the fields that are exchanged, together.
        launch: seconds that a kernel costs besides its cells.
        narrow: how much longer a cell takes in a rim as thin as the radius.
    """

    seconds_a_cell: float
    radius: int
    bytes_a_cell: int
    launch: float = 3e-6
    narrow: float = 2.0


@dataclass(frozen=True)
class Step:
    """What the model says of a step: seconds of its parts and in all, what bounds it, and the efficiency."""

    inner: float
    faces: float
    rim: float
    total: float
    bound: str
    efficiency: float


def predict(shape: Sequence[int], grid: Sequence[int], work: Work, link: Link = NVLINK) -> Step:
    """A step of an interior of `shape` cut into `grid` boxes along its first axes, for an inner rank.

    Args:
        shape: extents of the whole interior.
        grid: ranks along each axis; 1 where it is not cut.

    Returns:
        The efficiency is the time of one GPU for the whole interior over that of all, divided by how many they are.
    """
    box = [-(-n // g) for n, g in zip(shape, grid, strict=True)]
    cells = prod(box)
    faces, inner_box = 0.0, list(box)
    for axis, ranks in enumerate(grid):
        if ranks > 1:
            face = cells // box[axis] * work.radius * work.bytes_a_cell
            # Both sides travel at a time, each over its own direction of the links; axes follow one another.
            faces += link.latency + face / link.bandwidth
            inner_box[axis] = max(0, box[axis] - 2 * work.radius)
    inner_cells = prod(inner_box)
    slabs = 2 * sum(r > 1 for r in grid)
    inner = inner_cells * work.seconds_a_cell + (work.launch if inner_cells else 0.0)
    rim = (cells - inner_cells) * work.seconds_a_cell * work.narrow + slabs * work.launch
    total = max(inner, faces) + rim
    alone = prod(shape) * work.seconds_a_cell + work.launch
    bound = "faces" if faces > inner else "rim" if rim > inner else "cells"
    return Step(inner, faces, rim, total, bound, alone / prod(grid) / total)
