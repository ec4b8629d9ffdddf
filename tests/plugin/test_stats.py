"""Intervals and verdicts."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stencil_dsl.testing.stats import Interval, coverage, interval, order_statistic_rank, ratio, verdict

times = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40)


@given(times)
def test_the_interval_holds_the_sample_median_and_is_made_of_samples(samples):
    found = interval(samples)
    assert found.lo <= found.median <= found.hi
    assert found.lo in samples and found.hi in samples


@given(times, st.floats(0.5, 2.0))
def test_intervals_scale_with_the_unit(samples, factor):
    plain, scaled = interval(samples), interval([s * factor for s in samples])
    assert scaled.lo == pytest.approx(plain.lo * factor)
    assert scaled.hi == pytest.approx(plain.hi * factor)


@given(times, st.randoms())
def test_the_order_of_samples_does_not_matter(samples, random):
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert interval(shuffled) == interval(samples)


@pytest.mark.parametrize("n", range(1, 12))
def test_coverage_is_exact(n):
    """Counts all ways in which n samples fall above or below the true median."""
    for k in range(1, (n + 1) // 2 + 1):
        covered = 0
        for below in product((0, 1), repeat=n):
            # Sorted, the first `count` samples lie below the true median; the interval reaches to the k-th last.
            count = sum(below)
            covered += count >= k and count <= n - k
        assert coverage(n, k) == pytest.approx(covered / 2**n)


@pytest.mark.parametrize(("n", "k"), [(5, 1), (6, 1), (9, 2), (12, 3), (20, 6), (40, 14)])
def test_ranks_are_those_of_the_tables(n, k):
    """The usual tables of the sign test at 95 %; five samples cannot reach it."""
    rank, covered = order_statistic_rank(n)
    assert rank == k
    assert covered >= 0.95 or n < 6


@given(st.lists(st.floats(0.1, 10), min_size=9, max_size=30), st.floats(0.2, 5))
def test_a_drift_common_to_both_cancels_in_the_ratio(base, factor):
    """Two variants that follow the same clock differ by their factor, however the clock moves."""
    found = ratio([factor * t for t in base], base)
    assert found.lo == pytest.approx(factor) and found.hi == pytest.approx(factor)


def test_rounds_must_pair_up():
    with pytest.raises(ValueError, match="9 and 8 samples"):
        ratio([1.0] * 9, [1.0] * 8)


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (0.80, 0.90, "faster"),
        (1.10, 1.20, "slower"),
        (0.98, 1.02, "tie"),
        (0.97, 1.03, "tie"),
        (0.95, 1.01, "unclear"),
        (0.99, 1.05, "unclear"),
        (0.90, 1.10, "unclear"),
    ],
)
def test_verdicts(lo, hi, expected):
    assert verdict(Interval((lo + hi) / 2, lo, hi, 0.95, 9)) == expected


@given(st.floats(0.5, 2), st.floats(0, 0.5))
def test_verdicts_are_antisymmetric_outside_the_band(middle, width):
    """If one side is clearly faster, the other is not faster too."""
    one = Interval(middle, middle, middle + width, 0.95, 9)
    other = Interval(1 / middle, 1 / (middle + width), 1 / middle, 0.95, 9)
    verdicts = {verdict(one), verdict(other)}
    assert verdicts not in ({"faster"}, {"slower"})
