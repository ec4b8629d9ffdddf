"""Getting values into the fields of a simulation and out of them, whichever rank holds what."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve import reductions
from stencil_dsl.solve.boxes import Domain
from stencil_dsl.solve.points import Receiver, Series, Source
from stencil_dsl.solve.program import Program
from stencil_dsl.solve.ranks import Ranks
from stencil_dsl.solve.stepper import Stepper

P = TypeVar("P", Source, Receiver)


class FieldAccess:
    """The fields of a simulation.

    Attributes:
        shape: extents of the whole interior.
        domain: the cells of this rank.
    """

    shape: tuple[int, ...]
    dtype: str
    domain: Domain
    ranks: Ranks
    program: Program
    stepper: Stepper
    composed: Stepper | None

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the state's fields."""
        return self.program.names

    def __getitem__(self, name: str) -> PaddedArray:
        """The array that holds this rank's part of a field now; after further steps it may hold another field."""
        self.ranks.transport.settle()
        return self.program.array(name, self.stepper.position)

    def set(self, name: str, data: Any, includes_halo: bool = False) -> None:
        """Give a field its values.

        Args:
            data: an array over the whole interior, a number, or a function of one index array an axis.
            includes_halo: the array's outer cells are the halo that the kernels need (`program.halo`); for fields that
                no step changes, whose faces are Keep().
        """
        array, halo = self[name], self.program.halo
        around = halo if includes_halo else ((0, 0),) * len(halo)
        shape = tuple(n + sum(w) for n, w in zip(self.shape, around, strict=True))
        # This rank's part, in the array's own indices.
        part = tuple(slice(lo, hi + sum(w)) for (lo, hi), w in zip(self.domain.box, around, strict=True))
        if callable(data):
            grid = np.ogrid[tuple(slice(p.start - w[0], p.stop - w[0]) for p, w in zip(part, around, strict=True))]
            values = np.broadcast_to(data(*grid), tuple(p.stop - p.start for p in part))
        else:
            whole = data.get() if hasattr(data, "get") else np.asarray(data)
            if whole.ndim and whole.shape != shape:
                raise StencilError(f"values of {name!r} have the shape {shape}, got {whole.shape}")
            values = np.broadcast_to(whole, shape)[part]
        target = array.with_halo(halo) if includes_halo else array.interior
        target[...] = values if array.device == "cpu" else require_cupy().asarray(values.astype(self.dtype))

    def to_numpy(self, name: str) -> np.ndarray:
        """A field's values over the whole interior, on the host of every rank."""
        return self.ranks.assemble(self[name].to_numpy(), self.domain.box, self.shape)

    # -- reductions: the same bits for every number of ranks

    def total(self, name: str) -> float:
        """Sum of a field over all cells."""
        return self._sum(self[name].interior)

    def dot(self, name: str, other: str) -> float:
        """Sum of the products of two fields."""
        return self._sum(self[name].interior.astype("float64") * self[other].interior.astype("float64"))

    def norm(self, name: str, order: float = 2) -> float:
        """The 1-, 2- or maximum norm of a field (order 1, 2, inf)."""
        if order == 2:
            return float(np.sqrt(self.dot(name, name)))
        if order == 1:
            return self._sum(abs(self[name].interior))
        local = reductions.norm(self[name], order)
        return float(np.max(self.ranks.transport.allgather(local)))

    def maximum(self, name: str) -> float:
        """The largest value of a field; NaN where a cell is."""
        return float(np.max(self.ranks.transport.allgather(reductions.maximum(self[name]))))

    def minimum(self, name: str) -> float:
        """The smallest value of a field; NaN where a cell is."""
        return float(np.min(self.ranks.transport.allgather(reductions.minimum(self[name]))))

    def _sum(self, cells: Any) -> float:
        rows = reductions.rows(cells)
        sums = rows.get() if hasattr(rows, "get") else np.asarray(rows)
        return reductions.finish(self.ranks.assemble(sums, self.domain.box[:-1], self.shape[:-1]))

    # -- points

    def source(self, field: str, positions: Any, series: Series) -> Source:
        """Add a series of values to a field at points, after every step.

        Args:
            field: name of a field of the state.
            positions: of one or more points, in cells; the centre of the first cell is 0. Between the centres a value
                is spread linearly.
            series: value by step (and point), or a function of the step's number; beyond an array's end nothing.

        Raises:
            StencilError: for points outside, and with temporal_steps above 1.
        """
        return self._points(Source(field, positions, series, self.domain))

    def receiver(self, field: str, positions: Any) -> Receiver:
        """Record a field at points after every step, for `traces`; arguments and errors as for `source`."""
        return self._points(Receiver(field, positions, self.domain))

    def _points(self, points: P) -> P:
        if self.composed is not None:
            raise StencilError("sources and receivers act after every step; use temporal_steps=1")
        self.program.add_points(points)
        self.stepper.changed()
        return points

    def traces(self, receiver: Receiver) -> np.ndarray:
        """What a receiver recorded: values by step and point, in float64, on every rank."""
        return receiver.interpolate(self.samples(receiver))

    def samples(self, receiver: Receiver) -> np.ndarray:
        """Values by step and cell around the receiver's points, from whichever rank has the cell."""
        parts = self.ranks.transport.allgather((receiver.mine, receiver.samples))
        whole = np.zeros((max(len(data) for _, data in parts), len(receiver.cells)), self.dtype)
        for mine, data in parts:
            if mine:
                whole[:, mine] = data
        return whole

    @property
    def receivers(self) -> list[Receiver]:
        return [p for p in self.program.points if isinstance(p, Receiver)]
