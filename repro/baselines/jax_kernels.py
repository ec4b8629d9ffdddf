"""What a JAX user writes: `jit` of a sum of slices, fused by XLA."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from repro.baselines.base import Shape
from repro.baselines.model import Offset, model


def load() -> Any:
    """JAX in float64, without taking most of the device's memory for itself at once."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def function(row: str, shape: Shape) -> Any:
    """The jitted sweep: arrays of interior and halo (radius of the row) in, arrays of the interior out."""
    jax = load()
    m = model(row)

    def sweep(*arrays: Any) -> tuple[Any, ...]:
        named = dict(zip(m.fields, arrays, strict=True))

        def read(field: str, offset: Offset) -> Any:
            start = tuple(r + d for r, d in zip(m.radius, offset, strict=True))
            return jax.lax.slice(named[field], start, tuple(s + n for s, n in zip(start, shape, strict=True)))

        return tuple(m.evaluate(read, jax.numpy))

    return jax.jit(sweep)


class Sweep:
    """A compiled sweep over device arrays of another library, ordered with that library's stream.

    Attributes:
        results: what the last call gave.
    """

    def __init__(self, row: str, shape: Shape, inputs: Mapping[str, Any]) -> None:
        jax = load()
        fields = model(row).fields
        self._arguments = [jax.dlpack.from_dlpack(inputs[f]) for f in fields]
        self._run = function(row, shape).lower(*self._arguments).compile()
        self.results: Sequence[Any] = ()

    def __call__(self, stream: int) -> None:
        """Starts a sweep; `stream` (a CUDA stream's address) waits for it, the host does not."""
        self.results = self._run(*self._arguments)
        # JAX runs on a stream of its own; the export of a result makes the other stream wait for it.
        for result in self.results:
            result.__dlpack__(stream=stream)
