"""Where the cells of a field lie in memory: halo, padding and the slack that lets whole tiles be loaded unchecked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from stencil_dsl.errors import ScheduleError

ITEMSIZE = {"float64": 8, "float32": 4}
LINE_BYTES = 128
"""Interior rows start on a cache line, so that unshifted rows are loaded with the widest instructions."""

SLACK_ROWS = 8
SLACK_ELEMENTS = 2048
"""Elements behind the last row that belong to the allocation: a tile that overhangs the interior reads them."""

Halo = tuple[tuple[int, int], ...]
"""Per axis the cells before and behind the interior that a stencil reads."""

Box = tuple[tuple[int, int], ...]
"""Per axis a half-open range of cells of an interior."""


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def normalize_halo(halo: Halo | Sequence[int] | int, ndim: int) -> Halo:
    """Accept one width, one width an axis, or (before, behind) an axis.

    Raises:
        ScheduleError: for another form, or a negative width.
    """
    if isinstance(halo, int):
        halo = [halo] * ndim
    pairs = tuple((h, h) if isinstance(h, int) else (int(h[0]), int(h[1])) for h in halo)
    if len(pairs) != ndim or any(w < 0 for pair in pairs for w in pair):
        raise ScheduleError(
            f"a halo of a {ndim}-D field has {ndim} non-negative widths or (before, behind) pairs, got {halo!r}"
        )
    return pairs


@dataclass(frozen=True)
class Layout:
    """One array in memory, in elements.

    Attributes:
        shape: extents of the interior.
        origin: index of the first interior cell in the full array.
        extents: extents of the full array.
        strides: distance of neighbours along each axis.
        capacity: elements that may be read, counted from the first element of the full array.
        alignment: bytes that divide the address of the first element.
    """

    shape: tuple[int, ...]
    origin: tuple[int, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    capacity: int
    alignment: int = LINE_BYTES

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def offset(self) -> int:
        """Linear index of the first interior cell."""
        return sum(o * s for o, s in zip(self.origin, self.strides, strict=True))

    @property
    def halo(self) -> Halo:
        return tuple((o, e - o - n) for o, e, n in zip(self.origin, self.extents, self.shape, strict=True))

    def part(self, box: Box) -> Layout:
        """The cells of a box as an interior of its own in the same memory; the cells around it are its halo."""
        shape = tuple(hi - lo for lo, hi in box)
        return replace(self, shape=shape, origin=tuple(o + lo for o, (lo, _) in zip(self.origin, box, strict=True)))

    @staticmethod
    def padded(shape: Sequence[int], halo: Halo, dtype: str, aligned: int = 0) -> Layout:
        """The layout of arrays made by this package: every interior row starts on a cache line.

        Args:
            aligned: the cell of a row that lies on the cache line, where it is not the first.
        """
        shape = tuple(int(n) for n in shape)
        line = LINE_BYTES // ITEMSIZE[dtype]
        origin = [lo for lo, _ in halo]
        extents = [n + lo + hi for n, (lo, hi) in zip(shape, halo, strict=True)]
        origin[-1] = round_up(halo[-1][0] + aligned, line) - aligned
        extents[-1] = round_up(origin[-1] + shape[-1] + halo[-1][1], line)
        strides = [prod(extents[axis + 1 :]) for axis in range(len(shape))]
        slack = (SLACK_ROWS * extents[-1] if len(shape) > 1 else 0) + SLACK_ELEMENTS
        return Layout(shape, tuple(origin), tuple(extents), tuple(strides), prod(extents) + slack)

    @staticmethod
    def plain(extents: Sequence[int], halo: Halo, strides: Sequence[int], alignment: int) -> Layout:
        """The layout of a caller's own array whose outer cells are the halo, with no slack behind it."""
        shape = tuple(e - lo - hi for e, (lo, hi) in zip(extents, halo, strict=True))
        capacity = 1 + sum((e - 1) * s for e, s in zip(extents, strides, strict=True))
        return Layout(shape, tuple(lo for lo, _ in halo), tuple(extents), tuple(strides), capacity, alignment)
