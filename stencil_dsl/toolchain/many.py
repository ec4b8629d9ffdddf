"""Builds many kernels in worker processes; a worker that crashes or hangs takes only its own request along.

Each worker is a fresh interpreter (`python -m stencil_dsl.toolchain.worker`) that this process talks to
through a pipe, so that a script without a `__main__` guard works, and a lost worker is replaced.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stencil_dsl
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.builder import plan
from stencil_dsl.toolchain.cache import KernelCache
from stencil_dsl.toolchain.entry import Entry
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.paths import work_folder
from stencil_dsl.toolchain.process import end_group
from stencil_dsl.toolchain.signature import Param

if TYPE_CHECKING:
    from stencil_dsl.tilelib import TileLibrary


@dataclass(frozen=True)
class BuildRequest:
    """Arguments of one `build`."""

    source: str
    function: str
    params: tuple[Param, ...]
    symbol: str
    arch: str
    toolkit: Toolkit | str | None = None
    opt_level: int | None = None
    remarks: bool = True
    timeout: float | None = 300
    meta: dict[str, Any] | None = None
    libraries: tuple[TileLibrary, ...] = ()


Result = Entry | ToolchainError
Progress = Callable[[int, int, BuildRequest, Result], None]


def build_many(
    requests: Sequence[BuildRequest],
    jobs: int | None = None,
    *,
    cache: KernelCache | None = None,
    progress: Progress | None = None,
    grace: float = 180,
) -> list[Result]:
    """Build all requests; equal ones are compiled once.

    Args:
        jobs: worker processes at a time; None: one per usable processor.
        progress: called in this thread as (done, total, request, result) after each request.
        grace: seconds that a request may take on top of its own `timeout` (which bounds tileiras)
            before its worker is ended.

    Returns:
        One entry or error per request, in the order of the requests.
    """
    cache = cache or KernelCache()
    results: list[Result | None] = [None] * len(requests)
    done = 0

    def finish(n: int, result: Result) -> None:
        nonlocal done
        results[n] = result
        done += 1
        if progress is not None:
            progress(done, len(requests), requests[n], result)

    waiting: dict[tuple[str, str], list[int]] = {}
    for n, request in enumerate(requests):
        try:
            key, kit, entry = _plan(request, cache)
        except ToolchainError as error:
            finish(n, error)
            continue
        if kit is not None:
            waiting.setdefault((key, kit.key), []).append(n)
        elif entry is not None:
            finish(n, entry)
    if waiting:
        for numbers, result in _run(list(waiting.values()), requests, jobs, cache, grace):
            for n in numbers:
                finish(n, result)
    assert all(r is not None for r in results)
    return [r for r in results if r is not None]


def _plan(request: BuildRequest, cache: KernelCache) -> tuple[str, Toolkit | None, Entry | None]:
    return plan(
        request.source,
        request.function,
        request.params,
        request.symbol,
        request.arch,
        request.opt_level,
        request.toolkit,
        cache,
        request.libraries,
    )


def _run(groups, requests, jobs, cache, grace):
    """Yield (numbers, result) per group of equal requests, as they end."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = max(1, min(jobs or usable, len(groups)))
    with work_folder() as folder:
        pool = _Pool(cache, folder, grace)
        threads = ThreadPoolExecutor(count)
        futures: dict[Future, list[int]] = {}
        try:
            for numbers in groups:
                futures[threads.submit(pool.build, requests[numbers[0]])] = numbers
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            # on an interrupt: nothing more starts, and what runs ends at once
            threads.shutdown(wait=False, cancel_futures=True)
            pool.close()
            threads.shutdown(wait=True)


class _Pool:
    """Idle workers, and all that were started."""

    def __init__(self, cache: KernelCache, folder: Path, grace: float) -> None:
        self.cache, self.folder, self.grace = cache, folder, grace
        self.idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self.all: list[_Worker] = []
        self.closed = False
        self.lock = threading.Lock()

    def build(self, request: BuildRequest) -> Result:
        try:
            worker = self.idle.get_nowait()
        except queue.Empty:
            worker = self._start()
        limit = None if request.timeout is None else request.timeout + self.grace
        result = worker.build(replace(request, toolkit=_plan(request, self.cache)[1]), limit)
        if worker.alive:
            self.idle.put(worker)
        return result

    def _start(self) -> _Worker:
        with self.lock:
            if self.closed:
                raise ToolchainError("the build was interrupted")
            worker = _Worker(self.cache, self.folder, len(self.all))
            self.all.append(worker)
            return worker

    def close(self) -> None:
        with self.lock:
            self.closed = True
            for worker in self.all:
                worker.end()


class _Worker:
    """One worker process and the pipe to it."""

    def __init__(self, cache: KernelCache, folder: Path, number: int) -> None:
        self.words = folder / f"worker-{number}.txt"
        self.pipe, theirs = Pipe()
        place = str(Path(stencil_dsl.__file__).parent.parent)
        old = os.environ.get("PYTHONPATH")
        env = os.environ | {"PYTHONPATH": os.pathsep.join([place, old] if old else [place])}
        command = [sys.executable, "-P", "-m", "stencil_dsl.toolchain.worker", str(theirs.fileno())]
        with theirs, self.words.open("wb") as words:
            self.process = subprocess.Popen(
                [*command, str(cache.root), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=env,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None and not self.pipe.closed

    def build(self, request: BuildRequest, limit: float | None) -> Result:
        try:
            self.pipe.send(request)
            if self.pipe.poll(limit):
                return self.pipe.recv()
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            status = self.process.poll()
            self.end()
            how = f"signal {-status}" if status and status < 0 else f"status {status}"
            return self._lost(request, f"the worker process ended with {how}")
        self.end()
        return self._lost(request, f"the worker process was ended after {limit:g} s")

    def _lost(self, request: BuildRequest, what: str) -> ToolchainError:
        with contextlib.suppress(OSError):
            return ToolchainError(
                f"compiling {request.symbol!r} for {request.arch} failed: {what}",
                stderr=self.words.read_text(errors="replace"),
            )
        return ToolchainError(f"compiling {request.symbol!r} for {request.arch} failed: {what}")

    def end(self) -> None:
        self.pipe.close()
        end_group(self.process)
        self.process.wait()
