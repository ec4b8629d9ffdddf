"""Every kernel that one step of a program launches, with its resources and, on a device, time and bandwidth.

A case is a function ``case(size, device)`` that makes a program and returns a function that takes one step. Launches
are watched where they happen, so that a case may be any program that uses this package's kernels.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from repro.stencils import _ISO, star
from stencil_dsl import stencil

Step = Callable[[], None]
Case = Callable[[int, str], Step]


@dataclass(frozen=True)
class Row:
    """One kernel of a step.

    Attributes:
        kernel: its name.
        calls: launches a step.
        shape: cells of one launch.
        facts: resources of its cubin at the size asked for.
        bytes: compulsory bytes of one launch: every field that it reads and every output, once.
        ms: median time of one launch on a device, or None.
    """

    kernel: str
    calls: int
    shape: tuple[int, ...]
    facts: dict[str, Any]
    bytes: int
    ms: float | None = None

    @property
    def gigabytes_a_second(self) -> float | None:
        return None if self.ms is None else self.bytes / self.ms / 1e6


@contextlib.contextmanager
def watched() -> Iterator[list[Any]]:
    """Records every launch object of this package that is launched within."""
    from stencil_dsl.runtime.launch import HostLaunch, Launch

    seen: list[Any] = []
    active = [True]
    kept = {kind: kind.launch for kind in (Launch, HostLaunch)}

    def watching(kind: type) -> Callable[..., Any]:
        def launch(self: Any, stream: Any = None) -> Any:
            # A program that binds its launches within keeps this function after the end.
            if active:
                seen.append(self)
            return kept[kind](self, stream)

        return launch

    for kind in kept:
        kind.launch = watching(kind)  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        active.clear()
        for kind, launch in kept.items():
            kind.launch = launch  # type: ignore[method-assign]


def census(
    case: Case, size: int, arch: str, toolkit: str | None = None, device: str = "cpu", small: int = 8
) -> list[Row]:
    """The kernels of one step, in the order of their first launches.

    Without a device the step runs in the interpreter on `small` cells an axis, to see which kernels it launches; they
    are then compiled as they would be for `size` cells an axis.
    """
    step = case(size if device == "gpu" else small, device)
    with watched() as launches:
        step()
    groups: dict[Any, list[Any]] = {}
    for launch in launches:
        groups.setdefault((launch.spec.definition.name, launch.spec.source), []).append(launch)
    return [_row(found, size, arch, toolkit, device, small) for found in groups.values()]


def _row(launches: list[Any], size: int, arch: str, toolkit: str | None, device: str, small: int) -> Row:
    from stencil_dsl.runtime.kernel import Kernel, Options
    from stencil_dsl.testing.variants import resource_facts
    from stencil_dsl.transforms.analysis import roofline

    first = launches[0]
    definition, shape = first.spec.definition, first.spec.form.shape
    ms = None
    if device == "gpu":
        entry, ms = first.entry, _time(first)
    else:
        # A launch on the whole small domain stands for one on the whole domain; others are cut off its faces.
        shape = tuple(size if n == small else n for n in shape)
        entry = Kernel(definition, shape, None, Options(arch, toolkit)).entry
    facts = resource_facts(entry.resources, entry.tool_versions)
    return Row(definition.name, len(launches), shape, facts, roofline(definition.stencil)["bytes"] * prod(shape), ms)


def _time(launch: Any, rounds: int = 9) -> float:
    """Median of single launches, after one that is not counted."""
    import cupy

    times = []
    for _ in range(rounds + 1):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        launch.launch()
        stop.record()
        stop.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(start, stop)))
    return sorted(times[1:])[rounds // 2]


def table(rows: list[Row]) -> list[str]:
    """The census as aligned text."""
    head = ("kernel", "calls", "cells", "ms", "GB/s", "regs", "spill B", "smem B", "instr")
    cells = [
        (
            r.kernel,
            str(r.calls),
            "x".join(map(str, r.shape)),
            "" if r.ms is None else f"{r.ms:.4f}",
            "" if r.gigabytes_a_second is None else f"{r.gigabytes_a_second:.0f}",
            *(str(r.facts[name]) for name in ("registers", "spill_bytes", "shared_bytes", "instructions")),
        )
        for r in rows
    ]
    widths = [max(len(line[i]) for line in (head, *cells)) for i in range(len(head))]
    lines = []
    for line in (head, *cells):
        first, *rest = (t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(line, widths, strict=True)))
        lines.append("  ".join([first, *rest]))
    return lines


def find_case(name: str) -> Case:
    """A case of this module, or "module:function"."""
    if ":" in name:
        module, _, function = name.partition(":")
        return getattr(importlib.import_module(module), function)
    if name not in CASES:
        raise KeyError(f"no case {name!r}: {', '.join(CASES)}, or module:function")
    return CASES[name]


# -- cases: steps of small solvers


def neighbours(u, i, j, k):
    return u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]


@stencil
def diffused(u, dt, i, j, k):
    return u[i, j, k] + dt * (neighbours(u, i, j, k) - 6.0 * u[i, j, k])


@stencil
def propagated(p, old, vel, i, j, k):
    return 2.0 * p[i, j, k] - old[i, j, k] + vel[i, j, k] * star(p, _ISO, 4, i, j, k)


@stencil
def reacted(a, b, dt, i, j, k):
    rate = a[i, j, k] * b[i, j, k] * b[i, j, k]
    next_a = a[i, j, k] + dt * (0.25 * (neighbours(a, i, j, k) - 6.0 * a[i, j, k]) - rate)
    next_b = b[i, j, k] + dt * (0.15 * (neighbours(b, i, j, k) - 6.0 * b[i, j, k]) + rate)
    return next_a, next_b


def heat(size: int, device: str) -> Step:
    """Diffusion with fixed walls."""
    from stencil_dsl.solve import Dirichlet, TimeLoop

    loop = TimeLoop(diffused, (size,) * 3, {"u": Dirichlet(0.0)}, device=device, graphs=False)  # type: ignore[arg-type]
    return lambda: loop.run(1, dt=0.1)


def wave(size: int, device: str) -> Step:
    """The acoustic wave of eighth order, leapfrog in time."""
    from stencil_dsl.solve import Periodic, System, TimeLoop

    system = System([propagated], {"p": "propagated", "old": "p"})
    loop = TimeLoop(system, (size,) * 3, {"p": Periodic()}, device=device, graphs=False)  # type: ignore[arg-type]
    return lambda: loop.run(1)


def reaction(size: int, device: str) -> Step:
    """Two fields that diffuse and react."""
    from stencil_dsl.solve import Periodic, System, TimeLoop

    system = System([reacted], {"a": "reacted_0", "b": "reacted_1"})
    rules = {"a": Periodic(), "b": Periodic()}
    loop = TimeLoop(system, (size,) * 3, rules, device=device, graphs=False)  # type: ignore[arg-type]
    return lambda: loop.run(1, dt=0.1)


CASES: dict[str, Case] = {"heat": heat, "wave": wave, "reaction": reaction}
