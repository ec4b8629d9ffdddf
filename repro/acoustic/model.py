"""The acoustic wave as Minimod defines it, and a NumPy model of its step.

u_tt = v^2 lap u in a cube of n^3 cells, eighth order in space, second in time. A layer along all six faces takes the
wave out: six slabs compute a damped equation with a damping eta and a field phi that corrects for its change. A source
acts in the middle. What is written here is checked against the kernels cell by cell; lengths are metres, times
seconds, offsets cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DX = 20.0
VMAX, COURANT, FMAX = 4500.0, 0.8, 25.0
LAYER = 27
"""Cells of the absorbing layer: three of the longest wave lengths, VMAX / FMAX."""

VELOCITY = 2000.0
RADIUS = 4
C = tuple(w / DX**2 for w in (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560))
"""Weights of one axis by distance, per square metre; the centre counts three times."""

DT = 2 * COURANT / (VMAX * (3 * abs(C[0]) + 6 * sum(map(abs, C[1:]))) ** 0.5)
SIGMA = 0.6 * FMAX

INNER_FLOPS = 3 * 8 + 3 * 4 + 1 + 4
"""A cell of the inner box: sums of 24 neighbours, products and sums of 13 weights, and 2u - v + vp lap."""

LAYER_FLOPS = INNER_FLOPS + 9 + 14
"""A cell of the layer: also the damping and its quotients, and the update of phi."""

INNER_BYTES, LAYER_BYTES = 16, 28
"""Compulsory bytes a cell in float32: u, v in and out, vp; in the layer also phi in and out, and eta."""

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Cube:
    """The domain: n cells an axis, of which `layer` on each side absorb."""

    n: int
    layer: int = LAYER

    def __post_init__(self) -> None:
        if self.n <= 2 * self.layer or self.layer < 1:
            raise ValueError(f"a cube of {self.n} cells an axis has no room between layers of {self.layer} cells")

    @property
    def cells(self) -> int:
        return self.n**3

    @property
    def inner(self) -> Box:
        """The box of the plain wave equation."""
        return ((self.layer, self.n - self.layer),) * 3

    @property
    def slabs(self) -> dict[str, Box]:
        """The six boxes of the layer: whole faces along z, what they leave along y, then along x."""
        every, inner = (0, self.n), (self.layer, self.n - self.layer)
        low, high = (0, self.layer), (self.n - self.layer, self.n)
        return {
            "z_low": (every, every, low),
            "z_high": (every, every, high),
            "y_low": (every, low, inner),
            "y_high": (every, high, inner),
            "x_low": (low, inner, inner),
            "x_high": (high, inner, inner),
        }

    @property
    def inner_cells(self) -> int:
        return (self.n - 2 * self.layer) ** 3

    @property
    def centre(self) -> int:
        """Index of the source's cell along each axis."""
        return self.n // 2


def profile(cube: Cube) -> np.ndarray:
    """eta along one axis, with one ghost cell at each end: n + 2 values, which grow with the square of the depth.

    The depth is `layer` in the ghost cell, so the layer's innermost cell is not damped.
    """
    strength = 3 * DT * VMAX * np.log(1000.0) / (2 * cube.layer * DX)
    cell = np.arange(-1, cube.n + 1)
    depth = np.maximum(cube.layer - 1 - cell, cell - (cube.n - cube.layer)).clip(0)
    return strength * (depth / cube.layer) ** 2


def slope(cube: Cube) -> np.ndarray:
    """(eta+ - eta-) / (4 dx^2) along one axis: what u+ - u- is multiplied with in phi; n values."""
    eta = profile(cube)
    return (eta[2:] - eta[:-2]) / (4 * DX**2)


def damping(cube: Cube, lo: Sequence[int] = (-1, -1, -1), shape: Sequence[int] | None = None) -> np.ndarray:
    """eta on a box: the sum of three profiles; by default of all cells and the ghost ring."""
    eta = profile(cube)
    shape = shape or (cube.n + 2,) * 3
    x, y, z = (eta[a + 1 : a + 1 + m] for a, m in zip(lo, shape, strict=True))
    return x[:, None, None] + y[:, None] + z


def wavelet(step: int) -> float:
    """What the source adds to the new field after step 0, 1, ..."""
    x = 8.0 * (SIGMA * DT * step - 1.0) ** 2
    return float(-16.0 * SIGMA * (SIGMA - 2.0 * SIGMA * x) * np.exp(-x))


