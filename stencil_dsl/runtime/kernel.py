"""A compiled stencil: its levels, its facts, and calling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arguments import Argument, check_overlap, read_argument, read_output
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.launch import HostLaunch, Launch
from stencil_dsl.runtime.partition import Partition, PartLaunches
from stencil_dsl.runtime.select import Mode, choose
from stencil_dsl.runtime.specialize import Form, Specialization, dynamic_form, padded_form
from stencil_dsl.runtime.tuning_store import TuningStore
from stencil_dsl.schedule.candidates import plain_schedule
from stencil_dsl.schedule.layout import ITEMSIZE, Halo, Layout
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shifted import uncovered

if TYPE_CHECKING:
    from stencil_dsl.runtime.validate import Validation
    from stencil_dsl.schedule.problem import Lowered
    from stencil_dsl.schedule.target import Target
    from stencil_dsl.toolchain import Entry, KernelCache, Resources, Toolkit


@dataclass(frozen=True)
class Options:
    """What `compile` was asked for besides stencil, shape and schedule; see there."""

    target: str = "sm_90"
    toolkit: Toolkit | str | None = None
    cache: KernelCache | None = None
    order: Literal["source", "fast"] = "fast"
    tune: Mode = "model"
    store: TuningStore | None = None
    progress: bool = False


class Kernel:
    """A compiled stencil. Call it with input fields, then outputs, then scalars by name."""

    def __init__(
        self,
        definition: Definition,
        shape: Sequence[int] | None,
        schedule: Schedule | None = None,
        options: Options | None = None,
    ) -> None:
        self.definition, self.options = definition, options or Options()
        self.target, self.toolkit, self.cache = self.options.target, self.options.toolkit, self.options.cache
        self.shape = None if shape is None else tuple(int(n) for n in shape)
        if self.shape is not None and (len(self.shape) != definition.ndim or min(self.shape) < 1):
            raise StencilError(f"{definition.name} needs {definition.ndim} positive extents, got {self.shape}")
        self._asked = schedule
        self._chosen: dict[Form, Schedule] = {}
        self._forms: dict[tuple[Form, Schedule], tuple[Partition, list[Entry]]] = {}
        if schedule is not None:
            schedule.check(definition.ndim, ITEMSIZE[definition.dtype])
        if self.shape is not None:
            self._specialization()

    # -- facts

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def dtype(self) -> str:
        return self.definition.dtype

    @property
    def halo(self) -> Halo:
        """Per axis the cells (before, behind) that arrays must have around the interior."""
        return self.definition.halo

    @property
    def schedule(self) -> Schedule:
        """The schedule asked for or chosen for the kernel's shape (without a shape: what plain arrays get)."""
        if self._asked is not None:
            return self._asked
        return plain_schedule(self.definition.ndim) if self.shape is None else self._schedule_for(self.default_form())

    def _schedule_for(self, form: Form) -> Schedule:
        if self._asked is not None:
            return self._asked
        if form not in self._chosen:
            o = self.options
            self._chosen[form] = choose(
                self.definition, form, o.order, o.tune, o.target, o.toolkit, o.cache, o.store, o.progress
            )
        return self._chosen[form]

    def explain(self, count: int = 10, target: Target | None = None) -> str:
        """How the model ranks the schedules of this kernel's shape, and why.

        Args:
            count: schedules to show.
            target: another GPU, or this one with its measured rates (`Target.with_ceilings`).
        """
        from stencil_dsl.runtime.explain import explain

        return explain(self, count, target)

    def ir(self, level: Literal["source", "stencil", "tile"]) -> str:
        """The IR at one level, as text that parses back.

        Args:
            level: "source" mirrors the Python function, "stencil" is xDSL's stencil dialect after all passes, "tile"
                is the block-level program (needs a shape).
        """
        if level == "source":
            if self.definition.source is None:
                raise StencilError("a fused kernel has no single source; ask for ir('stencil')")
            return str(self.definition.source)
        if level == "stencil":
            return str(self.definition.stencil)
        if level == "tile":
            return str(self._specialization().lowered.module)
        raise StencilError(f"levels are 'source', 'stencil' and 'tile', got {level!r}")

    @property
    def lowered(self) -> Lowered:
        """The level-3 module with the launch geometry."""
        return self._specialization().lowered

    @property
    def source(self) -> str:
        """The emitted cuTile Python file."""
        return self._specialization().source

    @property
    def entries(self) -> list[Entry]:
        """All that a sweep launches, compiled: the kernel, or the main part's and those of the strips."""
        return self._entries(self.default_form())

    @property
    def entry(self) -> Entry:
        """The compiled kernel with all that is known about it; of several, the main part's."""
        return self.entries[0]

    @property
    def cubin(self) -> bytes:
        return self.entry.cubin

    @property
    def resources(self) -> Resources:
        """Registers, spills, shared memory and instruction counts, read from the cubin."""
        return self.entry.resources

    @property
    def sass(self) -> str | None:
        return self.entry.sass

    @property
    def tile_ir(self) -> str:
        """Tile IR text (toolkit 13.4 or later)."""
        from stencil_dsl import toolchain

        kit = self.toolkit if isinstance(self.toolkit, toolchain.Toolkit) else toolchain.find(self.toolkit)
        return toolchain.tile_ir(self.entry.bytecode, kit)

    @property
    def remarks(self) -> str:
        return self.entry.remarks

    def report(self) -> str:
        """What the kernel does a cell, before and after scheduling, and what it compiled to."""
        from stencil_dsl.runtime.report import report

        return report(self)

    # -- specializing

    def default_form(self) -> Form:
        """Shape and layouts of arrays that this package makes for the kernel's shape."""
        if self.shape is None:
            if self._asked is None or self._asked.static_shape:
                raise StencilError(
                    f"{self.name} has no shape yet; pass shape=... to compile, or call it with arrays first"
                )
            sample = Layout.padded((1,) * self.definition.ndim, self.halo, self.dtype)
            d = self.definition
            return dynamic_form([sample] * len(d.fields), [sample] * len(d.outputs), True, ITEMSIZE[d.dtype], False)
        return padded_form(self.definition, self.shape)

    @property
    def partition(self) -> Partition:
        """The boxes of the kernel's shape that a sweep launches kernels on, and these."""
        return self._partition(self.default_form())

    def _partition(self, form: Form) -> Partition:
        schedule = self._schedule_for(form)
        if (form, schedule) not in self._forms:
            self._forms[form, schedule] = (Partition(self.definition, form, schedule, self.target), [])
        return self._forms[form, schedule][0]

    def _specialization(self) -> Specialization:
        return self.partition.main

    def _entries(self, form: Form) -> list[Entry]:
        partition = self._partition(form)
        entries = self._forms[form, self._schedule_for(form)][1]
        if not entries:
            entries += partition.compile(self.target, self.toolkit, self.cache)
        return entries

    def for_shape(self, shape: Sequence[int] | None) -> Kernel:
        """The same stencil, target and schedule for another interior."""
        return Kernel(self.definition, shape, self.schedule, self.options)

    def with_toolkit(self, toolkit: Toolkit | str | None) -> Kernel:
        """The same kernel by another toolkit. Schedules that were chosen stay, and nothing is lowered again."""
        other = copy(self)
        other.options = replace(self.options, toolkit=toolkit)
        other.toolkit = toolkit
        other._chosen = dict(self._chosen)
        other._forms = {key: (partition, []) for key, (partition, _) in self._forms.items()}
        return other

    # -- calling

    def _arguments(self, arrays: Sequence[Any]) -> tuple[list[Argument], list[Argument], bool]:
        d = self.definition
        names = [*d.fields, *d.outputs]
        if len(arrays) != len(names):
            raise StencilError(
                f"{self.name} takes {len(d.fields)} fields ({', '.join(d.fields)}) and {len(d.outputs)} outputs, got"
                f" {len(arrays)} arrays"
            )
        n = len(d.fields)
        # Arrays without padding carry the stencil's halo on every side, whatever a single field needs.
        inputs = [
            read_argument(name, a, self.halo if not hasattr(a, "layout") else h, self.dtype, writable=False)
            for name, a, h in zip(d.fields, arrays[:n], d.field_halos, strict=True)
        ]
        shape = inputs[0].layout.shape
        for a in inputs[1:]:
            if a.layout.shape != shape:
                raise StencilError(
                    f"fields differ in shape: {inputs[0].name!r} has an interior of {shape}, {a.name!r} of"
                    f" {a.layout.shape}"
                )
        if self.shape is not None and shape != self.shape:
            raise StencilError(f"{self.name} was compiled for an interior of {self.shape}, got {shape}")
        outputs = [
            read_output(name, a, shape, self.halo, self.dtype) for name, a in zip(d.outputs, arrays[n:], strict=True)
        ]
        if len({a.device for a in (*inputs, *outputs)}) > 1:
            where = {a.name: "host" if a.device is None else f"GPU {a.device}" for a in (*inputs, *outputs)}
            raise StencilError(f"all arrays must be on one device, got {where}")
        return inputs, outputs, check_overlap(inputs, outputs, list(d.pointwise))

    def _scalars(self, values: Mapping[str, float]) -> list[float]:
        d = self.definition
        if set(values) != set(d.scalars):
            raise StencilError(
                f"{self.name} takes the scalars {list(d.scalars) or 'none'}, got {sorted(values) or 'none'}"
            )
        return [float(values[s]) for s in d.scalars]

    def bind(self, *arrays: Any, **scalars: float) -> Launch | HostLaunch | PartLaunches:
        """Check the arguments once and give an object whose `launch(stream=None)` only launches.

        Args:
            arrays: the fields, then one array an output: PaddedArrays, or arrays of any library whose outer cells are
                the halo. Host arrays run in the interpreter.
            scalars: run-time scalars by name.

        Raises:
            StencilError: naming the argument that does not fit and what would.
        """
        inputs, outputs, inplace = self._arguments(arrays)
        shape = inputs[0].layout.shape
        form = Form(shape, tuple(a.layout for a in inputs), tuple(a.layout for a in outputs), inplace)
        if self._asked is not None and not self._asked.static_shape:
            tiles, nodes = self._asked.tile, self.definition.graph.outputs
            covered = uncovered(self.definition.fields, nodes, shape, form.inputs, tiles) is None
            form = dynamic_form(form.inputs, form.outputs, covered, ITEMSIZE[self.dtype], inplace)
        entries = None if inputs[0].device is None else self._entries(form)
        return self._partition(form).bind(entries, inputs, outputs, self._scalars(scalars))

    def __call__(self, *arrays: Any, stream: Any = None, **scalars: float) -> None:
        """Enqueue one sweep; arguments as for `bind`. Nothing is synchronised."""
        self.bind(*arrays, **scalars).launch(stream)

    def validate(self, seed: int = 0, device: Literal["gpu", "cpu"] | None = None) -> Validation:
        """Compare with the NumPy reference on random data, on the GPU where there is one, else interpreted."""
        from stencil_dsl.runtime.validate import validate

        return validate(self, seed, device)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, shape={self.shape}, dtype={self.dtype!r}, target={self.target!r})"
