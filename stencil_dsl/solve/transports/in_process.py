"""Ranks that are threads of one process, on host arrays."""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Message, Pending, Transport

POLL_SECONDS = 0.02
"""How often a waiting rank looks whether another one has failed."""


class Turn:
    """A lock that a rank holds except while it waits for others, so that one at a time does something."""

    def __init__(self) -> None:
        self._lock, self._mine = threading.Lock(), threading.local()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._mine.held = True

    def __exit__(self, *error: Any) -> None:
        self._mine.held = False
        self._lock.release()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Let others have the turn, if this thread has it."""
        if not getattr(self._mine, "held", False):
            yield
            return
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


class Mailroom:
    """What the ranks of one process share.

    Attributes:
        failed: the first rank that failed, and with what.
        round: how many values each rank has gathered.
        turn: held by the rank that captures its part of a CUDA graph; a graph must not be changed by two at a time.
    """

    def __init__(self, size: int, timeout: float = TIMEOUT_SECONDS) -> None:
        if size < 1:
            raise StencilError(f"there is at least one rank, got {size}")
        self.size, self.timeout = size, timeout
        self.failed: tuple[int, BaseException] | None = None
        self.round: dict[int, int] = defaultdict(int)
        self.turn = Turn()
        self._boxes: dict[Any, queue.SimpleQueue[Any]] = defaultdict(queue.SimpleQueue)
        self._lock = threading.Lock()

    def box(self, key: Any) -> queue.SimpleQueue[Any]:
        with self._lock:
            return self._boxes[key]

    def fail(self, rank: int, error: BaseException) -> None:
        """Let the others know, so that they do not wait in vain."""
        with self._lock:
            self.failed = self.failed or (rank, error)

    def restart(self) -> None:
        """Forget a failure and what was on its way then; no rank may be waiting."""
        with self._lock:
            self.failed, self.round = None, defaultdict(int)
            self._boxes.clear()

    def get(self, key: Any, what: str, rank: int, peer: int) -> Any:
        """The next item of a box.

        Raises:
            StencilError: where it does not come in time, or some rank has failed.
        """
        box, end = self.box(key), time.monotonic() + self.timeout
        try:
            return box.get_nowait()
        except queue.Empty:
            pass
        with self.turn.given_up():
            return self._wait(box, end, what, rank, peer)

    def _wait(self, box: queue.SimpleQueue[Any], end: float, what: str, rank: int, peer: int) -> Any:
        while True:
            try:
                return box.get(timeout=POLL_SECONDS)
            except queue.Empty:
                pass
            if self.failed is not None:
                failed, error = self.failed
                raise StencilError(f"rank {rank} gives up, because rank {failed} failed: {error}") from error
            if time.monotonic() > end:
                raise StencilError(
                    f"rank {rank} waited {self.timeout:g} s for {what} of rank {peer}, which did not come; is it still"
                    " running, and does it make the same steps?"
                )


class InProcess(Transport):
    """One rank of a mailroom."""

    def __init__(self, room: Mailroom, rank: int) -> None:
        self.room, self.rank, self.size, self.timeout = room, rank, room.size, room.timeout

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        for m in sends:
            self.room.box((self.rank, m.peer, m.tag)).put(np.array(m.array))
        return _Arrivals(self, receives)

    def allgather(self, value: Any) -> list[Any]:
        self.room.round[self.rank] += 1
        now = self.room.round[self.rank]
        for peer in range(self.size):
            self.room.box(("gather", now, self.rank, peer)).put(value)
        return [
            self.room.get(("gather", now, peer, self.rank), "a value", self.rank, peer) for peer in range(self.size)
        ]


class _Arrivals(Pending):
    def __init__(self, end: InProcess, receives: Sequence[Message]) -> None:
        self.end, self.receives = end, receives

    def wait(self) -> None:
        for m in self.receives:
            np.copyto(m.array, self.end.room.get((m.peer, self.end.rank, m.tag), m.what, self.end.rank, m.peer))


def run_ranks(
    size: int,
    program: Callable[[Any], Any],
    timeout: float = TIMEOUT_SECONDS,
    transport: Callable[[Mailroom, int], Transport] = InProcess,
) -> list[Any]:
    """Run a program on every rank, each in a thread, and give what they return.

    Args:
        program: called with the rank's transport.
        timeout: seconds that a rank waits for another.

    Raises:
        BaseException: what the first rank to fail raised.
    """
    room = Mailroom(size, timeout)
    results: list[Any] = [None] * size

    def work(rank: int) -> None:
        try:
            results[rank] = program(transport(room, rank))
        except BaseException as error:
            room.fail(rank, error)

    threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if room.failed is not None:
        raise room.failed[1]
    return results
