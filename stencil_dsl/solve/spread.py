"""One simulation over several devices of this machine, used like one on a single device.

loop = TimeLoop(heat, (512, 512, 512), rules)
loop = spread(2, heat, (512, 512, 512), rules)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import gpu_available
from stencil_dsl.solve.loop import TimeLoop
from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Transport
from stencil_dsl.solve.transports.in_process import InProcess, Mailroom


class Spread:
    """Loops of all ranks behind the interface of one. Every call is made on all of them, each in its own thread.

    Calls that give a value give the first rank's; values that depend on the whole field are the same on all of them.
    Functions that are handed in (scalars, initial values, events) are called by every rank.
    """

    def __init__(self, size: int, make: Callable[[Transport], TimeLoop], transport: Any, timeout: float) -> None:
        self._room = Mailroom(size, timeout)
        self._threads = [ThreadPoolExecutor(1, f"rank{rank}") for rank in range(size)]
        self.loops: list[TimeLoop] = self._all(lambda rank: make(transport(self._room, rank)))

    def _all(self, work: Callable[[int], Any]) -> list[Any]:
        def guarded(rank: int) -> Any:
            try:
                return work(rank)
            except BaseException as error:
                self._room.fail(rank, error)
                raise

        futures = [thread.submit(guarded, rank) for rank, thread in enumerate(self._threads)]
        errors = [f.exception() for f in futures]
        if self._room.failed is not None:
            raise self._room.failed[1]
        assert not any(errors)
        return [f.result() for f in futures]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self.loops[0], name)
        if not callable(value):
            return value

        def call(*args: Any, **more: Any) -> Any:
            def one(rank: int) -> Any:
                mine = [a[rank] if isinstance(a, PerRank) else a for a in args]
                return getattr(self.loops[rank], name)(*mine, **more)

            results = self._all(one)
            # Sources and receivers are objects of each rank, and handed back as such.
            return PerRank(results) if name in ("source", "receiver") else results[0]

        return call

    def __getitem__(self, name: str) -> Any:
        raise StencilError(f"the cells of {name!r} lie on several devices; use to_numpy, or loops[rank][{name!r}]")

    def close(self) -> None:
        """End the ranks' threads."""
        for thread in self._threads:
            thread.shutdown()


class PerRank(list):
    """One object a rank."""


def spread(
    size: int,
    *args: Any,
    device: Literal["gpu", "cpu"] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    **more: Any,
) -> Spread:
    """A `TimeLoop` over several GPUs of this machine (or, on the host, over threads); arguments as there.

    Raises:
        GpuUnavailableError: where there are fewer GPUs than ranks.
    """
    where = device or ("gpu" if gpu_available() else "cpu")
    transport: Any = InProcess
    if where == "gpu":
        from stencil_dsl.solve.transports.peer import Peer as transport
    return Spread(size, lambda t: TimeLoop(*args, device=where, ranks=t, **more), transport, timeout)
