"""`TimeLoop`: many time steps of a system of stencils."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.runtime.arrays import Device
from stencil_dsl.runtime.devices import gpu_available, require_cupy
from stencil_dsl.runtime.kernel import Options
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.rings import suits_rings
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.solve import checkpoint
from stencil_dsl.solve.binding import Setup
from stencil_dsl.solve.boundaries import FieldRules, local_faces, pass_entries
from stencil_dsl.solve.composed import compose
from stencil_dsl.solve.events import Event, Listening, Progress
from stencil_dsl.solve.fields import FieldAccess
from stencil_dsl.solve.fusion import Fusion
from stencil_dsl.solve.launches import Engine
from stencil_dsl.solve.parts import Integrate, Part, Piece
from stencil_dsl.solve.program import Program
from stencil_dsl.solve.ranks import Ranks
from stencil_dsl.solve.stepper import Scalars, Stepper
from stencil_dsl.solve.system import System
from stencil_dsl.solve.transports.base import Alone, Transport
from stencil_dsl.toolchain import Entry
from stencil_dsl.transforms.boundary import BoundaryPass
from stencil_dsl.transforms.expand_integrator import ExpandIntegratorPass
from stencil_dsl.transforms.fuse_sweeps import FuseSweepsPass
from stencil_dsl.transforms.halo_exchange import HaloExchangePass
from stencil_dsl.transforms.insert_fills import InsertFillsPass
from stencil_dsl.transforms.pipeline import PassManager
from stencil_dsl.transforms.steps import constants
from stencil_dsl.transforms.wrap_rows import WrapRowsPass

Scalar = float | Callable[[int], float]
"""A number, or a function of the step's number."""


