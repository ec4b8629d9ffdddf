"""Writes ghost cells: the rules of a field's faces become a fixed list of slab operations on views.

Everything is looked up and allocated when a `GhostFill` is made; applying it only runs elementwise operations with
given outputs, so that it can be repeated, timed and captured in a CUDA graph. NumPy and CuPy arrays are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr

from stencil_dsl.dialects.boundary import AXES, FaceAttr
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.faces import FaceArrays, face_values
from stencil_dsl.solve.slabs import Slab, actions_of
from stencil_dsl.transforms.boundary import Faces

SECTOR_BYTES = 32
"""What a GPU's caches and memory move at least."""

Widths = Sequence[tuple[int, int]]


def array_module(array: PaddedArray) -> Any:
    """numpy or cupy, whichever holds the array."""
    return np if array.device == "cpu" else require_cupy()


class RunTimeValues:
    """Device copies of run-time scalars, each times fixed weights, kept up to date by `set`."""

    def __init__(self) -> None:
        self._cells: dict[str, list[tuple[np.ndarray, Any]]] = {}
        self._now: dict[str, float] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._cells)

    def cell(self, name: str, weights: np.ndarray, xp: Any) -> Any:
        """An array of `weights` times the scalar, NaN until the scalar is set."""
        cell = xp.full(weights.shape, np.nan, weights.dtype)
        self._cells.setdefault(name, []).append((weights, cell))
        return cell

    def set(self, values: Mapping[str, float]) -> None:
        """Write the scalars that changed; other names are ignored."""
        for name, cells in self._cells.items():
            if name not in values or self._now.get(name) == values[name]:
                continue
            self._now[name] = values[name]
            for weights, cell in cells:
                product = (weights.astype("float64") * values[name]).astype(weights.dtype)
                if isinstance(cell, np.ndarray):
                    cell[...] = product
                else:
                    cell.set(product)


