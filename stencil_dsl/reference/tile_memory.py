"""Device memory of one interpreted run: allocations, who wrote what, and counts.

A shadow array beside each stored allocation holds the last writer of every element; races are found
with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

UNWRITTEN = -1
Region = tuple[int, tuple[int, ...], tuple[int, ...]]  # first element, extents, strides (elements)


@dataclass(eq=False)
class DeviceBuffer:
    """One flat allocation and what this run did to it.

    Attributes:
        data: 1-D contiguous array, the memory itself.
        names: kernel parameters that see it.
        may_be_stored: False where the source shows that no store reaches it (loads are then not kept).
        writer: last writer of each element (block number * parameters + parameter), or UNWRITTEN.
        reads: (region, reader, source line) of every load, kept to find reads of what others store.
    """

    data: np.ndarray
    names: tuple[str, ...] = ()
    may_be_stored: bool = True
    writer: np.ndarray | None = field(default=None, repr=False)
    reads: list[tuple[Region, int, int]] = field(default_factory=list, repr=False)

    def at(self, region: Region) -> np.ndarray:
        return strided(self.data, region)


def strided(flat: np.ndarray, region: Region) -> np.ndarray:
    """A view of a flat array; NumPy itself refuses one that leaves the memory."""
    first, shape, strides = region
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, first * size, tuple(s * size for s in strides))


@dataclass
class RunReport:
    """What one run did, in elements unless said otherwise.

    Attributes:
        blocks: blocks run.
        loads, stores: elements moved (padding and dropped elements excluded).
        unchecked_loads, unchecked_stores: those of accesses with ``check_bounds=False``.
        load_tiles, store_tiles: number of tile accesses.
        padded: elements of checked loads outside the view; dropped: the same for stores.
        outside_view: elements of unchecked accesses outside the view (0 under strict views).
        rewritten: elements stored again with the same value by another block or parameter.
    """

    blocks: int = 0
    loads: int = 0
    stores: int = 0
    unchecked_loads: int = 0
    unchecked_stores: int = 0
    load_tiles: int = 0
    store_tiles: int = 0
    padded: int = 0
    dropped: int = 0
    outside_view: int = 0
    rewritten: int = 0


class Memory:
    """State of one run that accesses need: options, report, the running block."""

    def __init__(self, strict_views: bool, allow_inplace: bool, parameters: int) -> None:
        self.strict_views = strict_views
        self.allow_inplace = allow_inplace
        self.parameters = parameters
        self.report = RunReport()
        self.block = 0
        self.grid: tuple[int, ...] = (1,)

    def block_index(self, number: int) -> tuple[int, ...]:
        """Block number to index; axis 0 runs fastest."""
        index = []
        for n in self.grid:
            number, i = divmod(number, n)
            index.append(i)
        return tuple(index)

    def name_writer(self, code: int, names: list[str]) -> str:
        number, parameter = divmod(int(code), self.parameters)
        return f"block {self.block_index(number)} through parameter {names[parameter]!r}"


def foreign_writer(buffer: DeviceBuffer, region: Region, reader: int) -> int | None:
    """A writer of the region that is not `reader`, or None."""
    assert buffer.writer is not None
    writers = strided(buffer.writer, region)
    others = writers[(writers != UNWRITTEN) & (writers != reader)]
    return int(others.flat[0]) if others.size else None
