"""Intervals of a median, against the tabulated ranks."""

import pytest

from kit.statistics import summary


# Conover, Practical Nonparametric Statistics, table A3 (binomial, p = 1/2): the ranks whose samples bound a 95 % interval of the median.
# With 14 samples the ranks of a one-sided 95 % bound, 4 and 11, would be too narrow.
@pytest.mark.parametrize("n, low, high", [(6, 1, 6), (9, 2, 8), (14, 3, 12), (20, 6, 15)])
def test_the_interval_is_bounded_by_the_tabulated_ranks(n, low, high):
    found = summary(range(1, n + 1))
    assert (found.low, found.high) == (low, high)
