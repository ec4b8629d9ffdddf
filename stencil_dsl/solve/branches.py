"""Launches that do not depend on one another, side by side where a CUDA graph is captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.streams import current, mark, urgent


class Branches:
    """Launches as parallel branches of the graph that is being captured, else one after the other.

    The pieces of a sweep read its inputs and write disjoint boxes, so none waits for another one; behind each other
    every small piece would have the GPU to itself until its last block is done. Outside of a capture the events cost
    the host more than that.
    """

    def __init__(self, launches: Sequence[Callable[[], Any]]) -> None:
        self.launches = list(launches)
        self._streams: list[Any] = []

    def __call__(self) -> None:
        cuda = require_cupy().cuda
        here = cuda.get_current_stream()
        if not here.is_capturing():
            for launch in self.launches:
                launch()
            return
        if not self._streams:
            self._streams = [cuda.Stream(non_blocking=True) for _ in self.launches[1:]]
        begin, ends = mark(here), []
        for stream, launch in zip(self._streams, self.launches[1:], strict=True):
            stream.wait_event(begin)
            with current(stream):
                launch()
            ends.append(mark(stream))
        self.launches[0]()
        for end in ends:
            here.wait_event(end)


class Beside:
    """Work that runs beside a kernel on a stream of its own, captured or not: exchanges and what waits for them."""

    def __init__(self, kernel: Callable[[], Any], work: Sequence[Callable[[], Any]]) -> None:
        self.kernel, self.work = kernel, list(work)
        self._stream: Any = None

    def __call__(self) -> None:
        here = require_cupy().cuda.get_current_stream()
        if self._stream is None:
            self._stream = urgent()
        self._stream.wait_event(mark(here))
        self.kernel()
        with current(self._stream):
            for each in self.work:
                each()
            end = mark(self._stream)
        here.wait_event(end)