class GhostFill:
    """Fills the ghost cells of one array.

    Args:
        faces: the rules, per axis before and behind the interior; None: that face is left alone (another rank's).
        widths: ghost cells to fill, per axis before and behind, not more than the array's halo.
        arrays: values over faces by (axis, side), of the shape of the interior less the axis.
        corners: fill beyond several faces at a time too: each axis then includes the ghost cells of the axes before.
        whole_sectors: continue into the padding of rows where that fills sectors of memory; None: on a GPU.

    Raises:
        StencilError: where a face that is read across has no rule, or the interior is too narrow for one.
    """

    def __init__(
        self,
        name: str,
        array: PaddedArray,
        faces: Faces | Sequence[tuple[FaceAttr | None, FaceAttr | None]],
        widths: Widths,
        values: RunTimeValues,
        arrays: FaceArrays | None = None,
        corners: bool = True,
        whole_sectors: bool | None = None,
    ) -> None:
        self.name, self.array, self.faces, self.widths = name, array, faces, tuple(widths)
        self.values, self.arrays, self.corners = values, arrays or {}, corners
        self.xp = array_module(array)
        self.whole_sectors = array.device == "gpu" if whole_sectors is None else whole_sectors
        array.with_halo(self.widths)  # refuses widths beyond the array's halo
        slabs = [self._axis(axis) for axis in range(array.ndim)]
        self.axes = [actions_of(each, self.xp) for each in slabs]
        # Without corners no axis reads what another one writes.
        self.actions = sum(self.axes, []) if corners else actions_of(sum(slabs, []), self.xp)

    @property
    def constant(self) -> tuple[object, ...] | None:
        """What distinguishes ghost cells whose values never change, or None where some do."""
        active = [f for pair, w in zip(self.faces, self.widths, strict=True) for f, n in zip(pair, w, strict=True) if n]
        if any(f is None or f.at.data != "ghost" or isinstance(f.value, StringAttr) for f in active):
            return None
        return (self.widths, self.corners, tuple(map(tuple, self.faces)), tuple(map(id, self.arrays.values())))

    def apply(self) -> None:
        for action in self.actions:
            action()

    def apply_axis(self, axis: int) -> None:
        for action in self.axes[axis]:
            action()

    # -- planning

    def _axis(self, axis: int) -> list[Slab]:
        n = self.array.shape[axis]
        slabs: list[Slab] = []
        for side, width in enumerate(self.widths[axis]):
            face = self.faces[axis][side]
            if not width or face is None or face.kind.data == "keep":
                continue
            self._check(face, axis, side)
            whole = self._sectors(axis, side, width)
            if _farthest(face, whole) <= n:
                slabs.append(self._slab(axis, side, face, range(1, whole + 1)))
            elif _farthest(face, width) <= n:
                slabs.append(self._slab(axis, side, face, range(1, width + 1)))
            else:
                for k in range(1, width + 1):
                    slabs += self._resolved(axis, side, k)
        return slabs

    def _sectors(self, axis: int, side: int, width: int) -> int:
        """The width, widened into the padding to whole sectors: of one that is written in part the rest is read."""
        layout, per = self.array.layout, SECTOR_BYTES // self.array.full.itemsize
        n, start = layout.shape[-1], layout.origin[-1]
        if not self.whole_sectors or axis < self.array.ndim - 1 or layout.strides[-1] != 1 or start % per:
            return width
        wide = -(-width // per) * per if side == 0 else -(-(n + width) // per) * per - n
        room = start if side == 0 else layout.extents[-1] - start - n
        return wide if wide <= room else width

    def _check(self, face: FaceAttr, axis: int, side: int) -> None:
        where = f"{self.name!r} across the face {AXES[self.array.ndim][axis]}{'-+'[side]}"
        if face.kind.data == "open":
            raise StencilError(
                f"a stencil reads {where}, which has no rule; give one, such as Periodic(), Dirichlet(0.0) or Keep()"
            )
        if face.at.data == "cell" and self.array.shape[axis] < 2:
            raise StencilError(f"a mirror in the centre of the last cell needs 2 cells: {where} there is 1")

    def view(self, axis: int, start: int, stop: int, step: int = 1) -> Any:
        """Cells [start, stop) along an axis, counted from the first of the interior; all that the fill covers else."""
        layout, box = self.array.layout, []
        for a, (o, n) in enumerate(zip(layout.origin, layout.shape, strict=True)):
            lo, hi = self.widths[a] if self.corners and a < axis else (0, 0)
            box.append(slice(o + start, o + stop) if a == axis else slice(o - lo, o + n + hi))
        view = self.array.full[tuple(box)]
        return view if step == 1 else view[(slice(None),) * axis + (slice(None, None, -1),)]

    def _slab(self, axis: int, side: int, face: FaceAttr, distances: range) -> Slab:
        """All layers of a face at a time; each takes its value from one cell of the interior at most."""
        n, width = self.array.shape[axis], len(distances)
        dst = self.view(axis, -width, 0) if side == 0 else self.view(axis, n, n + width)
        kind = face.kind.data
        if kind == "periodic":
            return Slab(dst, self.view(axis, n - width, n) if side == 0 else self.view(axis, 0, width))
        if kind == "outflow":
            return Slab(dst, self.view(axis, 0, 1) if side == 0 else self.view(axis, n - 1, n))
        # Layers lie in the order of the array: the outermost first before the interior.
        order = list(distances)[::-1] if side == 0 else list(distances)
        skip = int(face.at.data == "cell")
        start = skip if side == 0 else n - skip - width
        add, sign = self._addend(axis, side, face, order), _sign(face)
        return Slab(dst, self.view(axis, start, start + width, -1) if sign else None, add, sign)

    def _resolved(self, axis: int, side: int, k: int) -> list[Slab]:
        """One layer whose source may itself lie beyond a face, possibly several times over."""
        n = self.array.shape[axis]
        sign, position, adds = 1, (-k if side == 0 else n - 1 + k), []
        while sign and not 0 <= position < n:
            beyond = int(position >= n)
            face = self.faces[axis][beyond]
            if face is None or face.kind.data in ("keep", "open"):
                raise StencilError(
                    f"{self.name!r} has {n} cells along {AXES[self.array.ndim][axis]}, fewer than its ghost cells need:"
                    " their mirror images lie beyond the other face, which has no rule to continue by"
                )
            distance = -position if beyond == 0 else position - n + 1
            add = self._addend(axis, beyond, face, [distance], sign)
            adds += [] if add is None else [add]
            sign *= _sign(face)
            position = _source(face, beyond, distance, n)
        at = -k if side == 0 else n - 1 + k
        dst = self.view(axis, at, at + 1)
        src = self.view(axis, position, position + 1) if sign else None
        first = None if sign else adds.pop(0)
        return [Slab(dst, src, first, sign), *(Slab(dst, dst, add) for add in adds)]

    def _addend(self, axis: int, side: int, face: FaceAttr, distances: Sequence[int], sign: int = 1) -> Any | None:
        """What is added to the (signed) mirror image, broadcastable to the layers; None for nothing."""
        weights = _weights(face, distances)
        if weights is None:
            return None
        along = [1] * self.array.ndim
        along[axis] = len(distances)
        scaled = (sign * np.array(weights, "float64")).reshape(along)
        value = face.value
        if isinstance(value, StringAttr):
            return self.values.cell(value.data, scaled.astype(self.array.dtype), self.xp)
        if isinstance(value, FloatAttr):
            number = float(value.value.data)
            return None if number == 0 and _sign(face) else self.xp.asarray((scaled * number).astype(self.array.dtype))
        return self.xp.asarray((scaled * self._face_values(axis, side)).astype(self.array.dtype))

    def _face_values(self, axis: int, side: int) -> np.ndarray:
        """The face's array with an axis of one layer, continued into the corners."""
        ndim, shape = self.array.ndim, self.array.shape
        expected = shape[:axis] + shape[axis + 1 :]
        where = f"{AXES[ndim][axis]}{'-+'[side]} of {self.name!r}"
        given = self.arrays.get((axis, side))
        if given is None:
            raise StencilError(f"the face {where} needs an array of values and has none")
        values = face_values(given)
        if values.shape != expected:
            raise StencilError(f"values over the face {where} have the shape {expected}, got {values.shape}")
        around = [self.widths[a] if self.corners and a < axis else (0, 0) for a in range(ndim) if a != axis]
        return np.expand_dims(values.around(around), axis)


def _sign(face: FaceAttr) -> int:
    """Factor of the source cell."""
    if face.kind.data == "antisymmetric":
        return -1
    if face.kind.data == "dirichlet":
        return 0 if face.at.data == "ghost" else -1
    return 1


def _farthest(face: FaceAttr, width: int) -> int:
    """Cells of the interior that filling a width reads."""
    if face.kind.data == "outflow" or _sign(face) == 0:
        return 1
    return width + (face.at.data == "cell")


def _source(face: FaceAttr, side: int, k: int, n: int) -> int:
    """Position of the cell that the ghost cell at distance k takes its value from."""
    if face.kind.data == "periodic":
        return n - k if side == 0 else k - 1
    if face.kind.data == "outflow":
        return 0 if side == 0 else n - 1
    inward = k - 1 + (face.at.data == "cell")
    return inward if side == 0 else n - 1 - inward


def _weights(face: FaceAttr, distances: Sequence[int]) -> list[float] | None:
    """Factors of the face's value at the given distances."""
    if face.kind.data == "dirichlet":
        return [1.0 if face.at.data == "ghost" else 2.0] * len(distances)
    if face.kind.data == "neumann":
        return [2.0 * k - (face.at.data == "face") for k in distances]
    return None
