"""Point sources and receivers, on the grid or between its cells (linear interpolation).

Both act after a step, on what is then the field. Values travel in blocks of steps: a source's series is put on the
device before a block, what receivers saw is fetched behind it, and in between a counter on the device says which step
it is, so that steps can be captured in CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.boxes import Domain
from stencil_dsl.solve.device_code import compiled
from stencil_dsl.solve.ghosts import array_module

BLOCK_STEPS = 1024
"""Steps of one block."""

Series = Callable[[int], float | Sequence[float]] | np.ndarray | Sequence[float]


class Clock:
    """The step within a block, on the host and, where fields live there, on the device."""

    def __init__(self, array: PaddedArray) -> None:
        self.now = 0
        self.cell = None if array.device == "cpu" else require_cupy().zeros(1, "int64")
        self.dtype = array.dtype

    def reset(self) -> None:
        self.now = 0
        if self.cell is not None:
            self.cell.fill(0)

    def tick(self) -> None:
        self.now += 1
        if self.cell is not None:
            compiled("tick", self.dtype, self.cell.device.id)((1,), (1,), (self.cell,))


def interpolation(position: Sequence[float], shape: Sequence[int]) -> list[tuple[tuple[int, ...], float]]:
    """Cells around a position and their weights, which sum to 1; a position on the grid has one cell.

    Args:
        position: in cells, the centre of the first one being 0.

    Raises:
        StencilError: for a position outside the centres of the outermost cells.
    """
    if len(position) != len(shape) or not all(0 <= p <= n - 1 for p, n in zip(position, shape, strict=True)):
        limits = " x ".join(f"0..{n - 1}" for n in shape)
        raise StencilError(f"the point {tuple(position)} lies outside the centres of the cells, {limits}")
    axes = []
    for p in position:
        first = int(np.floor(p))
        share = float(p) - first
        axes.append([(first, 1.0 - share)] + ([(first + 1, share)] if share else []))
    return [(tuple(i for i, _ in corner), float(np.prod([w for _, w in corner]))) for corner in product(*axes)]


class Points:
    """Some points of one field; base of sources and receivers.

    Attributes:
        field: name of a field of the state.
        corners: per point the cells around it with their weights.
    """

    def __init__(self, field: str, positions: Any, domain: Domain) -> None:
        self.field, self.domain = field, domain
        places = np.atleast_2d(np.asarray(positions, "float64"))
        self.corners = [interpolation([float(p) for p in place], domain.shape) for place in places]

    def __len__(self) -> int:
        return len(self.corners)

    def here(self, cell: tuple[int, ...]) -> tuple[int, ...] | None:
        """A cell of the whole interior as one of this rank's, None where it belongs to another."""
        if all(lo <= i < hi for i, (lo, hi) in zip(cell, self.domain.box, strict=True)):
            return tuple(i - lo for i, (lo, _) in zip(cell, self.domain.box, strict=True))
        return None

    def prepare(self, first: int, count: int) -> None:
        """Called before a block of steps."""

    def collect(self, first: int, count: int) -> None:
        """Called behind a block of steps."""


def _device(array: PaddedArray) -> int:
    return int(array.buffer.device.id)


def _flat_index(array: PaddedArray, cell: tuple[int, ...]) -> int:
    return array.layout.offset + sum(i * s for i, s in zip(cell, array.layout.strides, strict=True))


