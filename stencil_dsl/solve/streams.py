"""Streams and events of a GPU, as solvers use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stencil_dsl.runtime.devices import require_cupy


def mark(stream: Any = None) -> Any:
    """A new event behind everything on a stream (None: the current one); it takes no time stamps, which cost time."""
    cuda = require_cupy().cuda
    event = cuda.Event(disable_timing=True)
    event.record(cuda.get_current_stream() if stream is None else stream)
    return event


URGENT = -5
"""The highest priority of a stream on GPUs so far; CUDA takes the nearest that there is."""


def urgent() -> Any:
    """A new stream whose kernels start before waiting blocks of other streams' kernels."""
    return require_cupy().cuda.Stream(non_blocking=True, priority=URGENT)


@contextmanager
def current(stream: Any) -> Iterator[None]:
    """Make a stream the current one.

    Afterwards the one before is again, also where `use()` made it so, which CuPy 14 forgets at the end of a `with`.
    """
    cuda = require_cupy().cuda
    before = cuda.get_current_stream()
    try:
        with stream:
            yield
    finally:
        if cuda.get_current_stream() != before:
            before.use()
