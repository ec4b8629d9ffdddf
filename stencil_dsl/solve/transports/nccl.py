"""Ranks with a GPU each that exchange faces through NCCL, over whatever links there are.

Everything else (gathering values, agreeing) goes through another transport: threads of a process, or MPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.transports.base import Message, Pending, Transport


class Nccl(Transport):
    """One rank of an NCCL communicator.

    Args:
        control: a transport of the same ranks. The current device must be this rank's own.
        library: stands in for `cupy.cuda.nccl`.
    """

    def __init__(self, control: Transport, library: Any = None) -> None:
        self.control, self.rank, self.size, self.timeout = control, control.rank, control.size, control.timeout
        self.library = require_cupy().cuda.nccl if library is None else library
        mine = self.library.get_unique_id() if self.rank == 0 else None
        self.communicator = self.library.NcclCommunicator(self.size, control.allgather(mine)[0], self.rank)

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        # NCCL has no tags: between two ranks, the first send meets the first receive.
        self.library.groupStart()
        for m in sorted(sends, key=lambda m: (m.peer, m.tag)):
            self.communicator.send(*self._arguments(m))
        for m in sorted(receives, key=lambda m: (m.peer, m.tag)):
            self.communicator.recv(*self._arguments(m))
        self.library.groupEnd()
        return _InStream(self)

    def _arguments(self, m: Message) -> tuple[Any, ...]:
        kind = self.library.NCCL_FLOAT64 if m.array.dtype == "float64" else self.library.NCCL_FLOAT32
        return m.array.data.ptr, m.array.size, kind, m.peer, self._stream()

    def _stream(self) -> int:
        return require_cupy().cuda.get_current_stream().ptr

    def allgather(self, value: Any) -> list[Any]:
        return self.control.allgather(value)


class _InStream(Pending):
    """What follows on the stream follows the exchange; the host is told of errors that NCCL has noticed."""

    def __init__(self, end: Nccl) -> None:
        self.end = end

    def wait(self) -> None:
        self.end.communicator.check_async_error()
