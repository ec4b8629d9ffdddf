"""One simulation over several devices of this machine, used like one on a single device.

loop = TimeLoop(heat, (512, 512, 512), rules)
loop = spread(2, heat, (512, 512, 512), rules)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import gpu_available
from stencil_dsl.solve.crew import Crew
from stencil_dsl.solve.loop import TimeLoop
from stencil_dsl.solve.transports.base import TIMEOUT_SECONDS, Transport


class Spread:
    """Loops of all ranks behind the interface of one. Every call is made on all of them, each in its own thread.

    Calls that give a value give the first rank's; values that depend on the whole field are the same on all of them.
    Functions that are handed in (scalars, initial values, events) are called by every rank.
    """

    def __init__(self, crew: Crew, make: Callable[[Transport], TimeLoop]) -> None:
        self._crew = crew
        self.loops: list[TimeLoop] = crew.all(lambda rank: make(crew.transports[rank]))

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

            results = self._crew.all(one)
            # Sources and receivers are objects of each rank, and handed back as such.
            return PerRank(results) if name in ("source", "receiver") else results[0]

        return call

    def each(self, work: Callable[[TimeLoop], Any]) -> list[Any]:
        """What every rank's thread makes of its loop."""
        return self._crew.all(lambda rank: work(self.loops[rank]))

    def __getitem__(self, name: str) -> Any:
        raise StencilError(f"the cells of {name!r} lie on several devices; use to_numpy, or loops[rank][{name!r}]")

    def close(self) -> None:
        """End the ranks' threads."""
        self._crew.close()


class PerRank(list):
    """One object a rank."""


def spread(
    size: int,
    *args: Any,
    device: Literal["gpu", "cpu"] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    over: Literal["peer", "nccl"] = "peer",
    **more: Any,
) -> Spread:
    """A `TimeLoop` over several GPUs of this machine (or, on the host, over threads); arguments as there.

    Args:
        timeout: seconds that a rank waits for another.
        over: how faces travel between GPUs: by copies from device to device, or by NCCL.

    Raises:
        GpuUnavailableError: where there are fewer GPUs than ranks.
    """
    where = device or ("gpu" if gpu_available() else "cpu")
    return Spread(Crew(size, where, timeout, over), lambda t: TimeLoop(*args, device=where, ranks=t, **more))
