"""Fields stored as bricks: small boxes of cells that are neighbours in memory.

Bricks are a layout to convert to and from. A stencil can also run on them directly: with ghost cells, the bricks of a
one- or two-dimensional field are an array with one axis more, along which the stencil reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64

from stencil_dsl.dialects.layout import BrickedType
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray, empty
from stencil_dsl.schedule.layout import Halo, normalize_halo
from stencil_dsl.solve.ghosts import array_module


class Bricks:
    """A field as bricks.

    Attributes:
        shape: extents of the field. brick: extents of a brick. grid: bricks along each axis.
        cells: one brick after the other, as an array with an axis for their number before the others. With one or two
            axes it is a PaddedArray that has ghost cells around every brick; `fill` makes them valid.
    """

    def __init__(
        self,
        shape: Sequence[int],
        brick: Sequence[int],
        halo: Halo | Sequence[int] | int = 0,
        dtype: str = "float64",
        device: Device | None = None,
    ) -> None:
        self.shape, self.brick = tuple(map(int, shape)), tuple(map(int, brick))
        self.type = BrickedType(self.shape, f64 if dtype == "float64" else f32, self.brick)
        self.halo = normalize_halo(halo, len(self.shape))
        self.grid = self.type.grid
        self.dtype = dtype
        self.count = prod(self.grid)
        if len(self.shape) < 3:
            self.padded = empty((self.count, *self.brick), ((0, 0), *self.halo), dtype, device)
        elif any(map(any, self.halo)):
            raise StencilError("bricks of a 3-D field have no ghost cells: an array has three axes at most")
        else:
            self.padded = empty((self.count, self.brick[0] * self.brick[1], self.brick[2]), 0, dtype, device)
        self.padded.fill(0)

    @property
    def cells(self) -> Any:
        """The bricks' own cells: an array of (number, *brick)."""
        return self.padded.interior.reshape((self.count, *self.brick))

    def number(self, place: Sequence[int]) -> int:
        """The number of the brick at a place of the grid."""
        return int(np.ravel_multi_index(tuple(place), self.grid))

    # -- conversion

    @staticmethod
    def of(array: PaddedArray, brick: Sequence[int], halo: Halo | Sequence[int] | int = 0) -> Bricks:
        """The cells of a row-major field as bricks; where bricks hang over, their cells are zero."""
        bricks = Bricks(array.shape, brick, halo, array.dtype, array.device)
        bricks.set(array.interior)
        return bricks

    def set(self, values: Any) -> None:
        """Take over the cells of an array of the field's shape."""
        xp = array_module(self.padded)
        whole = xp.zeros(tuple(g * b for g, b in zip(self.grid, self.brick, strict=True)), self.dtype)
        whole[tuple(slice(0, n) for n in self.shape)] = values
        self.padded.interior[...] = self._gathered(whole).reshape(self.padded.shape)

    def _gathered(self, whole: Any) -> Any:
        """(n0 b0, n1 b1, ...) as (n0 n1 ..., b0, b1, ...)."""
        ndim = len(self.shape)
        split = whole.reshape([n for pair in zip(self.grid, self.brick, strict=True) for n in pair])
        order = [*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]
        return split.transpose(order).reshape((self.count, *self.brick))

    def values(self) -> Any:
        """The cells as an array of the field's shape."""
        ndim = len(self.shape)
        split = self.cells.reshape((*self.grid, *self.brick))
        order = [i for axis in range(ndim) for i in (axis, ndim + axis)]
        whole = split.transpose(order).reshape([g * b for g, b in zip(self.grid, self.brick, strict=True)])
        return whole[tuple(slice(0, n) for n in self.shape)]

    def to_rows(self, array: PaddedArray) -> None:
        """Write the cells to a row-major field of the same shape; its ghost cells stay as they are."""
        if array.shape != self.shape:
            raise StencilError(f"the bricks hold a field of {self.shape}, the array is one of {array.shape}")
        array.interior[...] = self.values()

    # -- ghost cells

    def neighbours(self, offset: Sequence[int]) -> np.ndarray:
        """For every brick the number of the one at an offset in the grid, which is periodic."""
        places = np.indices(self.grid).reshape(len(self.grid), -1)
        moved = [(p + o) % g for p, o, g in zip(places, offset, self.grid, strict=True)]
        return np.ravel_multi_index(tuple(moved), self.grid)

    def fill(self) -> None:
        """Copy the cells around every brick from its neighbours; the field is periodic.

        Raises:
            StencilError: where bricks hang over, so that the period does not end with a brick.
        """
        if any(n % b for n, b in zip(self.shape, self.brick, strict=True)):
            raise StencilError(f"ghost cells need extents {self.shape} that bricks of {self.brick} divide")
        if any(max(w) > b for w, b in zip(self.halo, self.brick, strict=True)):
            raise StencilError(f"a halo of {self.halo} reaches beyond the next brick of {self.brick}")
        if len(self.shape) == 3:
            return
        full = self.padded.with_halo(self.padded.halo[:1] + self.halo)
        inner = self.padded.interior.copy()
        for offset in product((-1, 0, 1), repeat=len(self.shape)):
            if not any(offset):
                continue
            here: list[Any] = [slice(None)]
            there: list[Any] = [self.neighbours(offset)]
            for o, b, (lo, hi) in zip(offset, self.brick, self.halo, strict=True):
                here.append(slice(0, lo) if o < 0 else slice(lo + b, lo + b + hi) if o else slice(lo, lo + b))
                there.append(slice(b - lo, b) if o < 0 else slice(0, hi) if o else slice(0, b))
            full[tuple(here)] = inner[tuple(there)]