class Wave:
    """The fields on a box of the cube, advanced by NumPy.

    Around the box everything is taken for zero, which holds outside the cube; elsewhere a step spoils the box's four
    outermost cells.

    Args:
        fields: u, older and phi, of the box's shape; missing ones are zero.
        vp: (velocity dt)^2, a number or an array of the box's shape.
        lo, shape: the box; by default the cube.
    """

    def __init__(
        self,
        cube: Cube,
        fields: Mapping[str, Any] | None = None,
        vp: Any = (VELOCITY * DT) ** 2,
        lo: Sequence[int] = (0, 0, 0),
        shape: Sequence[int] | None = None,
        dtype: str = "float64",
    ) -> None:
        shape = tuple(shape or (cube.n,) * 3)
        given = fields or {}
        self.cube, self.lo, self.dtype, self.step_number = cube, tuple(lo), dtype, 0
        self._padded = [np.zeros(tuple(m + 2 * RADIUS for m in shape), dtype) for _ in range(2)]
        self._inside = tuple(slice(RADIUS, RADIUS + m) for m in shape)
        for array, name in zip(self._padded, ("u", "older"), strict=True):
            array[self._inside] = given.get(name, 0.0)
        self.phi = np.zeros(shape, dtype)
        self.phi[...] = given.get("phi", 0.0)
        self.vp = np.asarray(vp, dtype)
        layer = np.ones(shape, bool)
        box = [slice(max(0, a - b), max(0, e - b)) for (a, e), b in zip(cube.inner, self.lo, strict=True)]
        layer[tuple(box)] = False
        eta = np.where(layer, damping(cube, self.lo, shape), 0.0)
        self._gain, self._loss = (2 - eta**2 + 2 * eta).astype(dtype), (1 + 2 * eta).astype(dtype)
        self._decay = np.where(layer, 1 / (1 + eta), 0.0).astype(dtype)
        along = slope(cube)
        self._slopes = []
        for axis in range(3):
            view = [1, 1, 1]
            view[axis] = shape[axis]
            part = along[self.lo[axis] : self.lo[axis] + shape[axis]].reshape(view)
            self._slopes.append(np.where(layer, part, 0.0).astype(dtype))
        self._shape = shape

    @property
    def u(self) -> np.ndarray:
        return self._padded[0][self._inside]

    @property
    def older(self) -> np.ndarray:
        return self._padded[1][self._inside]

    def _shifted(self, axis: int, by: int) -> np.ndarray:
        box = list(self._inside)
        box[axis] = slice(RADIUS + by, RADIUS + by + self._shape[axis])
        return self._padded[0][tuple(box)]

    def step(self) -> None:
        """One time step; the source acts where its cell is in the box."""
        u, number = self.u, np.dtype(self.dtype).type
        force = u * number(3 * C[0])
        for r in range(1, RADIUS + 1):
            around = self._shifted(0, -r) + self._shifted(0, r)
            for axis in (1, 2):
                around += self._shifted(axis, -r)
                around += self._shifted(axis, r)
            around *= number(C[r])
            force += around
        force += self.phi
        force *= self.vp
        force += self._gain * u
        force -= self.older
        force /= self._loss
        for axis in range(3):
            self.phi -= self._slopes[axis] * (self._shifted(axis, 1) - self._shifted(axis, -1))
        self.phi *= self._decay
        at = tuple(self.cube.centre - b for b in self.lo)
        if all(0 <= a < m for a, m in zip(at, self._shape, strict=True)):
            force[at] += number(wavelet(self.step_number))
        self.older[...] = force
        self._padded.reverse()
        self.step_number += 1

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()


Source = Callable[[Sequence[int], Sequence[int], Any], Any]


def reference(
    cube: Cube, sources: Mapping[str, Source], steps: int
) -> Callable[[Sequence[int], Sequence[int]], list[np.ndarray]]:
    """``f(lo, shape)``: u and phi after some steps on a box, from fields given by coordinates, in float64.

    Args:
        sources: u, older, phi and vp; those of `stencil_dsl.testing`, for instance. A missing one is zero (vp: that of
            the constant velocity). phi counts in the layer only.
    """

    def on_box(lo: Sequence[int], shape: Sequence[int]) -> list[np.ndarray]:
        reach = RADIUS * steps
        first = tuple(max(0, a - reach) for a in lo)
        last = tuple(min(cube.n, a + m + reach) for a, m in zip(lo, shape, strict=True))
        extents = tuple(b - a for a, b in zip(first, last, strict=True))
        given = {name: np.asarray(f(first, extents, np), "float64") for name, f in sources.items()}
        vp = given.pop("vp", (VELOCITY * DT) ** 2)
        if "phi" in given:
            given["phi"] = np.where(in_layer(cube, first, extents), given["phi"], 0.0)
        wave = Wave(cube, given, vp, first, extents)
        wave.run(steps)
        window = tuple(slice(a - f, a - f + m) for a, f, m in zip(lo, first, shape, strict=True))
        return [wave.u[window].copy(), wave.phi[window].copy()]

    return on_box


def in_layer(cube: Cube, lo: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Which cells of a box absorb."""
    x, y, z = (
        (np.arange(a, a + m) < cube.layer) | (np.arange(a, a + m) >= cube.n - cube.layer)
        for a, m in zip(lo, shape, strict=True)
    )
    return x[:, None, None] | y[:, None] | z
