"""Ranks that are threads of one process, each with a GPU of its own; faces are copied from device to device.

A message is the sender's buffer with an event that says when it is packed. The receiver copies it on its own stream and
answers with an event that says when it is copied; nothing waits on the host except for the other thread to come by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.streams import mark
from stencil_dsl.solve.transports.base import Capture, Message, Pending
from stencil_dsl.solve.transports.in_process import InProcess, Mailroom

ALREADY_ENABLED = 704
"""cudaErrorPeerAccessAlreadyEnabled."""


class Cuda:
    """What a rank asks of its GPU."""

    def __init__(self, rank: int, size: int) -> None:
        cupy = require_cupy()
        count = cupy.cuda.runtime.getDeviceCount()
        if rank >= count:
            raise GpuUnavailableError(f"rank {rank} has no GPU: {count} are visible, and each rank needs its own")
        cupy.cuda.Device(rank).use()
        for other in range(size):
            if other != rank and cupy.cuda.runtime.deviceCanAccessPeer(rank, other):
                self._reach(cupy, other)

    @staticmethod
    def _reach(cupy: Any, other: int) -> None:
        """Let the current device use another one's memory; without, copies go through the host."""
        try:
            cupy.cuda.runtime.deviceEnablePeerAccess(other)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            if error.status != ALREADY_ENABLED:
                raise

    def record(self) -> Any:
        """An event behind everything on the current stream."""
        return mark()

    def wait(self, event: Any) -> None:
        """Let the current stream wait, not the host."""
        require_cupy().cuda.get_current_stream().wait_event(event)

    def copy(self, target: Any, source: Any) -> None:
        """Between devices, on the current stream."""
        cupy = require_cupy()
        # Not memcpyPeerAsync, which CUDA graphs cannot hold; addresses say which device has what.
        kind, stream = cupy.cuda.runtime.memcpyDefault, cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, target.nbytes, kind, stream)


class Peer(InProcess):
    """One rank of a mailroom, on the GPU of the same number.

    All ranks' steps can be captured in one CUDA graph, since every dependence between them is an event.

    Raises:
        GpuUnavailableError: where there are fewer GPUs than ranks.
    """

    capture: Capture = "joint"

    def __init__(self, room: Mailroom, rank: int, device: Any = None) -> None:
        super().__init__(room, rank)
        self.device = Cuda(rank, room.size) if device is None else device

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        for m in sends:
            self.room.box((self.rank, m.peer, m.tag)).put((m.array, self.device.record()))
        return _Copies(self, sends, receives)


class _Copies(Pending):
    def __init__(self, end: Peer, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        self.end, self.sends, self.receives = end, sends, receives

    def wait(self) -> None:
        end = self.end
        for m in self.receives:
            source, packed = end.room.get((m.peer, end.rank, m.tag), m.what, end.rank, m.peer)
            end.device.wait(packed)
            end.device.copy(m.array, source)
            end.room.box(("copied", end.rank, m.peer, m.tag)).put(end.device.record())
        # The buffers may be packed again once the others have copied them.
        for m in self.sends:
            what = f"the receipt for {m.what}"
            end.device.wait(end.room.get(("copied", m.peer, end.rank, m.tag), what, end.rank, m.peer))
