"""Checked loads and stores of boxes of elements.

Every access is placed in its view and its allocation before a value moves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stencil_dsl.reference.tile_dtypes import (
    InterpreterError,
    PaddingMode,
    padding_value,
    promote,
    promote_with_python,
)
from stencil_dsl.reference.tile_memory import UNWRITTEN, Region, foreign_writer, strided
from stencil_dsl.reference.tile_values import Tile, as_constant, cast

if TYPE_CHECKING:
    from stencil_dsl.reference.tile_arrays import Array


def _box_region(array: Array, starts: tuple[int, ...], shape: tuple[int, ...]) -> Region:
    first = array.first
    for s, stride in zip(starts, array._strides, strict=True):
        first += s * stride
    return first, shape, array._strides


def _inside(array: Array, starts: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    for s, t, n in zip(starts, shape, array._shape, strict=True):  # noqa: SIM110  (faster than all())
        if s < 0 or s + t > n:
            return False
    return True


def _clip(array: Array, starts: tuple[int, ...], shape: tuple[int, ...], what: str) -> tuple[slice, ...]:
    """The part of a tile that lies in the view; an error where none does (undefined in cuTile)."""
    part = tuple(slice(max(0, -s), min(t, n - s)) for s, t, n in zip(starts, shape, array._shape, strict=True))
    if any(p.start >= p.stop for p in part):
        raise InterpreterError(
            f"{what} of a tile that lies entirely outside its view, which is undefined even with bounds "
            f"checks: {_name_box(array, starts, shape)}"
        )
    return part


def _name_box(array: Array, starts: tuple[int, ...], shape: tuple[int, ...]) -> str:
    box = ", ".join(f"{s}..{s + t - 1}" for s, t in zip(starts, shape, strict=True))
    return f"elements ({box}) of {array.label}"


def _check_unchecked(array: Array, starts: tuple[int, ...], shape: tuple[int, ...], what: str) -> None:
    """An unchecked access that leaves its view: always an error where it leaves the allocation."""
    first, _, strides = _box_region(array, starts, shape)
    reach = [(t - 1) * s for t, s in zip(shape, strides, strict=True)]
    low = first + sum(min(0, r) for r in reach)
    high = first + sum(max(0, r) for r in reach)
    size = array.buffer.data.size
    if low < 0 or high >= size:
        raise InterpreterError(
            f"unchecked {what} leaves the allocation of {size} elements (reaches {low}..{high}): "
            f"{_name_box(array, starts, shape)}"
        )
    if array.memory.strict_views:
        raise InterpreterError(f"unchecked {what} leaves its view: {_name_box(array, starts, shape)}")
    inside = math.prod(max(0, min(s + t, n) - max(s, 0)) for s, t, n in zip(starts, shape, array._shape, strict=True))
    array.memory.report.outside_view += math.prod(shape) - inside


def _clipped_region(array: Array, starts: tuple[int, ...], part: tuple[slice, ...]) -> Region:
    inner = tuple(s + p.start for s, p in zip(starts, part, strict=True))
    return _box_region(array, inner, tuple(p.stop - p.start for p in part))


def load_box(
    array: Array,
    starts: tuple[int, ...],
    shape: tuple[int, ...],
    check_bounds: bool,
    padding_mode: PaddingMode,
    line: int,
) -> Tile:
    """The tile of `shape` whose first element is `starts`; a copy."""
    memory, report = array.memory, array.memory.report
    report.load_tiles += 1
    part = None
    if not _inside(array, starts, shape):
        if check_bounds:
            part = _clip(array, starts, shape, "load")
        else:
            _check_unchecked(array, starts, shape, "load")
    region = _box_region(array, starts, shape) if part is None else _clipped_region(array, starts, part)
    values = array.buffer.at(region)
    report.loads += values.size
    if not check_bounds:
        report.unchecked_loads += values.size
    if array.buffer.may_be_stored and not memory.allow_inplace:
        _note_read(array, region, line)
    if part is None:
        return Tile(values.copy(), array._dtype)
    whole = np.full(shape, padding_value(padding_mode, array._dtype), values.dtype)
    whole[part] = values
    report.padded += whole.size - values.size
    return Tile(whole, array._dtype)


def _note_read(array: Array, region: Region, line: int) -> None:
    buffer = array.buffer
    reader = array.memory.block * array.memory.parameters + array.parameter
    buffer.reads.append((region, reader, line))
    if buffer.writer is not None:
        other = foreign_writer(buffer, region, reader)
        if other is not None:
            raise InterpreterError(
                f"load of {array.label} reads what {array.memory.name_writer(other, array.names)} stored in "
                "this run; the order is undefined"
            )


def stored_values(array: Array, tile: Any) -> np.ndarray:
    """A tile as elements of the array's type, by an implicit cast that loses no kind or width."""
    if type(tile) is Tile:
        if promote(tile.dtype, array._dtype) is not array._dtype:
            raise InterpreterError(f"{tile!r} cannot be stored in {array._dtype} without a cast: {array.label}")
        return np.asarray(cast(tile, array._dtype).a)
    if promote_with_python(array._dtype, tile) is not array._dtype:
        raise InterpreterError(f"{tile!r} cannot be stored in {array._dtype} without a cast: {array.label}")
    return np.asarray(as_constant(tile, array._dtype))


