"""A step program on real arrays: memory for its fields, kernels bound for every phase of the rotation, and one step.

A phase is a step's place in the cycle of rotating fields: the same operations on other buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from stencil_dsl.dialects.boundary import OPEN
from stencil_dsl.dialects.comm import StartOp, WaitOp
from stencil_dsl.dialects.timestep import FillOp, PieceOp, SweepOp, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray, zeros
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.kernel import Kernel, Options
from stencil_dsl.schedule.layout import Halo
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.solve.boxes import Box, Domain, check_cover, split_margin, whole
from stencil_dsl.solve.ghosts import FaceArrays, GhostFill, RunTimeValues, Widths
from stencil_dsl.solve.launches import BoundSweep, Engine
from stencil_dsl.solve.storage import assign
from stencil_dsl.solve.views import local_profile, region
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import Faces, read_faces

Action = Callable[[], Any]


class Ghosts(Protocol):
    """Ghost cells on their way: `start` may return before they are valid, `wait` does not."""

    def start(self) -> None: ...

    def wait(self) -> None: ...


class Exchange(Protocol):
    """Makes what exchanges the ghost cells of one array with other ranks along some axes."""

    def __call__(self, fill: GhostFill, axes: Sequence[int], tag: int) -> Ghosts: ...


@dataclass(frozen=True)
class Setup:
    """What a program is run with.

    Attributes:
        domain: the cells of this rank.
        faces: arrays of values over faces, by the name of the field of the state.
        profiles: fields of the state that vary along some axes only, with these and their values.
        schedules: of kernels, by name; "*" for all others. None chooses.
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
    """One step on fixed buffers."""

    actions: list[Action]
    sweeps: list[BoundSweep]

    def set(self, scalars: Mapping[str, float]) -> None:
        for sweep in self.sweeps:
            sweep.set(scalars)

    def run(self) -> None:
        for action in self.actions:
            action()


class Program:
    """A step program, ready to run.

    Args:
        module: the step, fills and exchanges inserted, with its kernels.
        buffers: memory of another program of the same fields, to share; its halo must be wide enough.

    Raises:
        StencilError: where memory, boxes or boundaries do not fit the program.
    """

    def __init__(self, module: ModuleOp, setup: Setup, buffers: Sequence[PaddedArray] | None = None) -> None:
        self.module, self.setup = module, setup
        self.step = steps.the_step(module)
        self.names = texts(self.step.state)
        self.storage = assign(module)
        self.values = RunTimeValues()
        self.kernels = {name: self._kernel(name) for name in self._callees()}
        self.halo = self._halo()
        self._check_pieces()
        self._check_lasting()
        self.buffers = self._allocate() if buffers is None else list(buffers[: self.storage.count])
        self._phases: dict[int, Phase] = {}
        self._lasting: list[Action] | None = None

    # -- facts

    @property
    def cycle(self) -> int:
        """Steps after which every field is back in its buffer."""
        return self.storage.cycle

    @property
    def scalars(self) -> tuple[str, ...]:
        """Run-time scalars of kernels and boundaries."""
        used = [name for sweep in self._sweeps() for piece in sweep.pieces for name in texts(piece.scalars)]
        self._bind_all()
        return tuple(dict.fromkeys([*used, *self.values.names]))

    def array(self, name: str, step: int) -> PaddedArray:
        """The array that holds a field of the state before the given step."""
        if name not in self.names:
            raise StencilError(f"no field {name!r} in the state; it has {', '.join(self.names)}")
        return self.buffers[self.storage.buffers(step % self.cycle)[self.names.index(name)]]

    def _sweeps(self) -> Iterator[SweepOp]:
        return (op for op in self.step.body.block.ops if isinstance(op, SweepOp))

    def _callees(self) -> list[str]:
        return list(dict.fromkeys(p.callee.string_value() for s in self._sweeps() for p in s.pieces))

    # -- setting up

    def _kernel(self, name: str) -> Kernel:
        function = steps.callee(self.module, name).function.clone()
        definition = Definition(None, ModuleOp([function]), self.setup.dtype)
        schedules = self.setup.schedules
        return Kernel(definition, None, schedules.get(name, schedules.get("*")), self.setup.options)

    def _halo(self) -> Halo:
        ndim = self.step.ndim
        halos = [k.halo for k in self.kernels.values()] or [((0, 0),) * ndim]
        return tuple((max(h[a][0] for h in halos), max(h[a][1] for h in halos)) for a in range(ndim))

    def _check_pieces(self) -> None:
        shape = self.setup.domain.shape
        full = Domain.single(shape)
        for sweep in self._sweeps():
            for name in texts(sweep.gives):
                boxes = [full.local(p.box) for p in sweep.pieces if name in texts(p.gives)]
                found = [b for b in boxes if b is not None]
                check_cover(name, found, shape, name not in texts(sweep.kept))

    def _check_lasting(self) -> None:
        """Profiles and kept ghost cells are for fields that no step changes: others move from buffer to buffer."""
        lasting = steps.constants(self.step)
        unchanged = [n for n, a in zip(self.names, self.step.body.block.args, strict=True) if a in lasting]
        for name in self.setup.profiles:
            if name not in unchanged:
                why = "changes from step to step" if name in self.names else "is no field of the state"
                raise StencilError(f"{name!r} {why}, so it cannot be a profile; fields that can are {unchanged}")
        for name, value in self.step.named_values():
            faces = read_faces(self.step, name) or ()
            if value not in lasting and any(f.kind.data == "keep" for pair in faces for f in pair):
                raise StencilError(
                    f"Keep() is for fields that no step changes, and {name!r} changes; use Dirichlet(array)"
                )

    def _allocate(self) -> list[PaddedArray]:
        s, shape = self.setup, self.setup.domain.local_shape
        arrays: list[PaddedArray] = []
        for index in range(self.storage.count):
            name = self.names[index] if index < len(self.names) else ""
            if name not in s.profiles:
                arrays.append(zeros(shape, self.halo, s.dtype, s.device))
                continue
            axes, values = s.profiles[name]
            arrays.append(local_profile(values, axes, s.domain.shape, s.domain.box, self.halo, s.dtype, s.device))
        return arrays

    # -- binding

    def phase(self, number: int) -> Phase:
        """The step at one place of the cycle, bound when first asked for."""
        number %= self.cycle
        if number not in self._phases:
            order = self.storage.buffers(number)
            arrays = {value: self.buffers[order[place]] for value, place in self.storage.place.items()}
            self._phases[number] = _Binder(self, arrays).bind()
        return self._phases[number]

    def _bind_all(self) -> None:
        for number in range(self.cycle):
            self.phase(number)
        self.lasting()

    def lasting(self) -> list[Action]:
        """Fills of fields that no step changes."""
        if self._lasting is None:
            arrays = {value: self.buffers[place] for value, place in self.storage.place.items()}
            binder = _Binder(self, arrays)
            fills = [op for op in self.step.body.block.ops if isinstance(op, FillOp) and op.once is not None]
            self._lasting = [binder.fill(op.field, _widths(op), op.corners is not None).apply for op in fills]
        return self._lasting


