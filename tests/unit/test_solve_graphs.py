"""One CUDA graph of the steps of several devices, on stand-ins that run captured work in any order its events allow."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from stencil_dsl import StencilError
from stencil_dsl.solve import branches, run_ranks, stepper, streams
from stencil_dsl.solve.branches import Beside, Branches
from stencil_dsl.solve.graphs import JointGraph
from stencil_dsl.solve.stepper import Stepper
from stencil_dsl.solve.transports.base import Message
from stencil_dsl.solve.transports.in_process import Mailroom
from stencil_dsl.solve.transports.peer import Peer

HERE = threading.local()
RANKS = 3


class Node:
    def __init__(self, work, after: list[Node]) -> None:
        self.work, self.after = work, after


class Graph:
    """Nodes with what they come after; runs them in a random order that agrees with that."""

    launches = 0

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.streams: list[Stream] = []

    def launch(self, stream: Stream) -> None:
        Graph.launches += 1
        left, done = list(self.nodes), set[Node]()
        while left:
            ready = [n for n in left if done.issuperset(n.after)]
            node = random.choice(ready)
            node.work()
            done.add(node)
            left.remove(node)


class Stream:
    """Runs work at once, or adds it to the graph that it is captured in."""

    def __init__(self, non_blocking: bool = True, priority: int = 0) -> None:
        self.graph: Graph | None = None
        self.tail: list[Node] = []

    def __enter__(self) -> None:
        self.before, HERE.stream = HERE.stream, self

    def __exit__(self, *error) -> None:
        HERE.stream = self.before

    def enqueue(self, work) -> None:
        if self.graph is None:
            work()
        else:
            self.tail = [Node(work, self.tail)]
            self.graph.nodes += self.tail

    def wait_event(self, event: Event) -> None:
        if event.graph is not None and self.graph is None:
            self.graph, self.tail = event.graph, []
            self.graph.streams.append(self)
        assert event.graph is self.graph, "an event of another capture"
        self.tail = self.tail + event.tail

    def is_capturing(self) -> bool:
        return self.graph is not None

    def begin_capture(self) -> None:
        self.graph, self.tail = Graph(), []
        self.graph.streams.append(self)

    def end_capture(self) -> Graph:
        graph = self.graph
        assert graph is not None
        joined, pending = set(), list(self.tail)
        while pending:
            node = pending.pop()
            if node not in joined:
                joined.add(node)
                pending += node.after
        for each in graph.streams:
            each.graph, each.tail = None, []
        assert joined == set(graph.nodes), "work that is not joined"
        return graph


class Event:
    def __init__(self, disable_timing: bool) -> None:
        assert disable_timing

    def record(self, stream: Stream) -> None:
        self.graph, self.tail = stream.graph, list(stream.tail)


CUPY = SimpleNamespace(
    cuda=SimpleNamespace(Stream=Stream, Event=Event, get_current_stream=lambda: HERE.stream),
)


class Device:
    def record(self) -> Event:
        return streams.mark()

    def wait(self, event: Event) -> None:
        HERE.stream.wait_event(event)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        HERE.stream.enqueue(lambda: np.copyto(target, source))


class Ring:
    """A field of one cell a rank: u becomes 3 u + the one before + 2 the one behind, modulo a prime."""

    def __init__(self, end: Peer, start: int) -> None:
        self.u = [np.array([start]), np.zeros(1, int)]
        self.ghosts, self.out = np.zeros(2, int), np.zeros((2, 1), int)
        self.end, self.lane = end, Stream()
        self.cycle, self.points, self.buffers = 2, [], [SimpleNamespace(device="gpu")]
        self.values = SimpleNamespace(set=lambda values: None)

    def lasting(self) -> list:
        return []

    def phase(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(set=lambda values: None, run=lambda: self.step(number % 2))

    def step(self, now: int) -> None:
        me, main, old, new = self.end.rank, HERE.stream, self.u[now], self.u[1 - now]
        peers = [(me - 1) % RANKS, (me + 1) % RANKS]
        self.lane.wait_event(streams.mark())
        with self.lane:
            for side in (0, 1):
                HERE.stream.enqueue(lambda side=side: np.copyto(self.out[side], old))
            sends = [Message(p, side, self.out[side], "a cell") for side, p in enumerate(peers)]
            receives = [Message(p, 1 - side, self.ghosts[side : side + 1], "a cell") for side, p in enumerate(peers)]
            pending = self.end.post(sends, receives)
        main.enqueue(lambda: np.copyto(new, 3 * old))
        with self.lane:
            pending.wait()
        main.wait_event(streams.mark(self.lane))
        main.enqueue(lambda: np.copyto(new, (new + self.ghosts[0] + 2 * self.ghosts[1]) % 101))


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (streams, stepper, branches):
        monkeypatch.setattr(module, "require_cupy", lambda: CUPY)
    Graph.launches = 0


def test_all_ranks_in_one_graph() -> None:
    def program(end: Peer) -> list[int]:
        HERE.stream = Stream()
        ring = Ring(end, end.rank + 1)
        steps = Stepper(ring, end)  # type: ignore[arg-type]
        seen = []
        for count in (83, 5, 40):
            steps.run(0, count, lambda n: {}, True)
            seen.append(int(ring.u[steps.position][0]))
        return seen

    got = run_ranks(RANKS, program, timeout=20, transport=lambda room, rank: Peer(room, rank, Device()))
    u, want = np.arange(1, RANKS + 1), []
    for step in range(1, 129):
        u = (3 * u + np.roll(u, 1) + 2 * np.roll(u, -1)) % 101
        if step in (83, 88, 128):
            want.append(u.tolist())
    assert np.transpose(got).tolist() == want
    assert Graph.launches == 5 + 2


def test_a_rank_that_does_not_capture_is_an_error_in_time() -> None:
    HERE.stream = Stream()
    end = Peer(Mailroom(2, timeout=0.2), 0, Device())
    with pytest.raises(StencilError, match="rank 0 waited 0.2 s for the end of a graph of rank 1"):
        JointGraph(end).capture(Stream(), lambda: None)


def test_pieces_of_a_sweep_are_branches_of_a_graph_and_behind_each_other_else() -> None:
    HERE.stream = stream = Stream()
    seen: list[str] = []

    def enqueue(name: str) -> None:
        HERE.stream.enqueue(lambda: seen.append(name))

    pieces = Branches([lambda name=name: enqueue(name) for name in "abcd"])  # type: ignore[misc]

    def step() -> None:
        enqueue("before")
        pieces()
        enqueue("after")

    step()
    assert seen == ["before", *"abcd", "after"]
    orders = set()
    for _ in range(2):
        stream.begin_capture()
        step()
        step()
        graph = stream.end_capture()
        for _ in range(20):
            seen.clear()
            graph.launch(stream)
            for half in (seen[:6], seen[6:]):
                assert half[0] == "before" and half[-1] == "after" and sorted(half[1:-1]) == list("abcd")
                orders.add("".join(half[1:-1]))
    assert len(orders) > 3, "no piece ever overtook another"


def test_what_waits_for_faces_runs_beside_the_inner_part() -> None:
    HERE.stream = stream = Stream()
    seen: list[str] = []

    def enqueue(name: str) -> None:
        HERE.stream.enqueue(lambda: seen.append(name))

    beside = Beside(lambda: enqueue("inner"), [lambda: enqueue("wait"), lambda: enqueue("faces")])

    def step() -> None:
        enqueue("before")
        beside()
        enqueue("after")

    step()
    assert seen == ["before", "inner", "wait", "faces", "after"] and HERE.stream is stream
    stream.begin_capture()
    step()
    graph, places = stream.end_capture(), set()
    for _ in range(30):
        seen.clear()
        graph.launch(stream)
        assert seen[0] == "before" and seen[-1] == "after" and seen.index("wait") < seen.index("faces")
        places.add(seen.index("inner"))
    assert len(places) > 1, "the inner part always came at one place"