def store_box(array: Array, starts: tuple[int, ...], values: np.ndarray, check_bounds: bool) -> None:
    """Store a box of values at `starts`; elements outside the view are dropped in a checked store."""
    report = array.memory.report
    report.store_tiles += 1
    region = _box_region(array, starts, values.shape)
    if not _inside(array, starts, values.shape):
        if check_bounds:
            part = _clip(array, starts, values.shape, "store")
            region = _clipped_region(array, starts, part)
            report.dropped += values.size - math.prod(region[1])
            values = values[part]
        else:
            _check_unchecked(array, starts, values.shape, "store")
    report.stores += values.size
    if not check_bounds:
        report.unchecked_stores += values.size
    _claim(array, region, values)
    array.buffer.at(region)[...] = values


def _claim(array: Array, region: Region, values: np.ndarray) -> None:
    """Record the writer; an element that another writer gave another value is a race."""
    buffer, memory = array.buffer, array.memory
    if not buffer.data.flags.writeable:
        raise InterpreterError(f"store to {array.label}, whose memory is read-only")
    if buffer.writer is None:
        buffer.writer = np.full(buffer.data.size, UNWRITTEN, np.int64)
        buffer.may_be_stored = True
    me = memory.block * memory.parameters + array.parameter
    writers = strided(buffer.writer, region)
    if writers.max() != UNWRITTEN:
        again = (writers != UNWRITTEN) & (writers != me)
        bits = np.dtype(f"u{values.itemsize}")
        old = np.ascontiguousarray(buffer.at(region)).view(bits)
        clash = again & (old != np.ascontiguousarray(values).view(bits))
        if clash.any():
            where = tuple(int(i) for i in np.argwhere(clash)[0])
            other = memory.name_writer(writers[where], array.names)
            raise InterpreterError(f"{array.label} is stored twice with different values, first by {other}")
        memory.report.rewritten += int(again.sum())
    writers[...] = me


def gather_elements(array: Array, indices: Any, check_bounds: bool, line: int) -> Tile:
    """Elements at index tiles, one an axis; a checked gather gives zero outside the view."""
    parts = indices if isinstance(indices, tuple) else (indices,)
    if len(parts) != len(array._shape):
        raise InterpreterError(f"gather from {array.label} takes {len(array._shape)} indices, got {len(parts)}")
    for part in parts:
        if isinstance(part, Tile) and part.dtype.kind not in ("int", "uint"):
            raise InterpreterError(f"{part!r} is no index of {array.label}; only integer tiles are")
    numbers = np.broadcast_arrays(*(np.asarray(p.a if isinstance(p, Tile) else p, np.int64) for p in parts))
    inside = np.ones(numbers[0].shape, bool)
    where = np.full(numbers[0].shape, array.first)
    for n, extent, stride in zip(numbers, array._shape, array._strides, strict=True):
        inside &= (n >= 0) & (n < extent)
        where += n * stride
    memory, size = array.memory, array.buffer.data.size
    if not check_bounds:
        if where.min() < 0 or where.max() >= size:
            raise InterpreterError(
                f"unchecked gather leaves the allocation of {size} elements (reaches {where.min()}..{where.max()}):"
                f" {array.label}"
            )
        if memory.strict_views and not inside.all():
            raise InterpreterError(f"unchecked gather leaves its view: {array.label}")
        memory.report.unchecked_loads += where.size
    memory.report.loads += where.size
    if array.buffer.may_be_stored and not memory.allow_inplace:
        for element in np.unique(where):
            _note_read(array, (int(element), (), ()), line)
    values = array.buffer.data[np.where(inside, where, 0) if check_bounds else where]
    return Tile(np.where(inside, values, 0).astype(values.dtype) if check_bounds else values, array._dtype)
