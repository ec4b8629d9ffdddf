"""Values over a face of the interior, of which a rank has a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class FaceValues:
    """Values by cell of a face.

    Attributes:
        whole: over the face of the whole interior.
        part: the cells of this rank, by axis of the face.
    """

    whole: np.ndarray
    part: tuple[tuple[int, int], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of this rank's part."""
        return tuple(hi - lo for lo, hi in self.part)

    def around(self, widths: Sequence[tuple[int, int]]) -> np.ndarray:
        """This rank's part and so many cells beside it, in float64.

        Those are other ranks' cells; beyond the whole interior the values at its edge continue.
        """
        padded = np.pad(self.whole.astype("float64"), list(widths), mode="edge")
        ends = zip(self.part, widths, strict=True)
        return padded[tuple(slice(first, last + lo + hi) for (first, last), (lo, hi) in ends)]


FaceArrays = Mapping[tuple[int, int], np.ndarray | FaceValues]
"""By (axis, side); a plain array is that of a rank that has the whole face."""


def face_values(given: np.ndarray | FaceValues) -> FaceValues:
    """The same with its part named."""
    return given if isinstance(given, FaceValues) else FaceValues(given, tuple((0, n) for n in given.shape))
