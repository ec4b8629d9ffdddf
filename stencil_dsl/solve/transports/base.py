"""What a transport must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

TIMEOUT_SECONDS = 60.0
"""How long a rank waits for another before it gives up."""


Capture = Literal["none", "own", "joint"]
"""Whether steps that exchange can be captured in CUDA graphs: not, each rank's in one of its own, or all in one."""


@dataclass(frozen=True)
class Message:
    """A contiguous array on its way to or from another rank.

    Attributes:
        tag: tells messages between the same two ranks apart; several with one tag arrive in the order sent.
        what: for error messages.
    """

    peer: int
    tag: int
    array: Any
    what: str


class Captured:
    """A CUDA graph, which a transport drops where it must go before the transport itself does."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph


class Pending(ABC):
    """Messages on their way."""

    @abstractmethod
    def wait(self) -> None:
        """Return when everything has arrived and what was sent may be overwritten.

        Raises:
            StencilError: where a peer is silent for too long, or has failed.
        """


class Transport(ABC):
    """One rank's end.

    Attributes:
        rank, size: this rank and how many there are.
        timeout: seconds to wait for a peer.
    """

    rank: int
    size: int
    timeout: float = TIMEOUT_SECONDS
    capture: Capture = "none"

    @abstractmethod
    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        """Begin to exchange; arrays must not be touched before `wait`."""

    @abstractmethod
    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank, on every rank; values are Python objects or host arrays."""

    def launched(self) -> None:  # noqa: B027 (most have nothing to do)
        """Called behind the launch of a graph that holds exchanges."""

    def captured(self, graph: Captured) -> None:  # noqa: B027
        """Called with every graph that holds exchanges of this rank."""

    def settle(self) -> None:  # noqa: B027
        """Return when everything that was posted has arrived, where the host would otherwise wait without a limit.

        Raises:
            StencilError: where a peer is silent for too long.
        """

    def barrier(self) -> None:
        """Return when every rank has come here."""
        self.allgather(None)


class Alone(Transport):
    """The only rank."""

    rank, size = 0, 1
    capture: Capture = "own"

    def post(self, sends: Sequence[Message], receives: Sequence[Message]) -> Pending:
        raise AssertionError("a single rank has nobody to talk to")

    def allgather(self, value: Any) -> list[Any]:
        return [value]