class Source(Points):
    """Adds the values of a series to a field, spread over the cells around each point.

    Args:
        series: value by step and point (an array of that shape, or by step for all points), or a function of the step.
    """

    def __init__(self, field: str, positions: Any, series: Series, domain: Domain) -> None:
        super().__init__(field, positions, domain)
        self.series = series
        self.block: Any = None

    def bind(self, array: PaddedArray, clock: Clock) -> Callable[[], Any] | None:
        """What adds the values of the clock's step to an array; None where no cell is this rank's."""
        xp = array_module(array)
        if self.block is None:
            self.block = xp.zeros((BLOCK_STEPS, len(self)), array.dtype)
        targets: dict[int, list[tuple[float, int]]] = {}
        for point, corners in enumerate(self.corners):
            for cell, weight in corners:
                if (local := self.here(cell)) is not None:
                    targets.setdefault(_flat_index(array, local), []).append((weight, point))
        if not targets:
            return None
        most = max(map(len, targets.values()))
        cells = xp.asarray(np.array(list(targets), "int64"))
        padded = [entries + [(0.0, 0)] * (most - len(entries)) for entries in targets.values()]
        weights = xp.asarray(np.array([[w for w, _ in e] for e in padded], array.dtype))
        sources = xp.asarray(np.array([[s for _, s in e] for e in padded], "int32"))
        if array.device == "cpu":
            return lambda: self._add(array.buffer, cells, weights, sources, clock)
        kernel = compiled("inject", array.dtype, _device(array))
        grid, block = (-(-len(targets) // 64),), (64,)
        sizes = (np.int32(len(targets)), np.int32(most), np.int32(len(self)))
        arguments = (array.buffer, cells, weights, sources, self.block, clock.cell, *sizes)
        return lambda: kernel(grid, block, arguments)

    def _add(self, buffer: Any, cells: Any, weights: Any, sources: Any, clock: Clock) -> None:
        values = self.block[clock.now]
        total = np.zeros(len(cells), buffer.dtype)
        for k in range(weights.shape[1]):
            total += weights[:, k] * values[sources[:, k]]
        buffer[cells] += total

    def prepare(self, first: int, count: int) -> None:
        rows = [self._row(step) for step in range(first, first + count)]
        data = np.array(rows, "float64").astype(self.block.dtype)
        self.block[:count] = data if isinstance(self.block, np.ndarray) else require_cupy().asarray(data)

    def _row(self, step: int) -> np.ndarray:
        if callable(self.series):
            value: Any = self.series(step)
        else:
            value = self.series[step] if step < len(self.series) else 0.0
        return np.broadcast_to(np.asarray(value, "float64"), (len(self),))


class Receiver(Points):
    """Records a field at points after every step.

    What is kept are the values of the cells around each point; they are interpolated when `traces` is asked for, so
    that results do not depend on which rank has which cell.
    """

    def __init__(self, field: str, positions: Any, domain: Domain) -> None:
        super().__init__(field, positions, domain)
        self.cells = [cell for corners in self.corners for cell, _ in corners]
        self.blocks: list[np.ndarray] = []
        self.block: Any = None
        self.mine: list[int] = [n for n, cell in enumerate(self.cells) if self.here(cell) is not None]

    def bind(self, array: PaddedArray, clock: Clock) -> Callable[[], Any] | None:
        """What records the clock's step; None where no cell is this rank's."""
        if not self.mine:
            return None
        xp = array_module(array)
        if self.block is None:
            self.block = xp.zeros((BLOCK_STEPS, len(self.mine)), array.dtype)
        local = [self.here(self.cells[n]) for n in self.mine]
        cells = xp.asarray(np.array([_flat_index(array, c) for c in local if c is not None], "int64"))
        if array.device == "cpu":
            return lambda: np.take(array.buffer, cells, out=self.block[clock.now])
        kernel = compiled("sample", array.dtype, _device(array))
        arguments = (array.buffer, cells, self.block, clock.cell, np.int32(len(self.mine)))
        return lambda: kernel((-(-len(self.mine) // 64),), (64,), arguments)

    def collect(self, first: int, count: int) -> None:
        if self.block is not None:
            rows = self.block[:count]
            self.blocks.append(np.array(rows) if isinstance(rows, np.ndarray) else rows.get())

    @property
    def samples(self) -> np.ndarray:
        """Values by step and cell, of the cells in `mine`."""
        return np.concatenate(self.blocks) if self.blocks else np.zeros((0, len(self.mine)))

    def interpolate(self, samples: np.ndarray) -> np.ndarray:
        """Values by step and point from those by step and cell (of all cells)."""
        traces, column = np.zeros((len(samples), len(self))), 0
        for point, corners in enumerate(self.corners):
            for _, weight in corners:
                traces[:, point] += weight * samples[:, column]
                column += 1
        return traces
