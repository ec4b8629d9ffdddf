"""A whole time loop as a variant: many steps a launch, values checked against a solution before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from stencil_dsl.testing import Target, Variant
from stencil_dsl.testing.bench import Bench
from stencil_dsl.testing.question import Prepared

Make = Callable[[str, str], Any]
"""Device ("gpu", or "cpu" to compile only) and architecture to a loop in its state at step 0."""


class WrongValues(Exception):
    """The fields are not what they should be."""


def gpus() -> int:
    """GPUs that are visible, asked without a context; 0 where none is."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except Exception:  # noqa: BLE001 - neither the library nor a driver need be here
        return 0


def _entries(loop: Any) -> dict[str, Any]:
    """Cache entries of a loop's kernels, of all its ranks, by place."""
    found = loop.each(lambda part: part.compile()) if hasattr(loop, "loops") else [loop.compile()]
    return {str(e.path): e for entries in found for e in entries}


def kernel_facts(found: dict[str, Any]) -> dict[str, Any]:
    """What a record says of several kernels."""
    entries = list(found.values())
    registers = [e.resources.registers for e in entries if e.resources.registers is not None]
    spills = [e.resources.spill_bytes for e in entries if e.resources.spill_bytes is not None]
    return {
        "kernels": len(entries),
        "registers": max(registers, default=None),
        "spill_bytes": max(spills, default=None),
        "tool_set": dict(entries[0].tool_versions) if entries else {},
    }


@dataclass(frozen=True)
class LoopVariant(Variant):
    """A `TimeLoop`, or one spread over several GPUs.

    Attributes:
        make: makes it.
        steps: time steps of one launch.
        error: how far the fields are from the solution, relative to it, after `check_steps` steps from the start (None:
            as many as in a launch); None where another variant's check covers it.
        tolerance: what `error` may be.
        scalars: run-time scalars of the steps.
        cells: cells of the interior, all GPUs together.
    """

    id: str
    make: Make
    steps: int
    cells: int
    error: Callable[[Any], float] | None = None
    tolerance: float = 1e-11
    scalars: Mapping[str, Any] = field(default_factory=dict)
    check_steps: int | None = None

    def entries(self, target: Target) -> dict[str, Any]:
        """Cache entries of all kernels, by place."""
        return _entries(self.make("cpu", target.arch))

    def compile_facts(self, target: Target) -> dict[str, Any]:
        # Where there is a GPU, the loop that runs tells them: large kernels are lowered once.
        facts = {"steps": self.steps, "cells": self.cells}
        return facts if gpus() else facts | kernel_facts(self.entries(target))

    def prepare(self, bench: Bench) -> Prepared:
        loop = self.make("gpu", bench.target.arch)
        facts = kernel_facts(_entries(loop))
        if self.error is not None:
            loop.run(self.check_steps or self.steps, **self.scalars)
            facts["error"] = float(self.error(loop))
            if not facts["error"] <= self.tolerance:
                raise WrongValues(f"relative error {facts['error']:.3g} exceeds {self.tolerance:.3g}")
        spread = hasattr(loop, "loops")

        def enqueue(stream: Any) -> None:
            with nullcontext() if stream is None or spread else stream:
                loop.run(self.steps, **self.scalars)
            if spread:
                # Threads of several devices: the clock of one stream sees them only when the host waits for all.
                loop.synchronize()

        return Prepared(enqueue, capturable=False, checked=False, facts=facts)


@dataclass(frozen=True)
class Repeated(Variant):
    """Something that is not a time step, as often as a loop makes steps.

    Attributes:
        once: on a bench gives what enqueues it once.
        make: where given, the loop whose kernels it launches.
    """

    id: str
    once: Callable[[Bench], Callable[[Any], None]]
    steps: int
    make: Make | None = None

    def entries(self, target: Target) -> dict[str, Any]:
        return {} if self.make is None else _entries(self.make("cpu", target.arch))

    def prepare(self, bench: Bench) -> Prepared:
        launch = self.once(bench)

        def enqueue(stream: Any) -> None:
            for _ in range(self.steps):
                launch(stream)

        return Prepared(enqueue, capturable=False, checked=False, facts={"steps": self.steps})
