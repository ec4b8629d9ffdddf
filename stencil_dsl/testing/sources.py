"""Input values as a function of coordinates.

A 512^3 field is a gigabyte: instead of making it on the host and uploading it, host and device compute the
same bits from the coordinates. Any box of any field, halo and padding included, can then be had on either
side without the rest, whatever layout a variant uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Coordinates are offset to be positive and packed with 20 bits an axis.
_BITS, _ORIGIN = 20, 1 << 19


@dataclass(frozen=True)
class RandomField:
    """Uniform magnitudes in [0.1, 1) with random signs: never zero, so conditionals and divisions both act.

    ``field(lo, shape, xp)`` returns the values at lo .. lo + shape as an array of xp (numpy or cupy);
    both give the same bits. At most three axes, coordinates within +-500000.
    """

    seed: int
    dtype: str = "float64"

    def __call__(self, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        rank = len(shape)
        key = xp.zeros((1,) * rank, dtype=xp.uint64)
        for axis, (start, extent) in enumerate(zip(lo, shape, strict=True)):
            along = xp.arange(start + _ORIGIN, start + _ORIGIN + extent, dtype=xp.uint64)
            view = [1] * rank
            view[axis] = extent
            key = key | (along.reshape(view) << xp.uint64(_BITS * (rank - 1 - axis)))
        bits = _mix(key, self.seed, xp)
        magnitude = (bits >> xp.uint64(12)).astype(xp.float64) * (0.9 / 2.0**52) + 0.1
        negative = (bits & xp.uint64(1)).astype(bool)
        return xp.where(negative, -magnitude, magnitude).astype(self.dtype)


@dataclass(frozen=True)
class RandomIntegers:
    """Integers in [-bound, bound), a function of coordinates like `RandomField`."""

    seed: int
    dtype: str = "int8"
    bound: int = 8

    def __call__(self, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        values = RandomField(self.seed)(lo, shape, xp)
        # Magnitudes are uniform in [0.1, 1): the fourth digit behind the point is uniform enough, and both machines
        # agree on it.
        digits = xp.floor(xp.abs(values) * 1e6).astype(xp.int64)
        return (digits % (2 * self.bound) - self.bound).astype(self.dtype)


@dataclass(frozen=True)
class ConstantField:
    """The same value everywhere."""

    value: float
    dtype: str = "float64"

    def __call__(self, lo: Sequence[int], shape: Sequence[int], xp: Any) -> Any:
        return xp.full(tuple(shape), self.value, dtype=self.dtype)


def _mix(key: Any, seed: int, xp: Any) -> Any:
    """The output function of SplitMix64 (Steele, Lea, Flood 2014), a bijection with full avalanche."""
    # The seed is spread by the same increments SplitMix64 steps with (wrapped in Python: NumPy would warn).
    start = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = key ^ xp.uint64(start)
    z = (z ^ (z >> xp.uint64(30))) * xp.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> xp.uint64(27))) * xp.uint64(0x94D049BB133111EB)
    return z ^ (z >> xp.uint64(31))