class TimeLoop(FieldAccess, Listening):
    """Fields and the steps that advance them.

    Args:
        what: a system, or what makes one: a stencil, an integrator, or a list of them.
        shape: extents of the interior.
        boundaries: for fields that are read beyond a face what lies there; new fields take the rules of the field that
            they continue.
        advance: see `System`.
        dtype: "float64" or "float32".
        device: "gpu", "cpu", or None for the GPU where there is one.
        schedule: of all kernels, or by kernel name; None chooses.
        profiles: fields that vary along some axes only: name to values, where the stencils read them with these
            indices only (`p[i]`), or to (positions of the axes, values).
        temporal_steps: steps that one sweep makes where that many are left to run, near faces that are not periodic by
            single steps on slabs; more than one needs one stencil that is linear with constant coefficients, and
            changes results by rounding only.
        temporal_fallback: make single steps where `temporal_steps` is not legal, instead of an error.
        fuse: which sweeps become one kernel: those for which the model predicts a gain ("auto"), none, or groups of
            names of new fields.
        ranks: this rank's end of a transport, such as `world()`; the interior is then cut into one box a rank. All
            ranks make the same calls. With order="source" results have the bits of one rank.
        grid: ranks along x, or along x and y; None cuts along x.
        engine: "kernel" runs the compiled kernels (on the host in the interpreter), "reference" their NumPy meaning.
        wrap_rows: neighbours up to this many cells away are read across periodic faces of the last axis by index,
            without ghost cells there, where the schedule given, if any, does that well. None stands for the elements
            of 16 bytes, beyond which it takes more than it saves; 0 fills ghost cells as for all other faces.
        graphs: capture whole cycles of steps as CUDA graphs where scalars are constant; those of all GPUs of a process
            in one graph.
        options: of `stencil_dsl.compile`: target, toolkit, cache, order, tune, store.

    Raises:
        StencilError: where names, boundaries or memory do not fit together.
    """

    def __init__(
        self,
        what: System | Stencil | Integrate | Sequence[Stencil | Piece | Part],
        shape: Sequence[int],
        boundaries: Mapping[str, FieldRules] | None = None,
        *,
        advance: Mapping[str, str] | None = None,
        dtype: Literal["float64", "float32"] = "float64",
        device: Device | None = None,
        schedule: Schedule | Mapping[str, Schedule] | None = None,
        profiles: Mapping[str, Any] | None = None,
        temporal_steps: int = 1,
        temporal_fallback: bool = False,
        fuse: Literal["auto", "none"] | Sequence[Sequence[str]] = "auto",
        ranks: Transport | None = None,
        grid: Sequence[int] | None = None,
        engine: Engine = "kernel",
        wrap_rows: int | None = None,
        graphs: bool = True,
        **options: Any,
    ) -> None:
        self.system = what if isinstance(what, System) else System(what, advance)
        self.boundaries = dict(boundaries or {})
        self.shape = tuple(int(n) for n in shape)
        if len(self.shape) != self.system.ndim or min(self.shape) < 1:
            raise StencilError(f"the stencils have {self.system.ndim} dimensions, the shape is {self.shape}")
        self.dtype, self.step = dtype, 0
        self.device: Device = device or ("gpu" if gpu_available() else "cpu")
        options.setdefault("target", _target(self.device))
        self.ranks = Ranks.along(ranks or Alone(), self.system.ndim, grid)
        self.domain = self.ranks.domain(self.shape)
        values = self.system.profile_values(profiles or {})
        setup = Setup(
            self.domain,
            dtype,
            self.device,
            engine,
            Options(**options),
            {"*": schedule} if isinstance(schedule, Schedule) else dict(schedule or {}),
            {name: local_faces(rules, self.domain) for name, rules in self.boundaries.items()},
            values,
            self.ranks.exchange if self.ranks.axes else None,
        )
        module = self.system.module(dtype)
        suits = engine == "kernel" and all(suits_rings(s, self.shape[-1]) for s in setup.schedules.values())
        reach = PAIR_BYTES // ITEMSIZE[dtype] if wrap_rows is None else wrap_rows
        self.pipeline = self._passes(module, values, fuse, setup.options, reach if suits else 0)
        end = self.ranks.transport
        self.composed: Stepper | None = None
        shared = None
        if temporal_steps > 1 and (wide := self._wide(module, temporal_steps, temporal_fallback)):
            self.composed = Stepper(Program(wide, setup), end, graphs, temporal_steps)
            shared = self.composed.program.rotating
        self.program = Program(self.pipeline.run(module), setup, shared)
        self.stepper = Stepper(self.program, end, graphs)
        self._events: list[Event] = []
        self.snapshots: list[tuple[int, dict[str, np.ndarray]]] = []

    def _passes(
        self, module: ModuleOp, profiles: Iterable[str], fuse: Any, options: Options, reach: int
    ) -> PassManager:
        """The passes that make the step program of what the user gave."""
        if fuse == "auto":
            expanded = PassManager((ExpandIntegratorPass(),)).run(module.clone())
            # The same shape on every rank, so that all decide alike.
            shape = [-(-n // g) for n, g in zip(self.shape, self.ranks.grid, strict=True)]
            groups = Fusion(expanded, shape, self.dtype, options.target, options.order).groups()
        else:
            groups = () if fuse == "none" else tuple(" ".join(group) for group in fuse)
        entries = (*(f"{name} * keep" for name in profiles), *pass_entries(self.boundaries))
        passes: list[ModulePass] = [ExpandIntegratorPass()]
        passes += [FuseSweepsPass(groups)] if groups else []
        passes += [BoundaryPass(entries), *([WrapRowsPass(self.shape[-1], reach)] if reach else []), InsertFillsPass()]
        passes += [HaloExchangePass(self.ranks.axes)] if self.ranks.axes else []
        return PassManager(tuple(passes))

    def _wide(self, module: ModuleOp, count: int, fallback: bool) -> ModuleOp | None:
        """The program of several steps at once; None where single steps are all there is to it."""
        try:
            return compose(module, count, self.pipeline, self.shape, self.dtype)
        except StencilError as error:
            if fallback:
                return None
            text = f"temporal_steps={count}: {error}; temporal_fallback=True makes single steps instead"
            raise StencilError(text) from error

    def ir(self) -> str:
        """The step program with its kernels, as text that parses back."""
        return str(self.program.module)

    def compile(self) -> list[Entry]:
        """Put the machine code of all kernels into the cache, also on a machine without a GPU (device="cpu").

        A machine that has a GPU but no toolkit can then run the same loop with the cache copied to it.

        Returns:
            The kernels' entries of the cache.
        """
        programs = [self.program, *([self.composed.program] if self.composed else [])]
        sweeps = [sweep for p in programs for number in range(p.cycle) for sweep in p.phase(number).sweeps]
        found = [entry for sweep in sweeps for entry in sweep.compile()]
        return list({entry.path: entry for entry in found}.values())

    def synchronize(self) -> None:
        """Return when the steps are over that were enqueued so far."""
        self.ranks.transport.settle()
        if self.device == "gpu":
            require_cupy().cuda.get_current_stream().synchronize()

    # -- running

    def run(
        self,
        count: int | None = None,
        *,
        until: int | None = None,
        progress: bool = False,
        checkpoint_to: str | Path | None = None,
        checkpoint_every: int | None = None,
        **scalars: Scalar,
    ) -> None:
        """Run steps. Nothing is synchronised on a GPU.

        Args:
            count: how many; or `until`: up to this step of the simulation, such as after a resume.
            progress: show on standard error how far a longer run is.
            checkpoint_to: file to write after every `checkpoint_every` steps and at the end.
            scalars: run-time scalars of stencils and boundaries: numbers, or functions of the step's number.

        Raises:
            StencilError: for missing or unknown scalars, and from the guard.
        """
        last = self._last(count, until)
        self._check_scalars(scalars)
        constant = not any(callable(v) for v in scalars.values())
        fixed = {k: float(v) for k, v in scalars.items() if not callable(v)}
        moving = {k: v for k, v in scalars.items() if callable(v)}

        def values(step: int) -> dict[str, float]:
            return {**fixed, **{k: float(f(step)) for k, f in moving.items()}}

        events = list(self._events)
        if checkpoint_to is not None:
            events.append(Event(checkpoint_every or max(1, last), lambda loop: loop.save(checkpoint_to)))
        bar = Progress(last - self.step, ", ".join(self.program.kernels)) if progress else None
        begin = self.step
        while self.step < last:
            stop = min([last, *(e.next(self.step) for e in events), *([self.step + _CHUNK] if bar else [])])
            self._steps(stop - self.step, values, constant)
            for event in events:
                if self.step % event.every == 0:
                    event.call(self)
            if bar is not None:
                bar.show(self.step - begin)
        if bar is not None:
            bar.close()
        if checkpoint_to is not None:
            self.save(checkpoint_to)

    def _steps(self, count: int, values: Scalars, constant: bool) -> None:
        """Wide sweeps as far as they go, then single steps."""
        wide = self.composed
        # Scalars, which boundaries may have, hold for all the steps of a wide sweep.
        if wide is not None and count >= wide.size and (constant or not wide.program.scalars):
            wide.position = self.stepper.position
            wide.run(self.step, count // wide.size, values, constant)
            self.step += count // wide.size * wide.size
            self.stepper.position, count = wide.position, count % wide.size
        if count:
            self.stepper.run(self.step, count, values, constant)
            self.step += count

    def _last(self, count: int | None, until: int | None) -> int:
        if (count is None) == (until is None):
            raise StencilError("say either how many steps to run, or until which")
        last = self.step + count if count is not None else int(until or 0)
        if last < self.step:
            raise StencilError(f"the simulation is at step {self.step} already, so it cannot run to {last}")
        return last

    def _check_scalars(self, scalars: Mapping[str, Scalar]) -> None:
        needed = self.program.scalars
        if set(scalars) != set(needed):
            raise StencilError(f"the steps take the scalars {list(needed) or 'none'}, got {sorted(scalars) or 'none'}")

    # -- checkpoints

    @property
    def identity(self) -> str:
        """What a checkpoint must agree in: the equations, boundaries, shape and element type."""
        text = f"{self.system.module(self.dtype)}\n{pass_entries(self.boundaries)}\n{self.shape}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def save(self, path: str | Path) -> None:
        """Write the state to a file, from which `load` continues with the same bits."""
        checkpoint.save(self, path)

    def load(self, path: str | Path) -> None:
        """Continue from a checkpoint.

        Raises:
            StencilError: where the file is none, or belongs to another program, shape or element type.
        """
        checkpoint.load(self, path)

    @property
    def lasting(self) -> tuple[str, ...]:
        """Fields that no step changes."""
        known = constants(self.program.step)
        return tuple(n for n, a in zip(self.fields, self.program.step.body.block.args, strict=True) if a in known)


_CHUNK = 64
"""Steps between two looks at the clock of a progress bar."""


def _target(device: Device) -> str:
    if device == "cpu":
        return "sm_90"
    return f"sm_{require_cupy().cuda.Device().compute_capability}"
