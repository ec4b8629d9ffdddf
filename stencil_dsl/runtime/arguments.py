"""What a kernel is called with: arrays of any library, seen as address, layout and element type."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.schedule.layout import ITEMSIZE, Halo, Layout


@dataclass(frozen=True)
class Argument:
    """One array argument.

    Attributes:
        pointer: address of the full array's first element.
        layout: interior, halo and strides in elements.
        device: index of the GPU, or None for host memory.
        owner: what keeps the memory alive; for host arrays the NumPy allocation.
    """

    name: str
    pointer: int
    layout: Layout
    dtype: str
    device: int | None
    owner: Any

    @property
    def interior_pointer(self) -> int:
        return self.pointer + self.layout.offset * ITEMSIZE[self.dtype]

    def interior_range(self) -> tuple[int, int]:
        """Addresses [first, last) of the cells of the interior."""
        last = sum((n - 1) * s for n, s in zip(self.layout.shape, self.layout.strides, strict=True))
        size = ITEMSIZE[self.dtype]
        return self.interior_pointer, self.interior_pointer + (last + 1) * size

    def full_range(self) -> tuple[int, int]:
        """Addresses [first, last) of everything a kernel may read."""
        last = sum((e - 1) * s for e, s in zip(self.layout.extents, self.layout.strides, strict=True))
        return self.pointer, self.pointer + (last + 1) * ITEMSIZE[self.dtype]


def read_argument(name: str, value: Any, halo: Halo, dtype: str, writable: bool) -> Argument:
    """Accept a PaddedArray, or an array whose outer cells are the halo.

    Raises:
        StencilError: naming the argument and what is expected of it.
    """
    if isinstance(value, PaddedArray):
        argument = _padded(name, value)
    elif isinstance(value, np.ndarray):
        argument = _plain(name, value, value.ctypes.data, value.strides, halo, None, value)
        if writable and not value.flags.writeable:
            raise StencilError(f"output {name!r} is read-only; pass a writable array")
    else:
        array = _as_cupy(name, value)
        device = int(array.device.id)
        argument = _plain(name, array, int(array.data.ptr), array.strides, halo, device, array)
    if argument.dtype != dtype:
        raise StencilError(
            f"{name!r} has elements of {argument.dtype}, the kernel was compiled for {dtype}; convert the array or"
            f" compile with dtype={argument.dtype!r}"
        )
    for axis, ((have_lo, have_hi), (lo, hi)) in enumerate(zip(argument.layout.halo, halo, strict=True)):
        if not writable and (have_lo < lo or have_hi < hi):
            raise StencilError(
                f"{name!r} has a halo of ({have_lo}, {have_hi}) along axis {axis}, the stencil reads ({lo}, {hi});"
                " allocate with halo=kernel.halo"
            )
    return argument


def _padded(name: str, value: PaddedArray) -> Argument:
    if value.device == "cpu":
        return Argument(name, value.buffer.ctypes.data, value.layout, value.dtype, None, value.buffer)
    return Argument(
        name, int(value.buffer.data.ptr), value.layout, value.dtype, int(value.buffer.device.id), value.buffer
    )


def _as_cupy(name: str, value: Any) -> Any:
    cupy = require_cupy()
    if isinstance(value, cupy.ndarray):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return cupy.asarray(value)
    if hasattr(value, "__dlpack__"):
        return cupy.from_dlpack(value)
    raise StencilError(
        f"{name!r} is a {type(value).__name__}; pass a PaddedArray, or an array with __cuda_array_interface__,"
        " __dlpack__, or of NumPy"
    )


def _plain(
    name: str, array: Any, pointer: int, strides: tuple[int, ...], halo: Halo, device: int | None, owner: Any
) -> Argument:
    dtype = np.dtype(array.dtype).name
    if dtype not in ITEMSIZE:
        raise StencilError(f"{name!r} has elements of {dtype}; the element types are {sorted(ITEMSIZE)}")
    size = ITEMSIZE[dtype]
    if array.ndim != len(halo):
        raise StencilError(f"{name!r} has {array.ndim} axes, the stencil has {len(halo)}")
    if any(s % size or s < 0 for s in strides) or (array.shape[-1] > 1 and strides[-1] != size):
        raise StencilError(
            f"{name!r} has strides of {strides} bytes; rows must be contiguous and strides positive: pass"
            " a C-contiguous array (ascontiguousarray) or a view of whole rows"
        )
    elements = tuple(s // size for s in strides[:-1]) + (1,)
    layout = Layout.plain(array.shape, halo, elements, gcd(pointer, 128) or 128)
    if any(n < 1 for n in layout.shape):
        raise StencilError(f"{name!r} of shape {array.shape} has no cell inside its halo {halo}")
    return Argument(name, pointer, layout, dtype, device, owner)


def read_output(name: str, value: Any, shape: tuple[int, ...], halo: Halo, dtype: str) -> Argument:
    """An output: a PaddedArray, an array like the inputs, or one of exactly the interior's shape."""
    if not isinstance(value, PaddedArray) and tuple(getattr(value, "shape", ())) == shape:
        halo = ((0, 0),) * len(shape)
    argument = read_argument(name, value, halo, dtype, writable=True)
    if argument.layout.shape != shape:
        raise StencilError(
            f"output {name!r} has an interior of {argument.layout.shape}, the inputs have {shape}; allocate it with"
            f" empty({shape}, halo=kernel.halo)"
        )
    return argument


def check_overlap(inputs: list[Argument], outputs: list[Argument], pointwise: list[bool]) -> bool:
    """Whether some output is one of the inputs, updated in place.

    Args:
        pointwise: for each input, whether the stencil reads it at the cell itself only.

    Raises:
        StencilError: where an output overlaps an input that is read at neighbours, or another output.
    """
    for i, a in enumerate(outputs):
        for b in outputs[i + 1 :]:
            if _meet(a.interior_range(), b.interior_range()):
                raise StencilError(f"outputs {a.name!r} and {b.name!r} overlap in memory; pass separate arrays")
    inplace = False
    for out in outputs:
        for field, at_point in zip(inputs, pointwise, strict=True):
            if not _meet(out.interior_range(), field.full_range()):
                continue
            same = out.interior_pointer == field.interior_pointer and out.layout.strides == field.layout.strides
            if not (same and at_point):
                raise StencilError(
                    f"output {out.name!r} overlaps field {field.name!r}, which the stencil reads at neighbouring"
                    " cells; write to another array and swap"
                )
            inplace = True
    return inplace


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]
