"""The ranks of one process, each with a thread of its own, told what to do by the caller's thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Transport
from stencil_dsl.solve.transports.in_process import InProcess, Mailroom

R = TypeVar("R")


class Crew:
    """Ranks that stay.

    Args:
        size: how many.
        device: "gpu" for the GPUs of this machine, one a rank; "cpu" for host arrays.
        over: how faces travel between GPUs: by copies from device to device ("peer") or by NCCL.
        timeout: seconds that a rank waits for another.

    Attributes:
        transports: each rank's end.

    Raises:
        GpuUnavailableError: where there are fewer GPUs than ranks.
    """

    def __init__(
        self, size: int, device: str, timeout: float = TIMEOUT_SECONDS, over: Literal["peer", "nccl"] = "peer"
    ) -> None:
        kind: Callable[[Mailroom, int], Transport] = InProcess
        if device == "gpu":
            from stencil_dsl.solve.transports.peer import Peer

            kind = Peer
        self.room = Mailroom(size, timeout)
        self._threads = [ThreadPoolExecutor(1, f"rank{rank}") for rank in range(size)]
        self.transports: list[Transport] = self.all(lambda rank: kind(self.room, rank))
        if device == "gpu" and over == "nccl":
            from stencil_dsl.solve.transports.nccl import Nccl

            ends = self.transports
            self.transports = self.all(lambda rank: Nccl(ends[rank]))

    def all(self, work: Callable[[int], R]) -> list[R]:
        """What every rank makes of its number, each in its own thread.

        Raises:
            BaseException: what the first rank to fail raised.
        """

        if self.room.failed is not None:
            self.room.restart()

        def guarded(rank: int) -> R:
            try:
                return work(rank)
            except BaseException as error:
                self.room.fail(rank, error)
                raise

        futures = [thread.submit(guarded, rank) for rank, thread in enumerate(self._threads)]
        errors = [f.exception() for f in futures]
        if self.room.failed is not None:
            raise self.room.failed[1]
        assert not any(errors)
        return [f.result() for f in futures]

    def close(self) -> None:
        """End the threads."""
        for thread in self._threads:
            thread.shutdown()
