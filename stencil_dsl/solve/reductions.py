"""Sums, dot products, norms and extrema of fields, with the same bits on every device and for every distribution.

Sums run over a fixed tree in float64: rows along z first, each by halves, then along y, then along x. No axis but the
distributed ones is ever cut, so ranks can add their rows and one of them goes on along the other axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import PaddedArray


def _cells(field: Any) -> Any:
    return field.interior if isinstance(field, PaddedArray) else field


def fold(values: Any) -> Any:
    """Sum along the last axis over a fixed tree: first half plus last half, until one is left; an odd middle stays."""
    while (n := values.shape[-1]) > 1:
        half = n // 2
        folded = values[..., : n - half].copy()
        folded[..., :half] += values[..., n - half :]
        values = folded
    return values[..., 0]


def rows(values: Any) -> Any:
    """Sums of rows along z, in float64."""
    return fold(values.astype("float64"))


def finish(sums: Any) -> float:
    """The sum of row sums."""
    while getattr(sums, "ndim", 0):
        sums = fold(sums)
    return float(sums)


def total(field: Any) -> float:
    """Sum over all cells."""
    return finish(rows(_cells(field)))


def dot(a: Any, b: Any) -> float:
    """Sum of products."""
    return finish(fold(_cells(a).astype("float64") * _cells(b).astype("float64")))


def norm(field: Any, order: float = 2) -> float:
    """The 1-, 2- or maximum norm (order 1, 2, inf); no factor for the size of cells."""
    cells = _cells(field)
    if order == 2:
        return float(np.sqrt(dot(cells, cells)))
    if order == 1:
        return total(abs(cells))
    if order == np.inf:
        return float(abs(cells).max())
    raise StencilError(f"norms are of order 1, 2 and inf, got {order}")


def maximum(field: Any) -> float:
    """The largest value; NaN where one cell is."""
    return float(_cells(field).max())


def minimum(field: Any) -> float:
    """The smallest value; NaN where one cell is."""
    return float(_cells(field).min())


def mean(field: Any) -> float:
    """The average of all cells."""
    cells = _cells(field)
    return total(cells) / int(np.prod(cells.shape))
