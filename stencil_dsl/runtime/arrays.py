"""Arrays with halo, rows that start on cache lines, and the slack behind them that unchecked loads may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.devices import gpu_available, require_cupy
from stencil_dsl.schedule.layout import ITEMSIZE, LINE_BYTES, Halo, Layout, normalize_halo

Device = Literal["gpu", "cpu"]


class PaddedArray:
    """A field: the cells of an interior and the halo around it, on the GPU (CuPy) or on the host (NumPy).

    Attributes:
        interior: the cells, a view of shape `shape`.
        full: interior, halo and padding, a view of shape `layout.extents`.
        layout: where everything lies, in elements.
        buffer: the flat allocation.
    """

    def __init__(self, buffer: Any, layout: Layout, dtype: str) -> None:
        self.buffer, self.layout, self.dtype = buffer, layout, dtype
        size = int(np.prod(layout.extents))
        self.full = buffer[:size].reshape(layout.extents)
        self.interior = self.full[tuple(slice(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True))]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the interior."""
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return len(self.layout.shape)

    @property
    def halo(self) -> Halo:
        return self.layout.halo

    @property
    def device(self) -> Device:
        return "cpu" if isinstance(self.buffer, np.ndarray) else "gpu"

    def with_halo(self, halo: Halo) -> Any:
        """View of the interior and a halo of the given widths (not wider than the array's)."""
        box = []
        for o, n, (lo, hi), (have_lo, have_hi) in zip(self.layout.origin, self.shape, halo, self.halo, strict=True):
            if lo > have_lo or hi > have_hi:
                raise StencilError(f"a halo of {halo} is asked for, the array has {self.halo}")
            box.append(slice(o - lo, o + n + hi))
        return self.full[tuple(box)]

    def fill(self, value: float) -> None:
        """Set every element, padding included."""
        self.buffer.fill(value)

    def to_numpy(self) -> np.ndarray:
        """The interior on the host, a copy."""
        data = self.interior
        return np.array(data) if self.device == "cpu" else data.get()

    def __repr__(self) -> str:
        return f"PaddedArray(shape={self.shape}, halo={self.halo}, dtype={self.dtype!r}, device={self.device!r})"


def _device(device: Device | None) -> Device:
    return device or ("gpu" if gpu_available() else "cpu")


def _aligned(count: int, dtype: str, device: Device, zero: bool) -> Any:
    if device == "gpu":
        return (require_cupy().zeros if zero else require_cupy().empty)(count, dtype=dtype)
    # NumPy aligns to 16 or 64 bytes; host arrays follow the same rules as device arrays. Zeros that nobody touches
    # take no memory, so that large kernels can be compiled on a small machine.
    raw = (np.zeros if zero else np.empty)(count * ITEMSIZE[dtype] + LINE_BYTES, dtype=np.uint8)
    start = -raw.ctypes.data % LINE_BYTES
    return raw[start : start + count * ITEMSIZE[dtype]].view(dtype)


def _dtype(dtype: Any) -> str:
    name = np.dtype(dtype).name
    if name not in ITEMSIZE:
        raise StencilError(f"element types are {sorted(ITEMSIZE)}, got {name}")
    return name


def empty(
    shape: Sequence[int],
    halo: Halo | Sequence[int] | int = 0,
    dtype: Any = "float64",
    device: Device | None = None,
    aligned: int = 0,
) -> PaddedArray:
    """An uninitialised field.

    Args:
        shape: extents of the interior, in cells.
        halo: cells around it: one width, one an axis, or (before, behind) an axis, such as `kernel.halo`.
        dtype: "float64" or "float32".
        device: "gpu", "cpu", or None for the GPU where there is one.
        aligned: cell of a row that lies on a cache line: the first one of a box along the last axis that most work is
            done on, where it is not the row's.

    Raises:
        StencilError: for an extent below 1 or another element type.
        GpuUnavailableError: with device="gpu" where no device can be used.
    """
    return _made(shape, halo, dtype, device, aligned, zero=False)


def _made(shape: Sequence[int], halo: Any, dtype: Any, device: Device | None, aligned: int, zero: bool) -> PaddedArray:
    shape = tuple(int(n) for n in shape)
    if not 1 <= len(shape) <= 3 or min(shape) < 1:
        raise StencilError(f"a field has one to three positive extents, got {shape}")
    name = _dtype(dtype)
    layout = Layout.padded(shape, normalize_halo(halo, len(shape)), name, aligned)
    return PaddedArray(_aligned(layout.capacity, name, _device(device), zero), layout, name)


def zeros(
    shape: Sequence[int],
    halo: Halo | Sequence[int] | int = 0,
    dtype: Any = "float64",
    device: Device | None = None,
    aligned: int = 0,
) -> PaddedArray:
    """A field of zeros, halo included; arguments as for `empty`."""
    return _made(shape, halo, dtype, device, aligned, zero=True)


def asarray(
    data: Any,
    halo: Halo | Sequence[int] | int = 0,
    dtype: Any = None,
    device: Device | None = None,
    includes_halo: bool = False,
) -> PaddedArray:
    """A field with the given values.

    Args:
        data: NumPy or CuPy array, or anything NumPy can convert.
        includes_halo: the outer cells of `data` are the halo; otherwise the halo is filled with zeros.
    """
    if hasattr(data, "__cuda_array_interface__"):
        cupy = require_cupy()
        data = cupy.asarray(data)
        device = device or "gpu"
        host = data
    else:
        host = np.asarray(data)
    widths = normalize_halo(halo, host.ndim)
    shape = tuple(n - (lo + hi) * includes_halo for n, (lo, hi) in zip(host.shape, widths, strict=True))
    array = zeros(shape, widths, dtype or host.dtype, device)
    target = array.with_halo(widths) if includes_halo else array.interior
    if array.device == "gpu":
        target[...] = require_cupy().asarray(host)
    else:
        target[...] = host.get() if hasattr(host, "get") else host
    return array
