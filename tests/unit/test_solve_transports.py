"""Transports between GPUs, with stand-ins for the devices, and one loop spread over several."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import Periodic, TimeLoop, run_ranks, spread
from stencil_dsl.solve.transports.base import Captured, Message, Transport
from stencil_dsl.solve.transports.in_process import InProcess, Mailroom
from stencil_dsl.solve.transports.mpi import Mpi
from stencil_dsl.solve.transports.nccl import Nccl
from stencil_dsl.solve.transports.peer import Peer

RNG = np.random.default_rng(51)


@stencil
def box(u, c, i, j):
    return u[i, j] + c * (u[i - 1, j + 1] + u[i + 2, j - 1] - 2.0 * u[i, j])


class LateDevice:
    """A device whose stream does nothing before it must: everything is put off until an event is waited for.

    Copies read and write arrays of this process, so a missing or misplaced event shows as wrong values.
    """

    def __init__(self) -> None:
        self.work: list = []
        self.lock = threading.RLock()

    def enqueue(self, what) -> None:
        with self.lock:
            self.work.append(what)

    def record(self) -> LateEvent:
        with self.lock:
            return LateEvent(self, len(self.work))

    def wait(self, event: LateEvent) -> None:
        self.enqueue(event.happen)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        self.enqueue(lambda: np.copyto(target, source))

    def run_to(self, position: int) -> None:
        while True:
            with self.lock:
                done = getattr(self, "done", 0)
                if done >= position:
                    return
                self.done = done + 1
                what = self.work[done]
            what()


class LateEvent:
    def __init__(self, device: LateDevice, position: int) -> None:
        self.device, self.position = device, position

    def happen(self) -> None:
        self.device.run_to(self.position)


def test_peer_copies_are_ordered_by_events_alone() -> None:
    """Two ranks that pack, exchange and unpack in one buffer each, step after step, with devices that lag behind."""
    room = Mailroom(2, timeout=10)
    devices = [LateDevice(), LateDevice()]
    seen: list[list[float]] = [[], []]

    def rank(me: int) -> None:
        end, device, other = Peer(room, me, devices[me]), devices[me], 1 - me
        out, into = np.zeros(1), np.zeros(1)
        for step in range(4):
            device.enqueue(lambda step=step: out.fill(10 * me + step))
            pending = end.post([Message(other, 7, out, "a face")], [Message(other, 7, into, "a face")])
            pending.wait()
            device.enqueue(lambda: seen[me].append(float(into[0])))

    threads = [threading.Thread(target=rank, args=(me,)) for me in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for device in devices:
        device.run_to(len(device.work))
    assert seen == [[10, 11, 12, 13], [0, 1, 2, 3]]


def test_a_peer_that_does_not_copy_is_an_error_in_time() -> None:
    end = Peer(Mailroom(2, timeout=0.2), 0, LateDevice())
    with pytest.raises(StencilError, match="rank 0 waited 0.2 s for the receipt for a face of rank 1"):
        end.post([Message(1, 3, np.zeros(2), "a face")], []).wait()


class FakeNccl:
    """Matches the nth send between two ranks with the nth receive, as NCCL does."""

    NCCL_FLOAT64, NCCL_FLOAT32 = 8, 7

    def __init__(self, room: Mailroom) -> None:
        self.room, self.depth = room, 0

    def get_unique_id(self) -> tuple[str]:
        return ("id",)

    def NcclCommunicator(self, size: int, unique: tuple[str], rank: int) -> SimpleNamespace:  # noqa: N802
        assert unique == ("id",) and size == self.room.size

        def send(array, count, kind, peer, stream) -> None:
            assert count == array.size and kind == (8 if array.dtype == "float64" else 7)
            self.room.box(("nccl", rank, peer)).put(array.copy())

        def recv(array, count, kind, peer, stream) -> None:
            later.append((array, peer))

        later: list = []
        return SimpleNamespace(
            **{"send": send, "recv": recv, "later": later, "rank": rank, "abort": lambda: None},
            check_async_error=lambda: self._arrive(rank, later),
        )

    def _arrive(self, rank: int, later: list) -> None:
        while later:
            array, peer = later.pop(0)
            array[...] = self.room.get(("nccl", peer, rank), "nccl", rank, peer)

    def groupStart(self) -> None:  # noqa: N802
        pass

    groupEnd = groupStart


class HostNccl(Nccl):
    """Host arrays in place of device pointers."""

    def _mark(self):
        return SimpleNamespace(done=True)

    def _arguments(self, m: Message):
        size = self.library.NCCL_FLOAT64 if m.array.dtype == "float64" else self.library.NCCL_FLOAT32
        return m.array, m.array.size, size, m.peer, 0


@pytest.mark.parametrize("size", [2, 3])
def test_exchange_over_nccl_needs_no_tags(size: int) -> None:
    """With two ranks and a period both neighbours are the same rank: faces must not be mixed up."""
    start = RNG.normal(size=(9, 5))

    def run(ranks: Transport | None) -> np.ndarray:
        loop = TimeLoop(box, (9, 5), {"u": Periodic()}, device="cpu", engine="reference", ranks=ranks)
        loop.set("u", start)
        loop.run(3, c=0.2)
        return loop.to_numpy("u")

    def over_nccl(room: Mailroom, rank: int) -> Transport:
        return HostNccl(InProcess(room, rank), FakeNccl(room))

    alone = run(None)
    for each in run_ranks(size, run, timeout=20, transport=over_nccl):
        assert np.array_equal(each, alone)


def test_an_nccl_peer_that_is_silent_is_an_error_in_time() -> None:
    """The host is not kept waiting by a device that waits: neither at the end nor when its queue runs full."""
    aborted: list[bool] = []

    class Silent(HostNccl):
        def _mark(self):
            return SimpleNamespace(done=False)

    def ends(room: Mailroom, rank: int) -> Nccl:
        made = Silent(InProcess(room, rank), FakeNccl(room))
        made.communicator.abort = lambda: aborted.append(True)
        made.communicator.check_async_error = lambda: None
        return made

    def program(end: Nccl) -> None:
        for patient in (True, False):
            with pytest.raises(StencilError, match=f"rank {end.rank} waited 0.1 s for an exchange over NCCL"):
                for _ in range(3 if patient else 1000):
                    end.post([], [])
                end.settle()
                pytest.fail("nobody noticed")

    run_ranks(2, program, timeout=0.1, transport=ends)
    assert len(aborted) == 4


def test_nccl_ends_after_the_graphs_that_hold_its_exchanges() -> None:
    """Its library waits for them, and whoever drops a loop drops what it is made of in any order."""
    room, ended = Mailroom(1), []
    end = HostNccl(InProcess(room, 0), FakeNccl(room))
    graph = Captured(object())
    end.communicator.abort = lambda: ended.append(graph.graph)
    end.captured(graph)
    assert not ended and graph.graph is not None
    del end
    gc.collect()
    assert ended == [None]


def test_device_arrays_travel_through_host_memory_under_mpi() -> None:
    """With a stand-in for MPI that refuses anything else than NumPy arrays."""
    sent: dict = {}

    class Request:
        Test = staticmethod(lambda: True)

    class Communicator:
        def Isend(self, array, peer, tag):  # noqa: N802
            assert type(array) is np.ndarray
            sent[tag] = array
            return Request

        def Irecv(self, array, peer, tag):  # noqa: N802
            assert type(array) is np.ndarray
            array[...] = sent[tag]
            return Request

    class OnDevice(np.ndarray):
        __cuda_array_interface__ = {}  # noqa: RUF012
        get = lambda self: np.array(self)  # noqa: E731
        set = lambda self, host: np.copyto(self, host)  # noqa: E731

    end = Mpi.__new__(Mpi)
    end.communicator, end.rank, end.timeout, end.device_buffers = Communicator(), 0, 1.0, False
    source, target = np.arange(3.0).view(OnDevice), np.zeros(3).view(OnDevice)
    sent[5] = np.zeros(3)
    end.post([Message(1, 5, source, "a face")], [Message(1, 5, target, "a face")]).wait()
    end.post([], [Message(1, 5, target, "a face")]).wait()
    assert np.array_equal(target, source)


def test_a_loop_spread_over_ranks_is_used_like_one(tmp_path) -> None:
    start = RNG.normal(size=(9, 5))
    loops = [
        TimeLoop(box, (9, 5), {"u": Periodic()}, device="cpu", engine="reference"),
        spread(3, box, (9, 5), {"u": Periodic()}, device="cpu", engine="reference"),
    ]
    results = []
    for number, loop in enumerate(loops):
        loop.set("u", start)
        loop.source("u", (3.5, 2), lambda n: 1.0 + n)
        receiver = loop.receiver("u", [(2.5, 1), (8, 4)])
        loop.run(4, c=lambda n: 0.1 * n, checkpoint_to=tmp_path / f"{number}.npz")
        results.append((loop.to_numpy("u"), loop.traces(receiver), loop.total("u"), loop.step))
    one, three = results
    assert np.array_equal(one[0], three[0]) and np.array_equal(one[1], three[1]) and one[2:] == three[2:]
    assert (tmp_path / "1.npz").exists()
    with pytest.raises(StencilError, match="several devices; use to_numpy"):
        loops[1]["u"]
    with pytest.raises(StencilError, match="take the scalars"):
        loops[1].run(1)
    loops[1].close()
