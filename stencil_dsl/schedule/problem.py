"""What a lowering is given besides the stencil, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, f32, f64

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.expr import Graph
from stencil_dsl.schedule.layout import ITEMSIZE, Layout

if TYPE_CHECKING:
    from stencil_dsl.tilelib.library import TileLibrary

MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True)
class Problem:
    """One stencil on arrays of known form.

    Attributes:
        name: of the kernel.
        graph: the expressions.
        fields, scalars, outputs: names, in the order of the parameters.
        dtype: element type of everything.
        shape: extents of the interior; None where the kernel finds them at run time.
        inputs: the layout of each field (with shape None: origins only are meant).
        inplace: some output shares memory with a field, so that no cell may be computed twice.
        periodic: for each field, whether the cells before a row are its last ones and those behind it its first; its
            ghost cells along the last axis are not read then. Left away, none is.
    """

    name: str
    graph: Graph
    fields: tuple[str, ...]
    scalars: tuple[str, ...]
    outputs: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...] | None
    inputs: tuple[Layout, ...]
    inplace: bool = False
    periodic: tuple[bool, ...] = ()

    def wraps(self, field: int) -> bool:
        """Whether the rows of a field are periodic."""
        return bool(self.periodic) and self.periodic[field]

    @property
    def ndim(self) -> int:
        return self.graph.ndim

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def element(self):
        return f64 if self.dtype == "float64" else f32


@dataclass(frozen=True)
class Param:
    """One kernel parameter: a field, an output (of a given row and trip), or a scalar.

    Attributes:
        kind: "field", "output" or "scalar".
        index: which field, output or scalar.
        name: in the emitted file.
        shape: extents the kernel is told (fields: whole tiles may overhang the array by its slack).
        single: a field's elements one by one, beside the same in pairs.
    """

    kind: str
    index: int
    name: str
    shape: tuple[int, ...] | None = None
    single: bool = False


@dataclass
class Lowered:
    """A level-3 module and how to launch it.

    Attributes:
        grid: blocks along the three axes of the grid; None where it depends on a run-time shape.
        blocks_of: interior cells that one block owns along each axis, in the axes' order.
        grid_axes: for each axis of the grid, the axis of the stencil it walks.
        pair: elements of the innermost axis of an input view (1: not paired).
        checked: loads test every element against their view.
        libraries: tile libraries that the kernel calls.
    """

    module: ModuleOp
    kernel: str
    params: tuple[Param, ...]
    grid: tuple[int, ...] | None
    grid_axes: tuple[int, ...]
    blocks_of: tuple[int, ...]
    pair: int = 1
    checked: bool = False
    libraries: tuple[TileLibrary, ...] = ()


def grid_axes(ndim: int, block_order: str) -> tuple[int, ...]:
    """The stencil axis each grid axis walks; consecutive blocks follow the first."""
    axes = list(range(ndim - 1, -1, -1))
    if block_order == "y" and ndim > 1:
        axes[0], axes[1] = axes[1], axes[0]
    return tuple(axes)


def check_grid(counts: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Block counts in grid order.

    Raises:
        ScheduleError: where a count exceeds what a grid can have.
    """
    grid = tuple(counts[a] for a in axes)
    for n, most, axis in zip(grid, MAX_GRID, axes, strict=False):
        if n > most:
            raise ScheduleError(
                f"{n} blocks along axis {axis} exceed the {most} of a grid's later axes; use larger tiles or chunks,"
                " or the other block_order"
            )
    return grid + (1,) * (3 - len(grid))
