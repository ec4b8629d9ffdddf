"""Global arrays and tiled views as a kernel sees them."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_access import load_box, store_box, stored_values
from stencil_dsl.reference.tile_dtypes import DType, InterpreterError, PaddingMode, dtype_of
from stencil_dsl.reference.tile_memory import DeviceBuffer, Memory
from stencil_dsl.reference.tile_shaping import power_of_two_shape
from stencil_dsl.reference.tile_values import Tile

# Blocks ask for the same slices again and again, so an array keeps its first ones.
PARTS_KEPT = 256


class Array:
    """A global array as a kernel sees it: a strided view of an allocation."""

    __slots__ = (
        "memory",
        "buffer",
        "first",
        "_shape",
        "_strides",
        "_dtype",
        "parameter",
        "names",
        "cuts",
        "_parts",
    )

    def __init__(
        self,
        memory: Memory,
        buffer: DeviceBuffer,
        first: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        parameter: int,
        names: list[str],
        cuts: tuple[tuple[int, int, int], ...] = (),
    ) -> None:
        self.memory = memory
        self.buffer = buffer
        self.first = first
        self._shape = shape
        self._strides = strides
        self._dtype = dtype_of(buffer.data.dtype)
        self.parameter = parameter
        self.names = names
        self.cuts = cuts
        self._parts: dict[tuple[Any, Any, Any], Array] = {}

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._strides

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def label(self) -> str:
        cuts = "".join(f".slice({axis}, {a}, {b})" for axis, a, b in self.cuts)
        return f"{self.names[self.parameter]}{cuts} of shape {self._shape}"

    def slice(self, axis: Any, start: Any, stop: Any) -> Array:
        """The part start..stop of one axis; ``0 <= start < N`` and ``start <= stop <= N``."""
        if type(start) is int and type(stop) is int:
            known = self._parts.get((axis, start, stop))
            if known is not None:
                return known
        n_axes = len(self._shape)
        if not isinstance(axis, int) or not -n_axes <= axis < n_axes:
            raise InterpreterError(f"slice axis {axis!r} is no axis of {self.label}")
        axis %= n_axes
        a, b, n = _integer(start), _integer(stop), self._shape[axis]
        if not (0 <= a < n and a <= b <= n):
            raise InterpreterError(
                f"slice {a}..{b} on axis {axis} of {self.label}: allowed is 0 <= start < {n}, start <= stop <= {n}"
            )
        shape = self._shape[:axis] + (b - a,) + self._shape[axis + 1 :]
        first = self.first + a * self._strides[axis]
        cuts = self.cuts + ((axis, a, b),)
        part = Array(self.memory, self.buffer, first, shape, self._strides, self.parameter, self.names, cuts)
        if len(self._parts) < PARTS_KEPT:
            self._parts[axis, a, b] = part
        return part

    def tiled_view(
        self,
        tile_shape: Any,
        *,
        padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
        traversal_steps: Any = None,
    ) -> TiledView:
        return TiledView(self, tile_shape, padding_mode, traversal_steps)

    def permuted(self, order: Any) -> Array:
        """The array with its axes in `order` ("C", "F" or a tuple)."""
        n = len(self._shape)
        axes = tuple(range(n)) if order == "C" else tuple(range(n))[::-1] if order == "F" else tuple(order)
        if sorted(axes) != list(range(n)):
            raise InterpreterError(f"order {order!r} is no permutation of the axes of {self.label}")
        shape = tuple(self._shape[i] for i in axes)
        strides = tuple(self._strides[i] for i in axes)
        return Array(self.memory, self.buffer, self.first, shape, strides, self.parameter, self.names, self.cuts)


class TiledView:
    """Tiles of one shape over an array, at equal distances."""

    def __init__(self, array: Array, tile_shape: Any, padding_mode: PaddingMode, steps: Any) -> None:
        self._array = array
        self._shape = power_of_two_shape(tile_shape)
        self._box = self._shape or (1,) * array.ndim
        self._steps = self._box if steps is None else steps if isinstance(steps, tuple) else (steps,)
        self._padding = padding_mode
        if not len(self._box) == len(self._steps) == array.ndim:
            raise InterpreterError(f"tile shape {self._shape} does not have the rank of {array.label}")

    @property
    def dtype(self) -> DType:
        return self._array.dtype

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def traversal_steps(self) -> tuple[int, ...]:
        return self._steps

    def num_tiles(self, axis: Any) -> int:
        return -(-self._array.shape[axis] // self._steps[axis])

    def load(self, index: Any, *, check_bounds: bool = True, latency: Any = None, allow_tma: Any = None) -> Tile:
        check_hints(latency, allow_tma)
        starts = place(self._array, index, self._steps)
        line = sys._getframe(1).f_lineno
        tile = load_box(self._array, starts, self._box, check_bounds, self._padding, line)
        return tile if self._shape else tile.item()

    def store(
        self, index: Any, tile: Any, *, check_bounds: bool = True, latency: Any = None, allow_tma: Any = None
    ) -> None:
        check_hints(latency, allow_tma)
        values = np.broadcast_to(stored_values(self._array, tile), self._box)
        store_box(self._array, place(self._array, index, self._steps), values, check_bounds)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InterpreterError(f"{value!r} is no integer; indices and slice bounds must be")
    return operator.index(value)


def check_hints(latency: Any, allow_tma: Any) -> None:
    if latency is not None and not 1 <= latency <= 10:
        raise InterpreterError(f"latency must lie between 1 and 10, got {latency}")
    if allow_tma is not None and not isinstance(allow_tma, bool):
        raise InterpreterError(f"allow_tma must be a boolean, got {allow_tma!r}")


def place(array: Array, index: Any, steps: tuple[int, ...]) -> tuple[int, ...]:
    """First element of a tile, along each axis of the array."""
    items = index if isinstance(index, tuple) else (index,)
    if len(items) != len(array._shape) or len(steps) != len(items):
        raise InterpreterError(
            f"index of {len(items)} and tile of {len(steps)} axes do not have the rank of {array.label}"
        )
    return tuple([(i if type(i) is int else _integer(i)) * n for i, n in zip(items, steps, strict=True)])
