"""Ranks that are MPI processes, on host arrays (or device arrays, where the MPI library takes them)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Alone, Message, Pending, Transport

LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""Environment variables by which MPI launchers are recognised."""

POLL_SECONDS = 2e-5


class Mpi(Transport):
    """A rank of an mpi4py communicator (default: the world).

    Raises:
        StencilError: where mpi4py is missing.
    """

    def __init__(self, communicator: Any = None, timeout: float = TIMEOUT_SECONDS) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise StencilError(f"ranks over MPI need mpi4py and an MPI library: {error}; pip install mpi4py") from error
        self._mpi = MPI
        # A communicator of our own, so that tags cannot meet those of the program.
        self.communicator = (communicator or MPI.COMM_WORLD).Dup()
        self.rank, self.size = self.communicator.Get_rank(), self.communicator.Get_size()
        self.timeout = timeout

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        if any(hasattr(m.array, "__cuda_array_interface__") for m in sends):
            # MPI knows nothing of streams: what is sent must be there.
            require_cupy().cuda.get_current_stream().synchronize()
        requests = [(m, self.communicator.Irecv(m.array, m.peer, m.tag)) for m in receives]
        requests += [(m, self.communicator.Isend(m.array, m.peer, m.tag)) for m in sends]
        return _Requests(self, requests)

    def allgather(self, value: Any) -> list[Any]:
        # Non-blocking barrier first: a dead peer is then noticed instead of waited for.
        self._within(self.communicator.Ibarrier(), "the other ranks to come to the same place")
        return self.communicator.allgather(value)

    def _within(self, request: Any, what: str) -> None:
        end = time.monotonic() + self.timeout
        while not request.Test():
            if time.monotonic() > end:
                raise StencilError(f"rank {self.rank} waited {self.timeout:g} s for {what}; is a rank dead or stuck?")
            time.sleep(POLL_SECONDS)


class _Requests(Pending):
    def __init__(self, end: Mpi, requests: list[tuple[Message, Any]]) -> None:
        self.end, self.requests = end, requests

    def wait(self) -> None:
        for message, request in self.requests:
            self.end._within(request, f"{message.what} (peer: rank {message.peer})")


def world(timeout: float = TIMEOUT_SECONDS) -> Transport:
    """All processes of an MPI launch (`mpirun -n N python program.py`); outside of one, this process alone."""
    if not any(name in os.environ for name in LAUNCHED):
        return Alone()
    found = Mpi(timeout=timeout)
    return found if found.size > 1 else Alone()
