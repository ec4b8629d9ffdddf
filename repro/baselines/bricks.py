"""Fields cut into bricks: small boxes that are contiguous in memory, found through an adjacency list.

A ring of ghost bricks surrounds the interior and holds the halo. Extents that bricks do not divide are rounded
up; what a kernel writes to the surplus cells is never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from repro.baselines.base import Baseline, Shape, ceil_div
from stencil_dsl.testing.question import Prepared

#: The 27 neighbours of a brick in the order of its adjacency list, itself at position 13.
NEIGHBOURS = tuple(product((-1, 0, 1), repeat=3))


@dataclass(frozen=True)
class BrickGrid:
    """The bricks of an interior and their ghost ring.

    Attributes:
        shape: extents of the interior, in cells.
        brick: extents of a brick, in cells.
        order: a seed to number the bricks at random (the kernels must not care); None numbers them along z,
            then y, then x.
    """

    shape: Shape
    brick: Shape
    order: int | None = None

    @property
    def counts(self) -> Shape:
        """Interior bricks along each axis."""
        return tuple(ceil_div(n, b) for n, b in zip(self.shape, self.brick, strict=True))  # type: ignore[return-value]

    @property
    def ring(self) -> Shape:
        """Bricks along each axis with the ghost bricks."""
        return tuple(n + 2 for n in self.counts)  # type: ignore[return-value]

    @property
    def volume(self) -> int:
        """Cells of a brick."""
        return prod(self.brick)

    @property
    def elements(self) -> int:
        """Elements of a field's buffer."""
        return prod(self.ring) * self.volume

    @cached_property
    def ids(self) -> np.ndarray:
        """Position of each brick in the buffer, counted in bricks; shape `ring`."""
        count = prod(self.ring)
        numbers = np.arange(count) if self.order is None else np.random.default_rng(self.order).permutation(count)
        return numbers.reshape(self.ring).astype(np.int32)

    @cached_property
    def interior(self) -> np.ndarray:
        """Positions of the interior bricks, z fastest: the order in which warps take them."""
        return np.ascontiguousarray(self.ids[1:-1, 1:-1, 1:-1]).reshape(-1)

    @cached_property
    def adjacency(self) -> np.ndarray:
        """For each brick the positions of its 27 neighbours; zeros for ghost bricks, which have no use for it."""
        table = np.zeros((prod(self.ring), 27), dtype=np.int32)
        for k, step in enumerate(NEIGHBOURS):
            moved = self.ids[tuple(slice(1 + d, n + 1 + d) for d, n in zip(step, self.counts, strict=True))]
            table[self.interior, k] = moved.reshape(-1)
        return table

    def pack(self, cells: Any, halo: Shape, xp: Any) -> Any:
        """A buffer from the cells of interior and halo; NaN where nothing is given.

        Args:
            cells: array of the interior's extents and `halo` more cells at both ends of each axis.
            halo: at most a brick's extent along each axis.
        """
        extents = tuple(n * b for n, b in zip(self.ring, self.brick, strict=True))
        whole = xp.full(extents, float("nan"), dtype=cells.dtype)
        box = zip(self.brick, halo, self.shape, strict=True)
        whole[tuple(slice(b - h, b + n + h) for b, h, n in box)] = cells
        split = [k for n, b in zip(self.ring, self.brick, strict=True) for k in (n, b)]
        bricks = whole.reshape(split).transpose(0, 2, 4, 1, 3, 5).reshape(-1, self.volume)
        buffer = xp.empty_like(bricks)
        buffer[xp.asarray(self.ids.reshape(-1))] = bricks
        return buffer.reshape(-1)

    def unpack(self, buffer: Any, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        """The cells lo .. lo + shape of a buffer, as an array of that shape."""
        axes = [xp.arange(start, start + n) for start, n in zip(lo, shape, strict=True)]
        views = [a.reshape([-1 if k == axis else 1 for k in range(3)]) for axis, a in enumerate(axes)]
        bricks = [v // b + 1 for v, b in zip(views, self.brick, strict=True)]
        inside = [v % b for v, b in zip(views, self.brick, strict=True)]
        number = xp.asarray(self.ids)[bricks[0], bricks[1], bricks[2]].astype(xp.int64)
        _, by, bz = self.brick
        return buffer[number * self.volume + (inside[0] * by + inside[1]) * bz + inside[2]]


def prepare_bricks(variant: Any, bench: Any) -> Prepared:
    """Device buffers in bricks and the launch of a `BaselineVariant`; conversion is done here, untimed."""
    baseline: Baseline = variant.baseline
    assert baseline.bricks is not None
    grid, xp = BrickGrid(baseline.shape, baseline.bricks), bench.xp
    halo = baseline.model.radius
    lo = tuple(-h for h in halo)
    whole = tuple(n + 2 * h for n, h in zip(baseline.shape, halo, strict=True))

    def packed(source: str) -> Any:
        return grid.pack(bench.question.inputs[source](lo, whole, xp), halo, xp)

    buffers = {
        field: bench.shared(("bricks", source, grid, halo), lambda source=source: packed(source))
        for field, source in variant.inputs.items()
    }
    for k, name in enumerate(baseline.model.outputs):
        buffers[name] = bench.shared(("bricks", k, grid), lambda: xp.empty(grid.elements, dtype="float64"))
    tables = bench.shared(
        ("brick tables", grid), lambda: (xp.asarray(grid.interior), xp.asarray(grid.adjacency.reshape(-1)))
    )
    buffers |= dict(zip(("bricks", "near"), tables, strict=True))
    outputs = [buffers[name] for name in baseline.model.outputs]
    return Prepared(
        enqueue=variant.enqueue(bench, buffers),
        outputs=outputs,
        read=lambda k, lo, shape: grid.unpack(outputs[k], lo, shape, xp),
    )


def run_on_host(baseline: Baseline, fields: Mapping[str, np.ndarray], order: int | None = None) -> list[np.ndarray]:
    """Outputs of the interior, computed by the kernel's text on the CPU.

    Raises:
        AssertionError: where a ghost brick was written.
    """
    from repro.baselines import emulate
    from repro.baselines.check import UNTOUCHED

    assert baseline.bricks is not None
    grid = BrickGrid(baseline.shape, baseline.bricks, order)
    buffers = {name: grid.pack(values, baseline.model.radius, np) for name, values in fields.items()}
    for name in baseline.model.outputs:
        buffers[name] = np.full(grid.elements, UNTOUCHED)
    emulate.run(baseline, buffers | {"bricks": grid.interior, "near": np.ascontiguousarray(grid.adjacency.reshape(-1))})
    ghosts = np.setdiff1d(grid.ids.reshape(-1), grid.interior)
    for name in baseline.model.outputs:
        written = buffers[name].reshape(-1, grid.volume)[ghosts] != UNTOUCHED
        assert not written.any(), f"{name}: {int(written.sum())} cells of ghost bricks were written"
    return [grid.unpack(buffers[name], (0, 0, 0), baseline.shape, np) for name in baseline.model.outputs]
