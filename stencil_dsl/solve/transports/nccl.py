"""Ranks with a GPU each that exchange faces through NCCL, over whatever links there are.

Everything else (gathering values, agreeing) goes through another transport: threads of a process, or MPI.
"""

from __future__ import annotations

import importlib
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.streams import mark
from stencil_dsl.solve.transports.base import Capture, Captured, Message, Pending, Transport

OUTSTANDING = 64
"""Exchanges that may be enqueued before the oldest must be over: a device's queue that is full blocks the host."""

POLL_SECONDS = 2e-5


class Nccl(Transport):
    """One rank of an NCCL communicator.

    Args:
        control: a transport of the same ranks. The current device must be this rank's own.
        library: stands in for `cupy.cuda.nccl`.
    """

    capture: Capture = "own"

    def __init__(self, control: Transport, library: Any = None) -> None:
        self.control, self.rank, self.size, self.timeout = control, control.rank, control.size, control.timeout
        self.library = _nccl() if library is None else library
        mine = self.library.get_unique_id() if self.rank == 0 else None
        self.communicator = self.library.NcclCommunicator(self.size, control.allgather(mine)[0], self.rank)
        self._outstanding: deque[Any] = deque()
        self._graphs: weakref.WeakSet[Captured] = weakref.WeakSet()
        self._end = weakref.finalize(self, _close, self.communicator, self._graphs)

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        # NCCL has no tags: between two ranks, the first send meets the first receive.
        self.library.groupStart()
        for m in sorted(sends, key=lambda m: (m.peer, m.tag)):
            self.communicator.send(*self._arguments(m))
        for m in sorted(receives, key=lambda m: (m.peer, m.tag)):
            self.communicator.recv(*self._arguments(m))
        self.library.groupEnd()
        self.launched()
        return _InStream(self)

    def launched(self) -> None:
        event = self._mark()
        if event is not None:
            self._outstanding.append(event)
            self._wait(OUTSTANDING)

    def captured(self, graph: Captured) -> None:
        self._graphs.add(graph)

    def settle(self) -> None:
        self._wait(0)

    def _wait(self, left: int) -> None:
        """Return when no more than so many exchanges are under way; the time limit is for each of them anew."""
        end = time.monotonic() + self.timeout
        while self._outstanding:
            if self._outstanding[0].done:
                self._outstanding.popleft()
                end = time.monotonic() + self.timeout
                continue
            if len(self._outstanding) <= left:
                return
            if time.monotonic() > end:
                self._outstanding.clear()
                self._end.detach()
                self.communicator.abort()
                raise StencilError(
                    f"rank {self.rank} waited {self.timeout:g} s for an exchange over NCCL; is a rank dead or stuck?"
                )
            self.communicator.check_async_error()
            time.sleep(POLL_SECONDS)

    def _mark(self) -> Any:
        """An event behind what the current stream has been given; None while it is captured in a graph."""
        stream = require_cupy().cuda.get_current_stream()
        return None if stream.ptr > 2 and stream.is_capturing() else mark(stream)

    def _arguments(self, m: Message) -> tuple[Any, ...]:
        kind = self.library.NCCL_FLOAT64 if m.array.dtype == "float64" else self.library.NCCL_FLOAT32
        return m.array.data.ptr, m.array.size, kind, m.peer, self._stream()

    def _stream(self) -> int:
        return require_cupy().cuda.get_current_stream().ptr

    def allgather(self, value: Any) -> list[Any]:
        return self.control.allgather(value)


def _close(communicator: Any, graphs: Iterable[Captured]) -> None:
    """End a rank's part, which returns only when no graph holds its exchanges any more.

    Not by destroying the communicator: that waits for the other ranks, whom the same thread may have to destroy next.
    """
    for each in list(graphs):
        each.graph = None
    communicator.abort()


def _nccl() -> Any:
    """CuPy's module, which `import cupy` leaves out."""
    require_cupy()
    found = importlib.import_module("cupy.cuda.nccl")
    if not found.available:
        raise StencilError("CuPy does not find the NCCL library; pip install nvidia-nccl-cu13")
    return found


class _InStream(Pending):
    """What follows on the stream follows the exchange; the host is told of errors that NCCL has noticed."""

    def __init__(self, end: Nccl) -> None:
        self.end = end

    def wait(self) -> None:
        self.end.communicator.check_async_error()
