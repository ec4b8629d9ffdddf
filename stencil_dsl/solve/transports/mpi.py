"""Ranks that are MPI processes. What is on a GPU goes through host memory, unless the MPI library takes it there."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import gpu_available, require_cupy
from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Alone, Message, Pending, Transport

LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""Environment variables by which MPI launchers are recognised."""

POLL_SECONDS = 2e-5


class Mpi(Transport):
    """A rank of an mpi4py communicator (default: the world).

    Args:
        device_buffers: the MPI library takes addresses of device memory; one that does not would crash.

    Raises:
        StencilError: where mpi4py is missing.
    """

    def __init__(
        self, communicator: Any = None, timeout: float = TIMEOUT_SECONDS, device_buffers: bool = False
    ) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise StencilError(f"ranks over MPI need mpi4py and an MPI library: {error}; pip install mpi4py") from error
        self._mpi = MPI
        # A communicator of our own, so that tags cannot meet those of the program.
        self.communicator = (communicator or MPI.COMM_WORLD).Dup()
        self.rank, self.size = self.communicator.Get_rank(), self.communicator.Get_size()
        self.timeout, self.device_buffers = timeout, device_buffers

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        if self.device_buffers and any(_on_device(m) for m in sends):
            # MPI knows nothing of streams: what is sent must be there.
            require_cupy().cuda.get_current_stream().synchronize()
        into, out = ([self._host(m, full) for m in messages] for messages, full in ((receives, False), (sends, True)))
        requests = [(m, self.communicator.Irecv(a, m.peer, m.tag)) for m, a in zip(receives, into, strict=True)]
        requests += [(m, self.communicator.Isend(a, m.peer, m.tag)) for m, a in zip(sends, out, strict=True)]
        staged = [(m.array, a) for m, a in zip(receives, into, strict=True) if a is not m.array]
        return _Requests(self, requests, staged, out)

    def _host(self, m: Message, full: bool) -> Any:
        """What MPI is given of a message: its array, or host memory in place of it."""
        if self.device_buffers or not _on_device(m):
            return m.array
        return m.array.get() if full else np.empty(m.array.shape, m.array.dtype)

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
    """Messages under way.

    Attributes:
        staged: device arrays and the host memory that they are received in.
        out: what is sent, which has to last until then.
    """

    def __init__(
        self,
        end: Mpi,
        requests: list[tuple[Message, Any]],
        staged: Sequence[tuple[Any, Any]],
        out: Sequence[Any],
    ) -> None:
        self.end, self.requests, self.staged, self.out = end, requests, staged, out

    def wait(self) -> None:
        for message, request in self.requests:
            self.end._within(request, f"{message.what} (peer: rank {message.peer})")
        for array, host in self.staged:
            array.set(host)


def _on_device(m: Message) -> bool:
    return hasattr(m.array, "__cuda_array_interface__")


def world(timeout: float = TIMEOUT_SECONDS, over: Literal["mpi", "nccl"] = "mpi") -> Transport:
    """All processes of an MPI launch (`mpirun -n N python program.py`); outside of one, this process alone.

    Where there are GPUs, each process of a host takes one of its own as long as there are enough.

    Args:
        timeout: seconds that a rank waits for another.
        over: how faces travel: by MPI, between GPUs through host memory, or from GPU to GPU by NCCL.
    """
    if not any(name in os.environ for name in LAUNCHED):
        return Alone()
    found = Mpi(timeout=timeout)
    if found.size == 1:
        return Alone()
    if gpu_available():
        cupy = require_cupy()
        here = found.communicator.Split_type(found._mpi.COMM_TYPE_SHARED).Get_rank()
        cupy.cuda.Device(here % cupy.cuda.runtime.getDeviceCount()).use()
    if over == "nccl":
        from stencil_dsl.solve.transports.nccl import Nccl

        return Nccl(found)
    return found
