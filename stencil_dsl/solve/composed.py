"""Several time steps in one sweep, where that is legal."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.schedule.layout import ITEMSIZE, LINE_BYTES
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import BoundaryPass
from stencil_dsl.transforms.pipeline import PassManager
from stencil_dsl.transforms.temporal_blocking import TemporalBlockingPass, margin, reach

LINES = 8
"""Shorter rows, in cache lines, are not worth keeping aligned."""


def compose(
    module: ModuleOp, count: int, passes: PassManager, shape: Sequence[int], dtype: str = "float64"
) -> ModuleOp | None:
    """The step program that makes `count` steps at once.

    Args:
        module: the program of a single step, before any pass.
        passes: what makes it ready to run; the steps are composed as soon as boundaries are known.
        shape: extents of the interior.

    Returns:
        None where the cells that need single steps are all there are.

    Raises:
        StencilError: saying why several steps cannot be one sweep.
    """
    at = passes.names().index(BoundaryPass.name) + 1
    known = PassManager(passes.passes[:at]).run(module.clone())
    line = LINE_BYTES // ITEMSIZE[dtype]
    align = line if shape[-1] >= LINES * line else 1
    thick = margin(reach(known, steps.the_step(known)), count, count - 1, align)
    wide = PassManager((TemporalBlockingPass(count, align), *passes.passes[at:])).run(known)
    return wide if all(lo + hi < n for (lo, hi), n in zip(thick, shape, strict=True)) else None
