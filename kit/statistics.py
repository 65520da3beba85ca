"""The few statistics that a benchmark needs: a median with its confidence interval, its spread, and ratios of interleaved rounds."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass


@functools.cache
def _rank(n, confidence):
    """How many of n sorted samples to leave out at each end so that the rest covers the median with this confidence; 0 where n is too
    small for it. The count of samples below the median is binomial(n, 1/2), whatever the distribution (Conover, Practical
    Nonparametric Statistics, section 3.2)."""
    below, kept = 0.0, 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if 2 * below > 1 - confidence:
            break
        kept = k + 1
    return kept


def quantile(ordered, q):
    """The quantile q of sorted numbers, by linear interpolation."""
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True)
class Summary:
    """Of samples: how many, the median, the ends of its confidence interval, the 10th and 90th percentile, the extremes."""

    count: int
    median: float
    low: float
    high: float
    p10: float
    p90: float
    least: float
    most: float

    @property
    def spread(self):
        """Half of the way from the 10th to the 90th percentile, as a share of the median."""
        return (self.p90 - self.p10) / 2 / self.median if self.median else 0.0


def summary(samples, confidence=0.95):
    """The Summary of samples. With fewer than six the interval is the range: no 95 % interval exists for them."""
    ordered = sorted(samples)
    n = len(ordered)
    cut = max(0, _rank(n, confidence) - 1)
    middle = quantile(ordered, 0.5)
    return Summary(n, middle, ordered[cut], ordered[n - 1 - cut], quantile(ordered, 0.1), quantile(ordered, 0.9), ordered[0], ordered[-1])


def ratio(above, below, confidence=0.95):
    """The Summary of above/below, round by round: drift of the clocks hits both of a round and cancels."""
    return summary([a / b for a, b in zip(above, below, strict=True)], confidence)
