"""The acoustic step as variants of the harness: checked from random fields, timed from rest or from them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.acoustic.device import INPLACE, STATE, LoopRun, TextRun, compiled, make_run, program
from repro.acoustic.model import DT, VELOCITY, Cube, Wave, in_layer, reference, wavelet
from stencil_dsl.testing import RandomField
from stencil_dsl.testing.question import Prepared, Reference, Target, Variant

CHECK_STEPS = 2
SMALL = Cube(20, 5)
"""What is checked without a device."""

TOLERANCE = 3e-6
"""Of float32 after two steps, relative to the largest magnitude in a box."""


@dataclass(frozen=True)
class Scaled:
    """A random field of larger magnitudes, so that what the source adds does not hide them."""

    seed: int
    factor: float

    def __call__(self, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        return (RandomField(self.seed)(lo, shape, xp) * self.factor).astype("float32")


@dataclass(frozen=True)
class Velocities:
    """(velocity dt)^2 that changes from cell to cell: between 1500 and 4500 m/s."""

    seed: int = 3

    def __call__(self, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        share = (xp.abs(RandomField(self.seed)(lo, shape, xp)) - 0.1) / 0.9
        return (((1500.0 + 3000.0 * share) * DT) ** 2).astype("float32")


SOURCES: dict[str, Any] = {"u": Scaled(0, 32.0), "older": Scaled(1, 32.0), "phi": Scaled(2, 1e-2), "vp": Velocities()}
"""Random fields of both signs; phi counts in the layer."""


def expected(cube: Cube, what: str) -> Reference:
    """u and phi after the launches that are checked; of kernels by themselves where they write, zero elsewhere."""
    steps = reference(cube, SOURCES, CHECK_STEPS if what == "step" else 1)

    def on_box(lo: tuple[int, ...], shape: tuple[int, ...]) -> list[np.ndarray]:
        u, phi = steps(lo, shape)
        if what == "step":
            return [u, phi]
        where = compared(cube, what, lo, shape)
        at = tuple(cube.centre - a for a in lo)
        if what == "inner" and all(0 <= a < m for a, m in zip(at, shape, strict=True)):
            u[at] -= wavelet(0)  # kernels by themselves have no source
        return [np.where(where, u, 0.0)] if what == "inner" else [np.where(where, u, 0.0), phi]

    return on_box


def compared(cube: Cube, what: str, lo: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Cells of a box whose values are compared: those that all variants' kernels write.

    The compiler leaves up to three planes of the inner box to the layer's kernels (`dsl.pieces`).
    """
    if what == "step":
        return np.ones(tuple(shape), bool)
    layer = in_layer(cube, lo, shape)
    if what == "layer":
        return layer
    z = np.arange(lo[2], lo[2] + shape[2])
    return ~layer & (z < cube.n - cube.layer - 3)


