"""Fields that share or save memory: a box of another field, and profiles that vary along some axes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray, empty
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.schedule.layout import ITEMSIZE, Box, Halo, Layout, normalize_halo


def resolve_box(box: Sequence[tuple[int, int]], shape: Sequence[int]) -> Box:
    """The cells that a box means in an interior: negative numbers count from the end, as does 0 as an upper bound.

    Raises:
        StencilError: for a box that is not inside, or has no cell.
    """
    if len(box) != len(shape):
        raise StencilError(f"a box of a {len(shape)}-D field has {len(shape)} ranges, got {tuple(box)}")
    found = tuple((lo + n * (lo < 0), hi + n * (hi <= 0)) for (lo, hi), n in zip(box, shape, strict=True))
    if any(not 0 <= lo < hi <= n for (lo, hi), n in zip(found, shape, strict=True)):
        raise StencilError(f"the box {tuple(box)} has no cells or leaves an interior of {tuple(shape)}")
    return found


def region(array: PaddedArray, box: Sequence[tuple[int, int]]) -> PaddedArray:
    """The cells of a box as a field of their own in the same memory; the cells around it are its halo."""
    layout = array.layout.part(resolve_box(box, array.shape))
    part = object.__new__(type(array))
    part.__dict__.update(array.__dict__)
    part.layout = layout
    part.interior = array.full[tuple(slice(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True))]
    return part


class Profile(PaddedArray):
    """A field that varies along some axes only and is stored for these (and for z, whose cells must be neighbours).

    Every other cell is a second name of the same memory, so a profile is read like any field and cannot be an output.

    Attributes:
        axes: axes along which it varies.
    """

    def __init__(self, buffer: Any, layout: Layout, dtype: str, axes: tuple[int, ...]) -> None:
        self.buffer, self.layout, self.dtype, self.axes = buffer, layout, dtype, axes
        size = ITEMSIZE[dtype]
        strides = tuple(s * size for s in layout.strides)
        module = np if isinstance(buffer, np.ndarray) else require_cupy()
        self.full = module.lib.stride_tricks.as_strided(buffer, layout.extents, strides)
        self.interior = self.full[tuple(slice(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True))]

    @property
    def stored(self) -> Any:
        """The values that exist: the full array with one cell along the axes it does not vary along."""
        vary = {*self.axes, self.ndim - 1}
        return self.full[tuple(slice(None) if a in vary else slice(0, 1) for a in range(self.ndim))]


def profile(
    values: Any,
    axes: Sequence[int],
    shape: Sequence[int],
    halo: Halo | Sequence[int] | int = 0,
    dtype: Any = "float64",
    device: Device | None = None,
) -> Profile:
    """A field of `shape` that has the given values along some axes and does not vary along the others.

    Args:
        values: an array over `axes`, with or without the halo along them; without, the edge values go on into it.
        axes: positions of the axes, ascending.

    Raises:
        StencilError: where the values do not fit.
    """
    shape, axes = tuple(int(n) for n in shape), tuple(axes)
    ndim, halo = len(shape), normalize_halo(halo, len(shape))
    if not axes or list(axes) != sorted(set(axes)) or not set(axes) <= set(range(ndim)):
        raise StencilError(f"axes of a profile are ascending ones of {ndim}, got {axes}")
    values = np.asarray(values)
    inner, around = tuple(shape[a] for a in axes), tuple(halo[a] for a in axes)
    if values.shape == inner:
        values = np.pad(values, around, mode="edge")
    if values.shape != tuple(n + lo + hi for n, (lo, hi) in zip(inner, around, strict=True)):
        raise StencilError(f"values along axes {axes} have the shape {inner}, with or without halo; got {values.shape}")
    kept = {*axes, ndim - 1}
    stored_shape = tuple(n if a in kept else 1 for a, n in enumerate(shape))
    stored_halo = tuple(w if a in kept else (0, 0) for a, w in enumerate(halo))
    base = empty(stored_shape, stored_halo, dtype, device)
    base.fill(0)
    layout = replace(
        base.layout,
        shape=shape,
        origin=tuple(o if a in kept else halo[a][0] for a, o in enumerate(base.layout.origin)),
        extents=tuple(e if a in kept else shape[a] + sum(halo[a]) for a, e in enumerate(base.layout.extents)),
        strides=tuple(s if a in kept else 0 for a, s in enumerate(base.layout.strides)),
    )
    target = base.with_halo(stored_halo)
    spread = values.reshape([values.shape[axes.index(a)] if a in axes else 1 for a in range(ndim)]).astype(base.dtype)
    target[...] = spread if base.device == "cpu" else require_cupy().asarray(spread)
    assert prod(base.layout.extents) <= base.layout.capacity
    return Profile(base.buffer, layout, base.dtype, axes)


def local_profile(
    values: Any,
    axes: Sequence[int],
    shape: Sequence[int],
    box: Box,
    halo: Halo,
    dtype: Any,
    device: Device | None,
) -> Profile:
    """The profile of a box of the whole interior: its values and those around it, as far as the halo goes."""
    values = np.asarray(values)
    inner, around = tuple(shape[a] for a in axes), tuple(halo[a] for a in axes)
    if values.shape == inner:
        values = np.pad(values, around, mode="edge")
    if values.shape == tuple(n + lo + hi for n, (lo, hi) in zip(inner, around, strict=True)):
        values = values[tuple(slice(box[a][0], box[a][1] + sum(halo[a])) for a in axes)]
    return profile(values, axes, tuple(hi - lo for lo, hi in box), halo, dtype, device)