def _widths(op: FillOp | StartOp) -> Widths:
    pairs = zip(op.lo.get_values(), op.hi.get_values(), strict=True)
    return tuple((int(lo), int(hi)) for lo, hi in pairs)


class _Binder:
    """Makes the actions of one phase."""

    def __init__(self, program: Program, arrays: Mapping[SSAValue, PaddedArray]) -> None:
        self.program, self.arrays = program, arrays
        self.setup, self.step = program.setup, program.step
        self.sweeps: list[BoundSweep] = []
        self.tokens: dict[SSAValue, Ghosts] = {}

    def bind(self) -> Phase:
        actions: list[Action] = []
        for op in self.step.body.block.ops:
            if isinstance(op, FillOp) and op.once is None:
                actions.append(self.fill(op.field, _widths(op), op.corners is not None).apply)
            elif isinstance(op, StartOp):
                actions.append(self._start(op).start)
            elif isinstance(op, WaitOp):
                actions.append(self.tokens[op.token].wait)
            elif isinstance(op, SweepOp):
                actions += self._sweep(op)
        return Phase(actions, self.sweeps)

    def fill(self, value: SSAValue, widths: Widths, corners: bool, exchanged: Sequence[int] = ()) -> GhostFill:
        """The fill of one field; faces along exchanged axes are left to the exchange."""
        name = steps.field_name(self.step, value)
        faces: Faces = read_faces(self.step, name) or ((OPEN, OPEN),) * self.step.ndim
        arrays = self.setup.faces.get(name, self.setup.faces.get(steps.origin(self.step, name), {}))
        domain = self.setup.domain
        ours = [
            tuple(
                None if axis in exchanged and not _outermost(domain, axis, side, pair) else face
                for side, face in enumerate(pair)
            )
            for axis, pair in enumerate(faces)
        ]
        return GhostFill(name, self.arrays[value], ours, widths, self.program.values, arrays, corners)  # type: ignore[arg-type]

    def _start(self, op: StartOp) -> Ghosts:
        if self.setup.exchange is None:
            raise StencilError("the program exchanges ghost cells with other ranks, but runs on one")
        axes = [int(a) for a in op.axes.get_values()]
        fill = self.fill(op.field, _widths(op), op.corners is not None, axes)
        self.tokens[op.token] = self.setup.exchange(fill, axes, len(self.tokens))
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
        return [*first, *(self.tokens[t].wait for t in sweep.after), *rest]

    def _launch(self, sweep: SweepOp, piece: PieceOp, box: Box) -> Action:
        kernel = self.program.kernels[piece.callee.string_value()]
        results = dict(zip(texts(sweep.gives), sweep.results_, strict=True))
        fields = [self.arrays[v] for v in piece.fields]
        outputs = [self.arrays[results[name]] for name in texts(piece.gives)]
        if box != whole(self.setup.domain.local_shape):
            fields, outputs = [region(a, box) for a in fields], [region(a, box) for a in outputs]
        bound = BoundSweep(kernel, fields, outputs, texts(piece.scalars), self.setup.engine)
        self.sweeps.append(bound)
        return bound.launch


def _outermost(domain: Domain, axis: int, side: int, pair: Sequence[Any]) -> bool:
    """Whether a face of this rank's part is one of the whole interior, with a rule other than a period."""
    lo, hi = domain.box[axis]
    return (lo == 0 if side == 0 else hi == domain.shape[axis]) and pair[side].kind.data != "periodic"
