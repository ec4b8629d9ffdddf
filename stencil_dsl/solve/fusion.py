"""Which sweeps of a step to fuse: those whose common kernel is predicted to take less time than they do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.dialects.timestep import SweepOp, texts
from stencil_dsl.errors import ScheduleError
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.select import rank
from stencil_dsl.runtime.specialize import Form
from stencil_dsl.schedule.layout import Layout
from stencil_dsl.schedule.target import Target, target_for
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.fuse_sweeps import depends, mergeable, merged_function

LAUNCH_SECONDS = 1.5e-6
"""What a kernel costs besides its work, in a CUDA graph."""


class Fusion:
    """Finds groups of sweeps that one kernel should compute.

    Args:
        module: a step program before ghost cells are filled.
        shape: extents of the interior.
        arch: GPU whose model decides.
    """

    def __init__(self, module: ModuleOp, shape: Sequence[int], dtype: str, arch: str, order: str) -> None:
        self.module, self.shape, self.dtype, self.order = module, tuple(shape), dtype, order
        self.step = steps.the_step(module)
        self.target: Target = target_for(arch)
        self.known: dict[tuple[SweepOp, ...], float] = {}

    def groups(self) -> tuple[str, ...]:
        """Entries of the pass `fuse-sweeps`: pairs are joined, the most profitable first, while that saves time."""
        found: list[tuple[SweepOp, ...]] = [
            (op,) for op in self.step.body.block.ops if isinstance(op, SweepOp) and mergeable(op)
        ]
        while True:
            gains = [(self._gain(a, b), a, b) for a, b in combinations(found, 2) if self._legal(a, b, found)]
            best = max(gains, key=lambda g: g[0], default=None)
            if best is None or best[0] <= 0:
                break
            _, a, b = best
            found = [g for g in found if g not in (a, b)] + [a + b]
        return tuple(" ".join(name for op in group for name in texts(op.gives)) for group in found if len(group) > 1)

    def _legal(self, a: tuple[SweepOp, ...], b: tuple[SweepOp, ...], groups: Sequence[tuple[SweepOp, ...]]) -> bool:
        """Neither group depends on the other, nor would they through a third one."""

        def after(later: Sequence[SweepOp], earlier: Sequence[SweepOp]) -> bool:
            return any(depends(self.step, x, y) for x in later for y in earlier)

        if after(a, b) or after(b, a):
            return False
        others = [g for g in groups if g not in (a, b)]
        return not any((after(g, a) and after(b, g)) or (after(g, b) and after(a, g)) for g in others)

    def _gain(self, a: tuple[SweepOp, ...], b: tuple[SweepOp, ...]) -> float:
        """Seconds that joining two groups saves."""
        try:
            return self.seconds(a) + self.seconds(b) - self.seconds(a + b)
        except ScheduleError:
            return -1.0

    def seconds(self, group: tuple[SweepOp, ...]) -> float:
        """Predicted time of a group's kernel under the schedule predicted fastest."""
        if group not in self.known:
            function = merged_function(self.module, self.step, group)
            definition = Definition(None, ModuleOp([function]), self.dtype)
            layout = Layout.padded(self.shape, definition.halo, self.dtype)
            form = Form(self.shape, (layout,) * len(definition.fields), (layout,) * len(definition.outputs))
            best = rank(definition, form, self.order, self.target)[0]
            self.known[group] = best.prediction.seconds + LAUNCH_SECONDS
        return self.known[group]
