"""Several time steps in one sweep, where that is legal."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.dialects.boundary import AXES, OPEN
from stencil_dsl.dialects.timestep import SweepOp
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import steps
from stencil_dsl.transforms.boundary import read_faces
from stencil_dsl.transforms.pipeline import PassManager


def compose(module: ModuleOp, count: int, passes: PassManager) -> ModuleOp:
    """The step program that makes `count` steps at once.

    Ghost cells are then as wide as so many steps reach. In the interior's period they hold what the other end of the
    interior holds, so every step in between is right; across other faces it would have to be applied in between too.

    Args:
        module: the program of a single step, before any pass.
        passes: what makes it ready to run.

    Raises:
        StencilError: saying why several steps cannot be one sweep.
    """
    step = steps.the_step(module)
    ops = list(step.body.block.ops)
    sweep = ops[0]
    whole = isinstance(sweep, SweepOp) and len(sweep.pieces) == 1 and sweep.pieces[0].box is None
    if len(ops) != 2 or not whole or len(step.state) != 1:
        raise StencilError(
            "several steps in one sweep need one stencil that advances one field over the whole interior"
        )
    wide = PassManager.from_spec(f"compose-steps{{steps={count}}},footprint,roofline").run(module.clone())
    passes.run(wide)
    name = step.value_names()[0]
    for axis, pair in zip(AXES[step.ndim], read_faces(steps.the_step(wide), name) or ((OPEN, OPEN),), strict=False):
        for sign, face in zip("-+", pair, strict=True):
            if face.kind.data != "periodic":
                raise StencilError(
                    f"more than one step a sweep needs periodic faces: {name!r} is {face.kind.data} across"
                    f" {axis}{sign}; leave temporal_steps at 1"
                )
    return wide
