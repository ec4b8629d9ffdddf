"""A stencil compiler: Python functions become CUDA tile kernels near the speed of a copy.

Names are loaded when first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stencil_dsl.errors import (
    FrontendError,
    GpuUnavailableError,
    ScheduleError,
    StencilError,
    ToolchainError,
)

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil, stencil
    from stencil_dsl.runtime.arrays import PaddedArray, asarray, empty, zeros
    from stencil_dsl.runtime.compile import compile_fused
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.runtime.tuning_store import TuningStore
    from stencil_dsl.schedule.schedule import Schedule
    from stencil_dsl.solve.compile import compile

__version__ = "0.1.0"

_LAZY = {
    "stencil": "stencil_dsl.frontend.stencil",
    "Stencil": "stencil_dsl.frontend.stencil",
    "compile": "stencil_dsl.solve.compile",
    "compile_fused": "stencil_dsl.runtime.compile",
    "TuningStore": "stencil_dsl.runtime.tuning_store",
    "Kernel": "stencil_dsl.runtime.kernel",
    "Schedule": "stencil_dsl.schedule.schedule",
    "PaddedArray": "stencil_dsl.runtime.arrays",
    "empty": "stencil_dsl.runtime.arrays",
    "zeros": "stencil_dsl.runtime.arrays",
    "asarray": "stencil_dsl.runtime.arrays",
}

__all__ = [
    "FrontendError",
    "GpuUnavailableError",
    "Kernel",
    "PaddedArray",
    "Schedule",
    "ScheduleError",
    "Stencil",
    "StencilError",
    "ToolchainError",
    "TuningStore",
    "asarray",
    "compile",
    "compile_fused",
    "empty",
    "stencil",
    "zeros",
]


def __getattr__(name: str) -> Any:
    try:
        module = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'stencil_dsl' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))
