"""`compile` and `compile_fused`: from stencils to kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.fused import fuse
from stencil_dsl.runtime.kernel import Kernel, Options
from stencil_dsl.runtime.repeated import RepeatedKernel
from stencil_dsl.runtime.select import Mode
from stencil_dsl.runtime.tuning_store import TuningStore
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.transforms.compose_steps import NotLinearError

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil
    from stencil_dsl.toolchain import KernelCache, Toolkit


def compile(
    f: Stencil,
    target: str = "sm_90",
    dtype: str = "float64",
    shape: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    toolkit: Toolkit | str | None = None,
    cache: KernelCache | None = None,
    *,
    order: Literal["source", "fast"] = "fast",
    tune: Mode = "model",
    store: TuningStore | None = None,
    temporal_steps: int = 1,
    temporal_fallback: bool = False,
    progress: bool = False,
) -> Kernel:
    """Compile a stencil.

    Args:
        f: a function under `@stencil`.
        target: GPU architecture, such as "sm_90".
        dtype: "float64" or "float32", of all fields and scalars.
        shape: extents of the interior. None: each shape is compiled when it is first met (or, with a schedule that
            has static_shape=False, one kernel serves all).
        schedule: how to run it; None chooses.
        toolkit: name or Toolkit to compile with; None takes the default one.
        cache: where cubins are kept; None takes the user's.
        order: "fast" lets the chosen schedule reassociate sums (relative error about 1e-15 in float64), "source" keeps
            the order of operations. A schedule that is given says so itself.
        tune: how a schedule is chosen: "model" ranks without compiling, "compile" also compiles the best few and drops
            those that spill, "measure" times the rest on the device and remembers the fastest.
        store: remembered choices; None takes the one named by STENCIL_DSL_TUNING, or the user's.
        temporal_steps: applications of the stencil that one sweep makes. More than one needs a stencil that is linear
            in its one field with constant coefficients; the halo grows with it.
        temporal_fallback: where it is not linear so, make as many launches a call instead: of a stencil with one
            output, which goes on as the first field.
        progress: say on standard error what a longer search is doing.

    Raises:
        FrontendError: where the function is no stencil.
        NotLinearError: for several steps of a stencil that is not linear, saying what is not.
        ScheduleError: where the schedule is not legal.
        ToolchainError: where nothing can be compiled here and the cache has no such kernel.
    """
    options = Options(target, toolkit, cache, order, tune, store, progress)
    try:
        return Kernel(Definition.of(f, dtype, steps=temporal_steps), shape, schedule, options)
    except NotLinearError as error:
        if not temporal_fallback:
            raise NotLinearError(f"{error}; temporal_fallback=True makes {temporal_steps} launches instead") from error
        return RepeatedKernel(Definition.of(f, dtype), temporal_steps, shape, schedule, options)


def compile_fused(
    stencils: Sequence[Stencil],
    target: str = "sm_90",
    dtype: str = "float64",
    shape: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    toolkit: Toolkit | str | None = None,
    cache: KernelCache | None = None,
    *,
    name: str | None = None,
    order: Literal["source", "fast"] = "fast",
    tune: Mode = "model",
    store: TuningStore | None = None,
    progress: bool = False,
) -> Kernel:
    """One kernel that computes several stencils; fields and scalars are matched by name.

    The fields are the union in order of first appearance, then come the outputs of each stencil. Arguments as for
    `compile`; `name` names the kernel (default: the stencils' names joined).
    """
    options = Options(target, toolkit, cache, order, tune, store, progress)
    return Kernel(fuse(stencils, dtype, name), shape, schedule, options)
