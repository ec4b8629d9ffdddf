"""A step program on real arrays: memory for its fields, kernels bound for every phase of the rotation, and one step.

A phase is a step's place in the cycle of rotating fields: the same operations on other buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from stencil_dsl.dialects.timestep import SweepOp, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray, zeros
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.kernel import Kernel
from stencil_dsl.schedule.layout import Halo
from stencil_dsl.solve.binding import Action, Binder, Phase, Setup
from stencil_dsl.solve.boxes import Domain, cells, check_cover
from stencil_dsl.solve.ghosts import RunTimeValues
from stencil_dsl.solve.points import Clock, Receiver, Source
from stencil_dsl.solve.storage import assign
from stencil_dsl.solve.views import local_profile
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import read_faces


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
        self.points: list[Source | Receiver] = []
        self.clock = Clock(self.buffers[0])
        self._phases: dict[int, Phase] = {}
        self._lasting: list[Action] = []

    # -- facts

    @property
    def cycle(self) -> int:
        """Steps after which every field is back in its buffer."""
        return self.storage.cycle

    @property
    def rotating(self) -> list[PaddedArray]:
        """Buffers that a state of one field goes through, the present one first."""
        first = self.storage.moves.index(0)
        return [self.buffers[n] for n in dict.fromkeys((0, first))]

    @property
    def scalars(self) -> tuple[str, ...]:
        """Run-time scalars of kernels and boundaries."""
        used = [name for sweep in self._sweeps() for piece in sweep.pieces for name in texts(piece.scalars)]
        self.phase(0)
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
                check_cover(name, found, shape, name not in texts(sweep.kept) and sweep.partial is None)

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
                arrays.append(zeros(shape, self.halo, s.dtype, s.device, self._aligned()))
                continue
            axes, values = s.profiles[name]
            arrays.append(local_profile(values, axes, s.domain.shape, s.domain.box, self.halo, s.dtype, s.device))
        return arrays

    def _aligned(self) -> int:
        """The first cell along the last axis of the largest piece: its loads are wide if it lies on a cache line."""
        local = [self.setup.domain.local(p.box) for sweep in self._sweeps() for p in sweep.pieces]
        largest = max((box for box in local if box is not None), key=cells, default=None)
        return 0 if largest is None else largest[-1][0]

    # -- binding

    def phase(self, number: int) -> Phase:
        """The step at one place of the cycle."""
        if not self._phases:
            self._bind()
        return self._phases[number % self.cycle]

    def _bind(self) -> None:
        self._lasting = self._binder({v: self.buffers[p] for v, p in self.storage.place.items()}).lasting()
        for number in range(self.cycle):
            order = self.storage.buffers(number)
            arrays = {value: self.buffers[order[place]] for value, place in self.storage.place.items()}
            phase = self._binder(arrays).bind()
            bound = [p.bind(self.array(p.field, number + 1), self.clock) for p in self.points]
            phase.actions += [action for action in bound if action is not None]
            phase.actions += [self.clock.tick] if self.points else []
            self._phases[number] = phase
        self._hoist()

    def _hoist(self) -> None:
        """Ghost cells that no sweep writes and that always get the same values are filled before the first step."""
        if self.setup.exchange is not None:
            return  # what other ranks send may share a buffer with them
        fills = [f for phase in self._phases.values() for f in phase.fills.values()]
        facts: dict[int, set[object]] = {}
        for f in fills:
            facts.setdefault(id(f.array), set()).add(f.constant)
        steady = {array for array, found in facts.items() if len(found) == 1 and None not in found}
        self._lasting += list({id(f.array): f.apply for f in fills if id(f.array) in steady}.values())
        for phase in self._phases.values():
            moved = [action for action, f in phase.fills.items() if id(f.array) in steady]
            phase.actions = [action for action in phase.actions if action not in moved]

    def add_points(self, points: Source | Receiver) -> None:
        """Let a source or receiver act after every step."""
        self.array(points.field, 0)  # refuses unknown names
        self.points.append(points)
        self._phases.clear()

    def _binder(self, arrays: Mapping[SSAValue, PaddedArray]) -> Binder:
        return Binder(self.step, self.setup, self.kernels, self.values, arrays)

    def lasting(self) -> list[Action]:
        """Fills that need not be repeated from step to step."""
        self.phase(0)
        return self._lasting
