"""Builds in worker processes: order, equal requests, crashes, hangs, interrupts."""

from __future__ import annotations

import pickle
import subprocess
import tempfile

import pytest
from toolchain_cases import SHIFT, SHIFT_PARAMS, needs_cutile

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import BuildRequest, Entry, KernelCache, ToolError, many

pytestmark = needs_cutile

CRASH = """
import os, signal, sys
print("last words", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
HANG = "while True:\n    pass\n"


@pytest.fixture
def cache(tmp_path):
    return KernelCache(tmp_path / "cache")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def started(monkeypatch):
    """Worker processes that a test started."""
    processes = []
    plain = subprocess.Popen

    def popen(command, *args, **options):
        process = plain(command, *args, **options)
        if "stencil_dsl.toolchain.worker" in command:
            processes.append(process)
        return process

    monkeypatch.setattr(many.subprocess, "Popen", popen)
    return processes


def request(change="a + b", prefix="", **options):
    source = prefix + SHIFT.replace("a + b", change)
    return BuildRequest(source, "shift", SHIFT_PARAMS, "shift", **({"arch": "sm_90"} | options))


def test_results_come_in_the_order_of_the_requests(cache, temporary, started):
    requests = [request("a - b"), request("a + nowhere"), request(arch="sm_35"), request(), request("a - b")]
    seen = []
    results = toolchain.build_many(requests, 2, cache=cache, progress=lambda *facts: seen.append(facts))
    assert [type(r) for r in results] == [Entry, ToolchainError, ToolError, Entry, Entry]
    assert "nowhere" in results[1].stderr
    assert results[2].returncode == 1 and results[2].tool == "tileiras"
    assert results[4] == results[0] != results[3]
    assert len(list(cache.entries())) == 2
    assert [s[:2] for s in seen] == [(n, 5) for n in range(1, 6)]
    assert sorted(id(s[2]) for s in seen) == sorted(id(r) for r in requests)
    assert all(results[next(n for n, r in enumerate(requests) if r is s[2])] is s[3] for s in seen)
    assert 1 <= len(started) <= 2
    assert all(p.returncode is not None for p in started)
    assert list(temporary.iterdir()) == []

    again = toolchain.build_many([requests[0], requests[3]], cache=cache)
    assert again == [results[0], results[3]]
    assert len(started) <= 2  # hits need no worker


def test_crash_and_hang_lose_only_their_own_request(cache, temporary, started):
    requests = [
        request(prefix=CRASH),
        request(),
        request(prefix=HANG, timeout=1),
        request("a * b"),
    ]
    crashed, first, hung, last = toolchain.build_many(requests, 1, cache=cache, grace=4)
    assert isinstance(crashed, ToolchainError) and isinstance(hung, ToolchainError)
    assert "the worker process ended with signal 9" in str(crashed)
    assert "last words" in crashed.stderr
    assert "the worker process was ended after 5 s" in str(hung)
    assert isinstance(first, Entry) and isinstance(last, Entry)
    assert all(p.returncode is not None for p in started)
    assert list(temporary.iterdir()) == []


def test_unknown_toolkit_is_a_result(cache):
    [result] = toolchain.build_many([request(toolkit="12.9")], cache=cache)
    assert isinstance(result, ToolchainError) and "12.9 is not installed" in str(result)


def test_interrupt_ends_the_workers(cache, temporary, started):
    def interrupt(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toolchain.build_many([request(), request(prefix=HANG), request("a - b")], 2, cache=cache, progress=interrupt)
    assert started and all(p.returncode is not None for p in started)
    assert list(temporary.iterdir()) == []


def test_errors_travel_between_processes():
    error = ToolError("x failed", tool="x", returncode=5, command="x y", stderr="words", versions={"x": "1"})
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is ToolError and str(copy) == str(error)
    assert vars(copy) == vars(error)
