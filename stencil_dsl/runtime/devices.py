"""Whether a GPU can be used here, and the one place that imports CuPy."""

from __future__ import annotations

from functools import cache
from typing import Any

from stencil_dsl.errors import GpuUnavailableError


@cache
def _probe() -> tuple[Any, str]:
    try:
        import cupy
    except ImportError:
        return None, "CuPy is not installed; pip install 'stencil-dsl[gpu]'"
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return None, "no CUDA device is visible"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return None, f"the CUDA runtime cannot be used: {error}"
    return cupy, ""


def gpu_available() -> bool:
    """Whether CuPy is installed and sees a device."""
    return _probe()[0] is not None


def require_cupy() -> Any:
    """The module cupy.

    Raises:
        GpuUnavailableError: saying what is missing.
    """
    module, why = _probe()
    if module is None:
        raise GpuUnavailableError(f"a GPU is needed here: {why}")
    return module
