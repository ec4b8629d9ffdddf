"""Streams and events of a GPU, as solvers use them."""

from __future__ import annotations

from typing import Any

from stencil_dsl.runtime.devices import require_cupy


def mark(stream: Any = None) -> Any:
    """A new event behind everything on a stream (None: the current one); it takes no time stamps, which cost time."""
    cuda = require_cupy().cuda
    event = cuda.Event(disable_timing=True)
    event.record(cuda.get_current_stream() if stream is None else stream)
    return event
