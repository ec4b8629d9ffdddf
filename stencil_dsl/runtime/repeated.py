"""Several applications of a stencil as several launches, for stencils that one wider sweep cannot stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray, empty
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.kernel import Kernel, Options
from stencil_dsl.runtime.launch import HostLaunch, Launch
from stencil_dsl.runtime.partition import PartLaunches
from stencil_dsl.schedule.layout import Halo
from stencil_dsl.schedule.schedule import Schedule


class RepeatedKernel(Kernel):
    """A kernel whose call is `steps` launches of one application, used like one that makes them in a single sweep.

    The first field is what is advanced; further fields are coefficients, the same in every application. Each launch
    computes as far beyond the interior as the later ones read. Levels, resources and report are those of one launch.

    Raises:
        StencilError: for a stencil without a field or with several outputs.
    """

    def __init__(
        self,
        definition: Definition,
        steps: int,
        shape: Sequence[int] | None,
        schedule: Schedule | None,
        options: Options,
    ) -> None:
        if len(definition.outputs) != 1 or not definition.fields:
            raise StencilError(
                f"several steps of {definition.name} need one output, which goes on as the first field; it has"
                f" {len(definition.fields)} fields and {len(definition.outputs)} outputs"
            )
        self.once = Kernel(definition, None, schedule, options)
        super().__init__(replace(definition, steps=steps, single=definition.stencil), shape, schedule, options)

    @property
    def steps(self) -> int:
        return self.definition.steps

    @property
    def halo(self) -> Halo:
        return self.reach(self.steps)

    def reach(self, steps: int) -> Halo:
        """Cells before and behind, per axis, that so many applications read."""
        return tuple((lo * steps, hi * steps) for lo, hi in self.definition.halo)

    def for_shape(self, shape: Sequence[int] | None) -> RepeatedKernel:
        return RepeatedKernel(self.once.definition, self.steps, shape, self._asked, self.options)

    def bind(self, *arrays: Any, **scalars: float) -> Any:
        inputs, _, _ = self._arguments(arrays)
        fields, target, shape = list(arrays[:-1]), arrays[-1], inputs[0].layout.shape
        device: Device = "cpu" if inputs[0].device is None else "gpu"
        between = [empty(shape, self.reach(self.steps - 1), self.dtype, device) for _ in range(min(self.steps - 1, 2))]
        launches = []
        for number in range(self.steps):
            left = self.steps - 1 - number
            now = fields[0] if number == 0 else between[(number - 1) % 2]
            read = [self._grown(f, left) for f in (now, *fields[1:])]
            made = target if left == 0 else self._grown(between[number % 2], left)
            launches.append(self.once.bind(*read, made, **scalars))
        return RepeatedLaunch(launches, between)

    def _grown(self, array: Any, left: int) -> Any:
        """The array as one whose interior reaches as far beyond its own as `left` further applications read."""
        wider = self.reach(left)
        if not isinstance(array, PaddedArray):
            have = zip(self.halo, wider, self.definition.halo, array.shape, strict=True)
            return array[tuple(slice(h[0] - w[0] - r[0], n - h[1] + w[1] + r[1]) for h, w, r, n in have)]
        layout = replace(
            array.layout,
            shape=tuple(n + lo + hi for n, (lo, hi) in zip(array.layout.shape, wider, strict=True)),
            origin=tuple(o - lo for o, (lo, _) in zip(array.layout.origin, wider, strict=True)),
        )
        view = object.__new__(type(array))
        view.__dict__.update(array.__dict__)
        view.layout = layout
        view.interior = array.full[tuple(slice(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True))]
        return view


class RepeatedLaunch:
    """The launches of one call, in order.

    Attributes:
        between: the arrays that applications hand on to the next.
    """

    def __init__(self, launches: Sequence[Launch | HostLaunch | PartLaunches], between: Sequence[PaddedArray]) -> None:
        self.launches, self.between = list(launches), list(between)

    def set_scalars(self, scalars: Sequence[float]) -> None:
        """Change the run-time scalars of later launches."""
        for each in self.launches:
            each.set_scalars(scalars)

    def launch(self, stream: Any = None) -> None:
        """Enqueue all of them on a CuPy stream, or on the current one; on host arrays, run them."""
        for each in self.launches:
            each.launch(stream)
