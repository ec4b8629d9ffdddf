"""An interior cut into boxes, one a rank, and the exchange of ghost cells between them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from stencil_dsl.dialects.boundary import AXES
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.boxes import Box, Domain
from stencil_dsl.solve.ghosts import GhostFill, Widths
from stencil_dsl.solve.streams import current, mark, urgent
from stencil_dsl.solve.transports.base import Message, Pending, Transport


def cut(n: int, parts: int, part: int) -> tuple[int, int]:
    """The cells of one of several parts of n; sizes differ by one at most, larger ones first."""
    small, more = divmod(n, parts)
    first = part * small + min(part, more)
    return first, first + small + (part < more)


@dataclass(frozen=True)
class Ranks:
    """A grid of ranks over the interior.

    Attributes:
        transport: this rank's end.
        grid: ranks along each axis.
    """

    transport: Transport
    grid: tuple[int, ...]

    @staticmethod
    def along(transport: Transport, ndim: int, grid: Sequence[int] | None = None) -> Ranks:
        """Ranks in a grid; without one, all along x.

        Args:
            grid: ranks along the first axes; the last axis, whose cells are neighbours in memory, is not cut.

        Raises:
            StencilError: where the grid does not have as many places as there are ranks.
        """
        asked = (transport.size,) if grid is None else tuple(int(g) for g in grid)
        full = asked + (1,) * (ndim - len(asked))
        if transport.size > 1 and (len(full) != ndim or full[-1] != 1):
            names = ", ".join(AXES[ndim][:-1]) or "none"
            raise StencilError(f"an interior is cut along {names} (never along z), got a grid of {asked} ranks")
        if prod(full) != transport.size:
            raise StencilError(f"a grid of {asked} has {prod(full)} places for {transport.size} ranks")
        return Ranks(transport, full)

    @property
    def axes(self) -> tuple[int, ...]:
        """Axes that are cut."""
        return tuple(a for a, g in enumerate(self.grid) if g > 1)

    @property
    def place(self) -> tuple[int, ...]:
        """Where this rank is in the grid; the last axis runs fastest."""
        return tuple(int(i) for i in np.unravel_index(self.transport.rank, self.grid))

    def domain(self, shape: Sequence[int]) -> Domain:
        """This rank's cells.

        Raises:
            StencilError: where there are more ranks along an axis than cells.
        """
        for axis, (n, parts) in enumerate(zip(shape, self.grid, strict=True)):
            if parts > n:
                raise StencilError(f"{n} cells along axis {axis} cannot be given to {parts} ranks")
        box = tuple(cut(n, parts, part) for n, parts, part in zip(shape, self.grid, self.place, strict=True))
        return Domain(tuple(shape), box)

    def neighbour(self, axis: int, side: int, periodic: bool) -> int | None:
        """The rank before (0) or behind (1) this one along an axis, None at the end."""
        place = list(self.place)
        place[axis] += 2 * side - 1
        if not 0 <= place[axis] < self.grid[axis] and not periodic:
            return None
        place[axis] %= self.grid[axis]
        return int(np.ravel_multi_index(place, self.grid))

    def exchange(self, fill: GhostFill, between: Widths, axes: Sequence[int], tag: int) -> HaloExchange:
        return HaloExchange(self, fill, between, axes, tag)

    def assemble(self, part: Any, box: Box, shape: Sequence[int]) -> np.ndarray:
        """The whole array, of which each rank has a part, on every rank."""
        if self.transport.size == 1:
            return np.asarray(part)
        whole: np.ndarray | None = None
        for where, data in self.transport.allgather((box, part)):
            if whole is None:
                whole = np.empty(tuple(shape), data.dtype)
            whole[tuple(slice(lo, hi) for lo, hi in where)] = data
        assert whole is not None
        return whole


class HaloExchange:
    """Makes one array's ghost cells valid: axes that are cut by exchange, the others by their rules.

    Args:
        between: widths of the ghost cells between ranks; the fill's are those of this rank's faces.

    With corners the axes follow one another, each including the ghost cells of those before; the first cut axis is on
    its way while the caller computes. Without, all are. On a GPU what travels has a stream of its own.
    """

    def __init__(self, ranks: Ranks, fill: GhostFill, between: Widths, axes: Sequence[int], tag: int) -> None:
        self.ranks, self.fill, self.between, self.axes, self.tag = ranks, fill, between, tuple(axes), tag
        shape, names = fill.array.shape, AXES[fill.array.ndim]
        for axis in self.axes:
            if shape[axis] < max(between[axis]):
                raise StencilError(
                    f"{fill.name!r} needs {max(between[axis])} ghost cells along {names[axis]}, but rank"
                    f" {ranks.transport.rank} has {shape[axis]} cells there; use fewer ranks along {names[axis]}"
                )
        self.lane = Lane(fill.array)
        self.traffic = {axis: _AxisTraffic(self, axis) for axis in self.axes}
        self.pending: dict[int, Pending] = {}

    def start(self) -> None:
        for axis in range(self.fill.array.ndim):
            # Rules of outer faces, too; where corners depend on what has not arrived, `wait` fills them again.
            self.fill.apply_axis(axis)
        self._post(self.axes[:1] if self.fill.corners else self.axes)

    def wait(self) -> None:
        if not self.fill.corners:
            self._complete(self.axes)
            return
        first = self.axes[0]
        self._complete([first])
        for axis in range(first + 1, self.fill.array.ndim):
            self.fill.apply_axis(axis)
            if axis in self.traffic:
                self._post([axis])
                self._complete([axis])

    def _post(self, axes: Sequence[int]) -> None:
        with self.lane.behind():
            for axis in axes:
                self.pending[axis] = self.traffic[axis].post()

    def _complete(self, axes: Sequence[int]) -> None:
        with self.lane.again():
            for axis in axes:
                self.pending.pop(axis).wait()
                self.traffic[axis].unpack()
        self.lane.join()


class Lane:
    """The stream that ghost cells travel on beside the computing one; nothing on the host."""

    def __init__(self, array: PaddedArray) -> None:
        self.stream: Any = None
        if array.device == "gpu":
            # A sweep that starts at the same time has enough blocks to keep the few of a face waiting until its end.
            self.stream = urgent()

    def behind(self) -> AbstractContextManager[Any]:
        """Work that comes after what the current stream has been given."""
        if self.stream is not None:
            self.stream.wait_event(mark())
        return self.again()

    def again(self) -> AbstractContextManager[Any]:
        """More work on the lane."""
        return nullcontext() if self.stream is None else current(self.stream)

    def join(self) -> None:
        """Let the current stream wait for the lane."""
        if self.stream is not None:
            require_cupy().cuda.get_current_stream().wait_event(mark(self.stream))


class _AxisTraffic:
    """Buffers and views of one axis."""

    def __init__(self, exchange: HaloExchange, axis: int) -> None:
        fill, ranks = exchange.fill, exchange.ranks
        self.xp, self.transport = fill.xp, ranks.transport
        n, (lo, hi) = fill.array.shape[axis], exchange.between[axis]
        # What goes to the rank before becomes its ghost cells behind, and the other way round.
        views = (
            (0, fill.view(axis, 0, hi), fill.view(axis, -lo, 0)),
            (1, fill.view(axis, n - lo, n), fill.view(axis, n, n + hi)),
        )
        self.sends: list[tuple[Message, Any]] = []
        self.receives: list[tuple[Message, Any]] = []
        for side, inner, ghosts in views:
            face = fill.faces[axis][side]
            peer = ranks.neighbour(axis, side, periodic=face is None)
            if peer is None or face is not None:
                continue
            what = f"ghost cells of {fill.name!r} along {AXES[fill.array.ndim][axis]}"
            base = (exchange.tag * 4 + axis) * 2
            if inner.size:
                self.sends.append((Message(peer, base + side, self._buffer(inner), what), inner))
            if ghosts.size:
                self.receives.append((Message(peer, base + 1 - side, self._buffer(ghosts), what), ghosts))

    def _buffer(self, view: Any) -> Any:
        return self.xp.empty(view.shape, view.dtype)

    def post(self) -> Pending:
        for message, view in self.sends:
            self.xp.copyto(message.array, view)
        return self.transport.post([m for m, _ in self.sends], [m for m, _ in self.receives])

    def unpack(self) -> None:
        for message, view in self.receives:
            self.xp.copyto(view, message.array)
