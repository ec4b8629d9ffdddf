"""CUDA graphs of whole cycles of steps: of one device, or one graph of all devices of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from stencil_dsl.solve.streams import mark
from stencil_dsl.solve.transports.base import Captured

if TYPE_CHECKING:
    from stencil_dsl.solve.transports.base import Transport
    from stencil_dsl.solve.transports.peer import Peer


class Capturer(Protocol):
    """Makes graphs of what a function enqueues, and launches them."""

    def capture(self, stream: Any, enqueue: Callable[[], None]) -> Any: ...

    def launch(self, graph: Any, stream: Any) -> None: ...


class OwnGraph:
    """This rank's work alone."""

    def __init__(self, end: Transport) -> None:
        self.end = end

    def capture(self, stream: Any, enqueue: Callable[[], None]) -> Any:
        stream.begin_capture()
        try:
            enqueue()
        except BaseException:
            stream.end_capture()
            raise
        made = Captured(stream.end_capture())
        self.end.captured(made)
        return made

    def launch(self, graph: Captured, stream: Any) -> None:
        graph.graph.launch(stream)
        self.end.launched()


class JointGraph:
    """The work of all ranks of a process in one graph, which the first rank launches.

    Every rank enqueues its own part from its own thread. The first rank's stream begins the capture; the others' join
    it by waiting for an event of it, and come back to it in the same way, as do the streams that ghost cells travel on.
    """

    def __init__(self, end: Peer, mark: Callable[[Any], Any] = mark) -> None:
        self.end, self.room, self.mark = end, end.room, mark
        self.others = [r for r in range(end.size) if r != 0]

    def _send(self, what: str, to: int, event: Any) -> None:
        self.room.box((what, self.end.rank, to)).put(event)

    def _receive(self, what: str, peer: int) -> Any:
        return self.room.get((what, peer, self.end.rank), f"the {what} of a graph", self.end.rank, peer)

    def capture(self, stream: Any, enqueue: Callable[[], None]) -> Any:
        with self.room.turn:
            if self.end.rank:
                stream.wait_event(self._receive("begin", 0))
                enqueue()
                self._send("end", 0, self.mark(stream))
                # Until then what this rank enqueues would still be captured.
                return self._receive("capture", 0)
            stream.begin_capture()
            try:
                begin = self.mark(stream)
                for rank in self.others:
                    self._send("begin", rank, begin)
                enqueue()
                for rank in self.others:
                    stream.wait_event(self._receive("end", rank))
            except BaseException:
                stream.end_capture()
                raise
            graph = stream.end_capture()
            for rank in self.others:
                self._send("capture", rank, None)
            return graph

    def launch(self, graph: Any, stream: Any) -> None:
        if self.end.rank:
            self._send("start", 0, self.mark(stream))
            stream.wait_event(self._receive("finish", 0))
            return
        for rank in self.others:
            stream.wait_event(self._receive("start", rank))
        graph.launch(stream)
        finish = self.mark(stream)
        for rank in self.others:
            self._send("finish", rank, finish)


def capturer(transport: Transport) -> Capturer | None:
    """What captures the steps of a rank; None where they cannot be."""
    if transport.capture == "joint":
        return JointGraph(transport)  # type: ignore[arg-type]
    return OwnGraph(transport) if transport.capture == "own" else None
