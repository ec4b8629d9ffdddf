"""Replays samples into pytest-benchmark, so that its storage, comparison and JSON work on them.

Our sampler does the measuring, because pytest-benchmark cannot interleave variants. Its timer is
replaced by one that hands out queued time stamps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from stencil_dsl.testing.sampling import used_times
from stencil_dsl.testing.session import Result

_QUEUE: pytest.StashKey[deque[float]] = pytest.StashKey()


def _queued_timer(queue: deque[float]) -> Callable[[], float]:
    def replayed_device_time() -> float:
        return queue.popleft()

    return replayed_device_time


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.gpu or not config.pluginmanager.has_plugin("benchmark"):
        return
    for item in items:
        if "result" in getattr(item, "fixturenames", ()):
            queue: deque[float] = deque()
            item.stash[_QUEUE] = queue
            item.add_marker(pytest.mark.benchmark(timer=_queued_timer(queue), disable_gc=False, warmup=False))


def replay(request: pytest.FixtureRequest, result: Result) -> None:
    """Feeds the rounds that count to the item's `benchmark` fixture, one benchmark round each."""
    queue = request.node.stash.get(_QUEUE, None)
    times = used_times(result.samples) if result.samples else []
    if queue is None or not times:
        return
    benchmark: Any = request.getfixturevalue("benchmark")
    if benchmark.disabled:
        return
    stamp = 0.0
    for ms in times:
        queue.append(stamp)
        stamp += ms / 1e3
        queue.append(stamp)
    benchmark.group = result.question.id
    benchmark.pedantic(_replayed, rounds=len(times))


def _replayed() -> None:
    """What pytest-benchmark believes it times."""
