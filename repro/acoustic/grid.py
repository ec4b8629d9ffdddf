"""Where the fields of the CUDA and Triton kernels lie, and what they are launched with.

Around the cube there is a tile of zeros, as the paper describes for its Triton kernels: whole tiles can be loaded
without masks, and only stores are masked. Rows of the inner box start on a cache line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from repro.acoustic.model import RADIUS, Box, Cube, damping
from repro.baselines.base import Launch

TILE_X, TILE = 32, 16
"""The paper's tile: 16 x 16 cells of a plane, swept over 32 planes."""

_LINE = 32
"""Elements of a cache line of 128 bytes."""

SERIES = 1024
"""Steps in which the source acts; its wavelet is zero in float32 long before."""


@dataclass(frozen=True)
class Grid:
    """One float32 field with its padding, flat in memory, z contiguous."""

    cube: Cube

    def __post_init__(self) -> None:
        if self.size >= 2**31:
            raise ValueError(
                f"fields of {self.cube.n}^3 cells have {self.size} elements: more than 32-bit indices count"
            )

    @property
    def before(self) -> tuple[int, int, int]:
        """Cells before the cube along each axis."""
        z = TILE + (-(TILE + self.cube.layer)) % _LINE
        return RADIUS, TILE, z

    @property
    def extents(self) -> tuple[int, int, int]:
        x, y, z = self.before
        n, behind = self.cube.n, TILE + RADIUS
        rows = -(-(z + n + behind) // _LINE) * _LINE
        return x + n + TILE_X + RADIUS + 1, y + n + behind, rows

    @property
    def strides(self) -> tuple[int, int, int]:
        _, y, z = self.extents
        return y * z, z, 1

    @property
    def size(self) -> int:
        """Elements of a field."""
        x, y, z = self.extents
        return x * y * z

    @property
    def offset(self) -> int:
        """Index of cell (0, 0, 0)."""
        return sum(a * s for a, s in zip(self.before, self.strides, strict=True))

    def at(self, x: int, y: int, z: int) -> int:
        """Index of a cell."""
        return self.offset + sum(a * s for a, s in zip((x, y, z), self.strides, strict=True))

    def cells(self, array: Any, ghosts: int = 0) -> Any:
        """The cube, with some cells around it, as a view of a flat field."""
        window = tuple(slice(b - ghosts, b + self.cube.n + ghosts) for b in self.before)
        return array.reshape(self.extents)[window]

    def eta(self, xp: Any) -> Any:
        """The damping as a field, ghost ring included."""
        found = xp.zeros(self.size, "float32")
        self.cells(found, 1)[...] = xp.asarray(damping(self.cube).astype("float32"))
        return found


@dataclass(frozen=True)
class Program:
    """The kernels of one step, all in one source text.

    Attributes:
        variant: "plain", "shared" or "triton".
        config: the choices it was generated with.
        source: CUDA C++, or Python for Triton.
        inner: the launch of the inner box.
        layer: those of the six slabs.
    """

    variant: str
    config: Mapping[str, Any]
    grid: Grid
    source: str = field(repr=False)
    inner: Launch
    layer: tuple[Launch, ...]

    @property
    def schedule(self) -> str:
        """The choices as text."""
        return ", ".join(f"{key} {value}" for key, value in self.config.items())

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Of a whole step, without the source."""
        return (self.inner, *self.layer)


def names(box: Box) -> dict[str, int]:
    """Bounds of a box as the generators' texts call them."""
    return {f"{axis}{end}": bound for axis, pair in zip("XYZ", box, strict=True) for end, bound in enumerate(pair)}


def host_fields(grid: Grid, fields: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Flat float32 fields on the host with the given cells, and eta."""
    found = {"eta": grid.eta(np)}
    for name, values in fields.items():
        found[name] = np.zeros(grid.size, "float32")
        grid.cells(found[name])[...] = values
    return found
