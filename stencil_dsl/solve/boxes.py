"""Boxes of cells: intersections, what is left beside a box, and whether pieces cover an interior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from stencil_dsl.errors import StencilError
from stencil_dsl.solve.views import Box, resolve_box


def whole(shape: Sequence[int]) -> Box:
    return tuple((0, n) for n in shape)


def cells(box: Box) -> int:
    return prod(max(0, hi - lo) for lo, hi in box)


def intersect(a: Box, b: Box) -> Box | None:
    """The common cells, None where there are none."""
    both = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return both if all(lo < hi for lo, hi in both) else None


def beside(box: Box, inner: Box) -> Iterator[Box]:
    """The cells of a box outside an inner one, as boxes: slabs along the first axis, then the next."""
    rest = list(box)
    for axis, (lo, hi) in enumerate(inner):
        (first, last) = rest[axis]
        for part in ((first, lo), (hi, last)):
            if part[0] < part[1]:
                yield (*rest[:axis], part, *rest[axis + 1 :])
        rest[axis] = (lo, hi)


@dataclass(frozen=True)
class Domain:
    """The cells that this rank computes, as a box of the whole interior.

    Attributes:
        shape: extents of the whole interior.
        box: this rank's part of it.
    """

    shape: tuple[int, ...]
    box: Box

    @staticmethod
    def single(shape: Sequence[int]) -> Domain:
        return Domain(tuple(shape), whole(shape))

    @property
    def local_shape(self) -> tuple[int, ...]:
        return tuple(hi - lo for lo, hi in self.box)

    def ends(self, axis: int) -> tuple[bool, bool]:
        """Whether this part holds the first and the last cell along an axis."""
        return self.box[axis][0] == 0, self.box[axis][1] == self.shape[axis]

    def local(self, box: Sequence[tuple[int, int]] | None) -> Box | None:
        """The part of a box of the whole interior that is computed here, in local cells; None where there is none."""
        found = whole(self.shape) if box is None else resolve_box(box, self.shape)
        common = intersect(found, self.box)
        if common is None:
            return None
        return tuple((lo - o, hi - o) for (lo, hi), (o, _) in zip(common, self.box, strict=True))


def check_cover(name: str, boxes: Sequence[Box], shape: Sequence[int], complete: bool) -> None:
    """Pieces that make a field must not overlap, and fill the interior where nothing else does.

    Raises:
        StencilError: naming the boxes.
    """
    for a, b in combinations(boxes, 2):
        if intersect(a, b) is not None:
            raise StencilError(f"pieces that make {name!r} overlap: {a} and {b}")
    missing = prod(shape) - sum(map(cells, boxes))
    if complete and missing:
        raise StencilError(
            f"the pieces that make {name!r} leave {missing} of {prod(shape)} cells without a value; add pieces, or say"
            f" with onto={{{name!r}: field}} whose values these cells keep"
        )


def split_margin(box: Box, shape: Sequence[int], margin: Sequence[tuple[int, int]]) -> tuple[Box | None, list[Box]]:
    """The part of a box that lies inside the interior shrunk by margins, and the rest."""
    shrunk = tuple((lo, n - hi) for n, (lo, hi) in zip(shape, margin, strict=True))
    inner = intersect(box, shrunk)
    return (None, [box]) if inner is None else (inner, list(beside(box, inner)))
