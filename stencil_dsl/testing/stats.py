"""Medians, distribution-free intervals and verdicts. Pure Python: used where NumPy need not be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

#: Ratios within this distance of one count as equal.
TIE_BAND = 0.03
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median with an interval that covers the true one with the stated probability (at least).

    Attributes:
        median, lo, hi: in the unit of the samples.
        coverage: probability that lo .. hi holds the median of the distribution, whatever its shape.
        n: number of samples.
    """

    median: float
    lo: float
    hi: float
    coverage: float
    n: int


def order_statistic_rank(n: int, confidence: float = CONFIDENCE) -> tuple[int, float]:
    """Largest k such that the k-th smallest and k-th largest of n samples enclose the median with
    `confidence`.

    Returns (k, coverage); k is 1 with the coverage that n samples can give when that is less than asked.
    """
    if n < 1:
        raise ValueError("an interval needs at least one sample")
    best = (1, coverage(n, 1))
    for k in range(2, (n + 1) // 2 + 1):
        covered = coverage(n, k)
        if covered < confidence:
            break
        best = (k, covered)
    return best


def coverage(n: int, k: int) -> float:
    """Probability that the median lies between the k-th smallest and the k-th largest of n samples."""
    tail = sum(comb(n, i) for i in range(k)) / 2**n
    return max(0.0, 1.0 - 2.0 * tail)


def interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Median and its order-statistic interval: no assumption on the distribution of the samples."""
    ordered = sorted(samples)
    k, covered = order_statistic_rank(len(ordered), confidence)
    return Interval(median(ordered), ordered[k - 1], ordered[-k], covered, len(ordered))


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Interval:
    """Interval of the per-round ratios; both sequences hold one time a round, in the same order of rounds."""
    if len(numerator) != len(denominator):
        raise ValueError(f"rounds do not pair up: {len(numerator)} and {len(denominator)} samples")
    return interval([a / b for a, b in zip(numerator, denominator, strict=True)])


def verdict(times: Interval, band: float = TIE_BAND) -> str:
    """ "faster", "slower", "tie" or "unclear" for an interval of time ratios (this / other).

    Faster and slower need the whole interval outside the band, a tie the whole interval inside it.
    """
    low, high = 1.0 - band, 1.0 + band
    if times.hi < low:
        return "faster"
    if times.lo > high:
        return "slower"
    if times.lo >= low and times.hi <= high:
        return "tie"
    return "unclear"
