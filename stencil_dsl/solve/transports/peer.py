"""Ranks that are threads of one process, each with a GPU of its own; faces are copied from device to device.

A message is the sender's buffer with an event that says when it is packed. The receiver copies it on its own stream and
answers with an event that says when it is copied; nothing waits on the host except for the other thread to come by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.transports.base import Message, Pending
from stencil_dsl.solve.transports.in_process import InProcess, Mailroom


class Cuda:
    """What a rank asks of its GPU."""

    def __init__(self, rank: int) -> None:
        cupy = require_cupy()
        count = cupy.cuda.runtime.getDeviceCount()
        if rank >= count:
            raise GpuUnavailableError(f"rank {rank} has no GPU: {count} are visible, and each rank needs its own")
        cupy.cuda.Device(rank).use()

    def record(self) -> Any:
        """An event behind everything on the current stream."""
        return require_cupy().cuda.get_current_stream().record()

    def wait(self, event: Any) -> None:
        """Let the current stream wait, not the host."""
        require_cupy().cuda.get_current_stream().wait_event(event)

    def copy(self, target: Any, source: Any) -> None:
        """Between devices, on the current stream."""
        cupy = require_cupy()
        cupy.cuda.runtime.memcpyPeerAsync(
            target.data.ptr,
            target.device.id,
            source.data.ptr,
            source.device.id,
            target.nbytes,
            cupy.cuda.get_current_stream().ptr,
        )


class Peer(InProcess):
    """One rank of a mailroom, on the GPU of the same number.

    Raises:
        GpuUnavailableError: where there are fewer GPUs than ranks.
    """

    def __init__(self, room: Mailroom, rank: int, device: Any = None) -> None:
        super().__init__(room, rank)
        self.device = Cuda(rank) if device is None else device

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
