"""`stencil_dsl.compile`: for one device, or with `num_gpus` for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.compile import compile as compile_for_one

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.solve.spread_kernel import SpreadKernel


@overload
def compile(f: Stencil, *args: Any, num_gpus: Literal[1] = 1, grid: None = None, **options: Any) -> Kernel: ...
@overload
def compile(
    f: Stencil, *args: Any, num_gpus: int, grid: Sequence[int] | None = None, **options: Any
) -> SpreadKernel: ...


def compile(
    f: Stencil, *args: Any, num_gpus: int = 1, grid: Sequence[int] | None = None, **options: Any
) -> Kernel | SpreadKernel:
    """Compile a stencil.

    Args:
        f: a function under `@stencil`.
        args, options: target, dtype, shape, schedule, toolkit, cache, order, tune, store, temporal_steps,
            temporal_fallback, progress; see `stencil_dsl.runtime.compile.compile`.
        num_gpus: devices that share the interior, cut into boxes; on the host, threads. A program that an MPI launcher
            started has one box a process instead, as many as there are.
        grid: boxes along x, or along x and y; None cuts along x.

    Raises:
        StencilError: as for one device, and for a number of devices below 1 or a grid that does not fit it.
    """
    kernel = compile_for_one(f, *args, **options)
    if num_gpus == 1 and grid is None:
        return kernel
    if num_gpus < 1:
        raise StencilError(f"num_gpus is at least 1, got {num_gpus}")
    from stencil_dsl.solve.spread_kernel import SpreadKernel

    return SpreadKernel(kernel, num_gpus, grid)