class Acoustic(Variant):
    """One way to make steps.

    Args:
        variant: "dsl", "dsl-apart", "triton", "shared" or "plain".
        what: "step", or the kernels of the "inner" box or of the "layer" alone.
        init: fields that are timed: "zero" (at rest, with the source) or "random".
        steps: of one timing; for kernels alone a timing is one launch of each.
        after: steps that were made before the timed ones (from rest, by the compiler's kernels).
    """

    remembered: ClassVar[bool] = True

    def __init__(
        self, variant: str, cube: Cube, what: str = "step", init: str = "random", steps: int = 1, after: int = 0
    ) -> None:
        self.id, self.cube, self.what, self.init, self.steps, self.after = variant, cube, what, init, steps, after

    # -- without a device

    def compile_facts(self, target: Target) -> dict[str, Any]:
        """Resources of the kernel with most registers, and of each."""
        from repro.baselines import cubins
        from stencil_dsl.testing.variants import resource_facts

        facts: dict[str, Any] = {"steps": self.steps, "init": self.init, "what": self.what, "cells": self.cells}
        if self.id in INPLACE:
            from repro.acoustic import dsl

            made = self.entries(target)
            chosen = dsl.schedules(self.cube, target.arch, INPLACE[self.id])
            names = {part.name: part.definition.name for part in dsl.parts(self.cube)}
            kernels = {name: resource_facts(e.resources, e.tool_versions) for name, e in made.items()}
            whole = (names[n] for n in made if n in names)
            facts["schedule"] = "; ".join(dict.fromkeys(f"{name}: {chosen[name]}" for name in whole))
        else:
            text = program(self.id, self.cube)
            facts["schedule"] = text.schedule
            found = compiled(text, target.arch)
            if found is None:
                return facts
            kernels = {n: cubins.resources(found[n][0], found[n][1]) for n in found if self._takes_part(n)}
        return facts | max(kernels.values(), key=lambda k: k["registers"] or 0) | {"kernels": list(kernels.values())}

    @property
    def cells(self) -> int:
        """Cells that a launch of the timed kernels computes."""
        from repro.acoustic import dsl

        inner = dsl.inner_cells(self.cube) if self.id in INPLACE else self.cube.inner_cells
        return {"step": self.cube.cells, "inner": inner, "layer": self.cube.cells - inner}[self.what]

    def entries(self, target: Target) -> dict[str, Any]:
        """Cache entries of the compiler's kernels by launch; none of a text."""
        if self.id not in INPLACE:
            return {}
        from repro.acoustic import dsl

        wanted = [part.name for part in dsl.parts(self.cube) if self._takes_part(part.name)]
        return dsl.entries(self.cube, target.arch, target.toolkit, wanted, INPLACE[self.id])

    def _takes_part(self, launch: str) -> bool:
        return self.what == "step" or (launch == "inner") == (self.what == "inner")

    def validate(self, target: Target) -> dict[str, Any] | None:
        """A small cube on the host: the interpreter, the CUDA text on the CPU, the Triton text by NumPy."""
        from repro.baselines import emulate

        if self.id not in INPLACE and emulate.compiler() is None:
            return None
        want = Wave(SMALL, *_split(_cells(SMALL)))
        want.run(CHECK_STEPS)
        got = host_step(self.id, SMALL, _cells(SMALL), CHECK_STEPS)
        errors = [float(abs(g - w).max() / abs(w).max()) for g, w in zip(got, (want.u, want.phi), strict=True)]
        worst = max(errors) if np.isfinite(errors).all() else float("inf")
        ok = worst <= TOLERANCE
        why = "" if ok else f"relative error {worst:.3g} exceeds {TOLERANCE:.3g}"
        return {"ok": ok, "max_rel_err": worst, "how": f"host, {SMALL.n}^3, {CHECK_STEPS} steps", "why": why}

    def artefacts(self, target: Target) -> dict[str, str]:
        if self.id not in INPLACE:
            return {"kernel.py" if self.id == "triton" else "kernel.cu": program(self.id, self.cube).source}
        return {f"{name}.py": entry.source for name, entry in self.entries(target).items()}

    # -- on a device

    def prepare(self, bench: Any) -> Prepared:
        gc.collect()  # loops of earlier questions hold gigabytes
        stream = bench.xp.cuda.get_current_stream()
        run = make_run(self.id, self.cube, bench.device, bench.target.arch)
        read = self._checked(bench, run, stream)
        self._start(bench, run)
        if self.what != "step":
            return Prepared(lambda stream: run.once(self.what, stream), read=read)
        return Prepared(lambda stream: run.advance(self.steps, stream), capturable=False, read=read)

    def _checked(self, bench: Any, run: LoopRun | TextRun, stream: Any) -> Callable[..., Any]:
        """Makes the steps that are checked; reads back the boxes that are compared."""
        from stencil_dsl.testing.bench import boxes

        for name, source in SOURCES.items():
            fill(run.cells(name), source, bench.xp)
        _clear_inner(run.cells("phi"), self.cube)
        run.restart()
        if self.what == "step":
            run.advance(CHECK_STEPS, stream)
            found = [run.cells("u"), run.cells("phi")]
        else:
            run.once(self.what, stream)
            found = [run.new(), run.cells("phi")][: 1 if self.what == "inner" else 2]
        bench.device.synchronize()
        kept = {}
        for lo, shape in boxes(bench.question.shape):
            window = tuple(slice(a, a + m) for a, m in zip(lo, shape, strict=True))
            where = bench.xp.asarray(compared(self.cube, self.what, lo, shape))
            for k, array in enumerate(found):
                kept[k, lo] = bench.xp.where(where, array[window], 0.0)
        return lambda k, lo, shape: kept[k, lo]

    def _start(self, bench: Any, run: LoopRun | TextRun) -> None:
        """The fields that are timed."""
        run.cells("vp")[...] = (VELOCITY * DT) ** 2
        if self.after:
            before = self.after - self.steps
            state = bench.shared(("acoustic state", self.cube, before), lambda: _state(bench, self.cube, before))
            for name, values in state.items():
                run.cells(name)[...] = values
        else:
            for name in STATE:
                if self.init == "random":
                    fill(run.cells(name), SOURCES[name], bench.xp)
                else:
                    run.cells(name)[...] = 0.0
            _clear_inner(run.cells("phi"), self.cube)
        run.restart()


def _state(bench: Any, cube: Cube, steps: int) -> dict[str, Any]:
    """u, older and phi after so many steps from rest."""
    run = LoopRun(cube, bench.target.arch)
    run.advance(steps, bench.xp.cuda.get_current_stream())
    return {name: run.cells(name).copy() for name in STATE}


def fill(cells: Any, source: Callable[..., Any], xp: Any, planes: int = 64) -> None:
    """Values by coordinates, some planes at a time: they are made in 64 bits."""
    n = cells.shape[0]
    for x in range(0, n, planes):
        extents = (min(planes, n - x), *cells.shape[1:])
        cells[x : x + planes] = source((x, 0, 0), extents, xp)


def _clear_inner(phi: Any, cube: Cube) -> None:
    """phi lives in the layer."""
    phi[tuple(slice(lo, hi) for lo, hi in cube.inner)] = 0.0


def _cells(cube: Cube) -> dict[str, np.ndarray]:
    origin, shape = (0, 0, 0), (cube.n,) * 3
    found = {name: source(origin, shape, np) for name, source in SOURCES.items()}
    return found | {"phi": np.where(in_layer(cube, origin, shape), found["phi"], 0.0)}


def _split(fields: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {name: fields[name] for name in STATE}, fields["vp"]


def host_step(variant: str, cube: Cube, fields: dict[str, np.ndarray], steps: int) -> Iterator[np.ndarray]:
    """u and phi after some steps of a variant's own kernels on the host."""
    if variant in INPLACE:
        from repro.acoustic import dsl

        loop = dsl.simulation(cube, "cpu", inplace=INPLACE[variant])
        for name, values in fields.items():
            dsl.cells(loop, cube, name)[...] = values
        loop.run(steps)
        yield from (np.array(dsl.cells(loop, cube, name)) for name in ("u", "phi"))
        return
    from repro.acoustic.host import HostRun

    run = HostRun(program(variant, cube), fields)
    for _ in range(steps):
        run.step()
    if not run.padding_is_zero():
        raise AssertionError(f"{variant}: something outside the cube was written")
    yield from (run.cells("u"), run.cells("phi"))
