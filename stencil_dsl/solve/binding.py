"""Binds the operations of a step program to arrays: kernels, fills and exchanges become calls without arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.ir import SSAValue

from stencil_dsl.dialects.boundary import OPEN, FaceAttr
from stencil_dsl.dialects.comm import StartOp, WaitOp
from stencil_dsl.dialects.timestep import FillOp, PieceOp, StepOp, SweepOp, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray
from stencil_dsl.runtime.kernel import Kernel, Options
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.solve.boxes import Box, Domain, split_margin, whole
from stencil_dsl.solve.branches import Beside, Branches
from stencil_dsl.solve.faces import FaceArrays
from stencil_dsl.solve.ghosts import GhostFill, RunTimeValues, Widths
from stencil_dsl.solve.launches import BoundSweep, Engine
from stencil_dsl.solve.views import Profile, region
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import Faces, read_faces

Action = Callable[[], Any]
ONCE_TAGS = 1000
"""Tags of exchanges before the first step start here."""


class Ghosts(Protocol):
    """Ghost cells on their way: `start` may return before they are valid, `wait` does not."""

    def start(self) -> None: ...

    def wait(self) -> None: ...


class Exchange(Protocol):
    """Makes what exchanges the ghost cells of one array with other ranks along some axes."""

    def __call__(self, fill: GhostFill, between: Widths, axes: Sequence[int], tag: int) -> Ghosts: ...


@dataclass(frozen=True)
class Setup:
    """What a program is run with.

    Attributes:
        domain: the cells of this rank.
        faces: arrays of values over faces, by the name of the field of the state.
        profiles: fields of the state that vary along some axes only, with these and their values.
        schedules: of kernels, by name; "*" for all others. None chooses.
        exchange: makes exchanges with other ranks, where there are some.
    """

    domain: Domain
    dtype: str = "float64"
    device: Device | None = None
    engine: Engine = "kernel"
    options: Options = field(default_factory=Options)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    faces: Mapping[str, FaceArrays] = field(default_factory=dict)
    profiles: Mapping[str, tuple[Sequence[int], Any]] = field(default_factory=dict)
    exchange: Exchange | None = None


@dataclass
class Phase:
    """One step on fixed buffers.

    Attributes:
        actions: what to do, in order.
        fills: those of the actions that fill ghost cells without other ranks.
    """

    actions: list[Action]
    sweeps: list[BoundSweep]
    fills: dict[Action, GhostFill]

    def set(self, scalars: Mapping[str, float]) -> None:
        for sweep in self.sweeps:
            sweep.set(scalars)

    def run(self) -> None:
        for action in self.actions:
            action()


def fill_widths(op: FillOp | StartOp) -> Widths:
    pairs = zip(op.lo.get_values(), op.hi.get_values(), strict=True)
    return tuple((int(lo), int(hi)) for lo, hi in pairs)


class Binder:
    """Makes the actions of one phase."""

    def __init__(
        self,
        step: StepOp,
        setup: Setup,
        kernels: Mapping[str, Kernel],
        values: RunTimeValues,
        arrays: Mapping[SSAValue, PaddedArray],
    ) -> None:
        self.step, self.setup, self.kernels, self.values, self.arrays = step, setup, kernels, values, arrays
        self.sweeps: list[BoundSweep] = []
        self.tokens: dict[SSAValue, Ghosts] = {}

    def bind(self) -> Phase:
        actions: list[Action] = []
        fills: dict[Action, GhostFill] = {}
        for op in self.step.body.block.ops:
            if isinstance(op, FillOp) and op.once is None:
                fill = self.fill(op.field, fill_widths(op), op.corners is not None)
                actions.append(fill.apply)
                fills[fill.apply] = fill
            elif isinstance(op, StartOp) and op.once is None:
                actions.append(self._start(op).start)
            elif isinstance(op, WaitOp):
                actions.append(self.tokens[op.token].wait)
            elif isinstance(op, SweepOp):
                actions += self._sweep(op)
        return Phase(actions, self.sweeps, fills)

    def lasting(self) -> list[Action]:
        """What makes ghost cells valid that no step changes."""
        actions: list[Action] = []
        for number, op in enumerate(self.step.body.block.ops):
            if isinstance(op, FillOp) and op.once is not None:
                actions.append(self.fill(op.field, fill_widths(op), op.corners is not None).apply)
            elif isinstance(op, StartOp) and op.once is not None:
                if isinstance(self.arrays[op.field], Profile):
                    continue  # made with its ghost cells
                ghosts = self._exchange(op, ONCE_TAGS + number)
                actions += [ghosts.start, ghosts.wait]
        return actions

    def fill(self, value: SSAValue, widths: Widths, corners: bool, cut: Sequence[int] = ()) -> GhostFill:
        """The fill of one field; faces to other ranks are left out."""
        name = steps.field_name(self.step, value)
        faces: Faces = read_faces(self.step, name) or ((OPEN, OPEN),) * self.step.ndim
        arrays = self.setup.faces.get(name, self.setup.faces.get(steps.origin(self.step, name), {}))
        ours: list[tuple[FaceAttr | None, FaceAttr | None]] = []
        for axis, (before, behind) in enumerate(faces):
            first, last = self._ends(axis, before) if axis in cut else (True, True)
            ours.append((before if first else None, behind if last else None))
        return GhostFill(name, self.arrays[value], ours, widths, self.values, arrays, corners)

    def _ends(self, axis: int, face: FaceAttr) -> tuple[bool, bool]:
        """Whether this rank's faces along a cut axis are the whole interior's, where nobody is beyond."""
        first, last = self.setup.domain.ends(axis)
        return (False, False) if face.kind.data == "periodic" else (first, last)

    def _exchange(self, op: StartOp, tag: int) -> Ghosts:
        if self.setup.exchange is None:
            raise StencilError("the program exchanges ghost cells with other ranks, but runs on one")
        axes = [int(a) for a in op.axes.get_values()]
        between = fill_widths(op)
        outer = tuple(zip(map(int, op.outer_lo.get_values()), map(int, op.outer_hi.get_values()), strict=True))
        faces = read_faces(self.step, steps.field_name(self.step, op.field)) or ((OPEN, OPEN),) * self.step.ndim
        widths = []
        for axis, (inside, outside) in enumerate(zip(between, outer, strict=True)):
            ends = self._ends(axis, faces[axis][0]) if axis in axes else (True, True)
            widths.append((outside[0] if ends[0] else inside[0], outside[1] if ends[1] else inside[1]))
        fill = self.fill(op.field, widths, op.corners is not None, axes)
        return self.setup.exchange(fill, between, axes, tag)

    def _start(self, op: StartOp) -> Ghosts:
        self.tokens[op.token] = self._exchange(op, len(self.tokens))
        return self.tokens[op.token]

    def _sweep(self, sweep: SweepOp) -> list[Action]:
        shape = self.setup.domain.local_shape
        first: list[Action] = []
        rest: list[Action] = []
        for piece in sweep.pieces:
            box = self.setup.domain.local(piece.box)
            if box is None:
                continue
            if sweep.margin is None:
                rest.append(self._launch(sweep, piece, box))
                continue
            inner, outer = split_margin(box, shape, sweep.margin)
            first += [] if inner is None else [self._launch(sweep, piece, inner)]
            rest += [self._launch(sweep, piece, part) for part in outer]
        waits: list[Action] = [self.tokens[t].wait for t in sweep.after]
        first, rest = self._together(first), self._together(rest)
        if waits and self._on_gpu and len(first) == 1:
            return [Beside(first[0], [*waits, *rest])]
        return [*first, *waits, *rest]

    def _together(self, launches: list[Action]) -> list[Action]:
        return [Branches(launches)] if self._on_gpu and len(launches) > 1 else launches

    @property
    def _on_gpu(self) -> bool:
        return any(a.device == "gpu" for a in self.arrays.values())

    def _launch(self, sweep: SweepOp, piece: PieceOp, box: Box) -> Action:
        kernel = self.kernels[piece.callee.string_value()]
        results = dict(zip(texts(sweep.gives), sweep.results_, strict=True))
        fields = [self.arrays[v] for v in piece.fields]
        outputs = [self.arrays[results[name]] for name in texts(piece.gives)]
        if box != whole(self.setup.domain.local_shape):
            fields, outputs = [region(a, box) for a in fields], [region(a, box) for a in outputs]
        bound = BoundSweep(kernel, fields, outputs, texts(piece.scalars), self.setup.engine)
        self.sweeps.append(bound)
        return lambda: bound.launch()
