"""The kernels of one sweep: one for the whole interior, or one for what whole blocks cover and one for each strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stencil_dsl.runtime.arguments import Argument
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.launch import HostLaunch, Launch
from stencil_dsl.runtime.specialize import Form, Specialization, problem_of
from stencil_dsl.schedule.layout import Box
from stencil_dsl.schedule.ranking import parts
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.target import target_for
from stencil_dsl.toolchain import Entry, KernelCache, Toolkit


class Partition:
    """Disjoint boxes that make up an interior, and the kernel of each.

    The kernels are ordinary ones for ordinary forms: a box is a region of the arrays, the cells around it are its halo.
    They read the sweep's inputs and write disjoint cells, so their order does not matter.

    Args:
        arch: the target that the strips' schedules are chosen for.

    Attributes:
        boxes: the main part's, then the strips'; a single one where nothing is cut off.
        specs: their kernels.

    Raises:
        ScheduleError: where the schedule is not legal for the main part.
    """

    def __init__(self, definition: Definition, form: Form, schedule: Schedule, arch: str) -> None:
        self.definition, self.form, self.schedule = definition, form, schedule
        self.boxes: tuple[Box, ...] = ()
        if not schedule.strips or form.shape is None:
            self.specs: tuple[Specialization, ...] = (Specialization(definition, form, schedule),)
            return
        schedule.check(definition.ndim, problem_of(definition, form).itemsize)
        found = parts(problem_of(definition, form), schedule, target_for(arch))
        self.boxes = tuple(box for box, _ in found)
        self.specs = tuple(Specialization(definition, part_of(form, box), chosen) for box, chosen in found)

    @property
    def main(self) -> Specialization:
        """The kernel of what whole blocks cover."""
        return self.specs[0]

    def requests(self, arch: str) -> list[dict[str, Any]]:
        """For each kernel the arguments of `toolchain.build`."""
        return [spec.request(arch) for spec in self.specs]

    def compile(self, arch: str, toolkit: Toolkit | str | None, cache: KernelCache | None) -> list[Entry]:
        """The cubins, from the cache or the compiler, the main part's first; raises like `Specialization.compile`."""
        return [spec.compile(arch, toolkit, cache) for spec in self.specs]

    def bind(
        self,
        entries: Sequence[Entry] | None,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        scalars: Sequence[float],
    ) -> Launch | HostLaunch | PartLaunches:
        """Launches on arrays of this form.

        Args:
            entries: what `compile` gave; None for host arrays.
        """
        launches: list[Launch | HostLaunch] = []
        for n, spec in enumerate(self.specs):
            read, written = (_parts(a, self.boxes[n]) if self.boxes else a for a in (inputs, outputs))
            if entries is None:
                launches.append(HostLaunch(spec, read, written, scalars))
            else:
                launches.append(Launch(spec, entries[n], read, written, scalars))
        return launches[0] if len(launches) == 1 else PartLaunches(launches)


def part_of(form: Form, box: Box) -> Form:
    """The form of a box of a form's arrays."""
    shape = tuple(hi - lo for lo, hi in box)
    inputs, outputs = (tuple(p.part(box) for p in layouts) for layouts in (form.inputs, form.outputs))
    return Form(shape, inputs, outputs, form.inplace)


def _parts(arguments: Sequence[Argument], box: Box) -> list[Argument]:
    return [replace(a, layout=a.layout.part(box)) for a in arguments]


class PartLaunches:
    """The kernels of a partition with their arguments filled in, launched one behind the other.

    Attributes:
        parts: the main part's launch, then the strips'.
        spec: of the main part.
        specs: of all parts.
    """

    def __init__(self, parts: Sequence[Launch | HostLaunch]) -> None:
        self.parts = list(parts)
        self.spec = self.parts[0].spec
        self.specs = tuple(p.spec for p in self.parts)

    def set_scalars(self, scalars: Sequence[float]) -> None:
        """Change the run-time scalars of later launches."""
        for each in self.parts:
            each.set_scalars(scalars)

    def launch(self, stream: Any = None) -> None:
        """Enqueue all parts on a CuPy stream, or on the current one; on host arrays, run them."""
        for each in self.parts:
            each.launch(stream)
