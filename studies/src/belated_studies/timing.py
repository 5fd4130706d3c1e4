"""Benchmark timing: the median and range of several readings, on one BLAS thread.

Short work is repeated within a reading until it lasts long enough for the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits


class Spread(NamedTuple):
    """The median, minimum and maximum of several readings."""

    median: float
    low: float
    high: float

    def times(self, factor: float) -> Spread:
        """Return the same in another unit, multiplied by `factor`.

        >>> Spread(2.0, 1.0, 4.0).times(1000)
        Spread(median=2000.0, low=1000.0, high=4000.0)
        """
        return Spread(factor * self.median, factor * self.low, factor * self.high)


def spread(readings: Sequence[float]) -> Spread:
    """Summarise one or more readings.

    >>> spread([3.0, 1.0, 10.0])
    Spread(median=3.0, low=1.0, high=10.0)
    """
    return Spread(float(np.median(readings)), float(min(readings)), float(max(readings)))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def stopwatch(work: Callable[[int], object], least_seconds: float) -> Callable[[], float]:
    """Return a function that measures the seconds per unit of `work(count)`, for a count that lasts long enough.

    The calls made here warm up (compilation, memory) and find the count.
    """

    def once(count: int) -> float:
        return seconds(lambda: work(count))

    once(1)
    count = 1
    while (elapsed := once(count)) < least_seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * least_seconds / max(elapsed, 1e-9))))
    return lambda: once(count) / count


def timed(work: Callable[[int], object], *, repeats: int, least_seconds: float) -> Spread:
    """Return the seconds per unit of `work(count)`, on one BLAS thread."""
    with threadpool_limits(1):
        read = stopwatch(work, least_seconds)
        return spread([read() for _ in range(repeats)])


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the exponent with which time grows: the slope of log seconds against log size.

    >>> round(growth([10, 100, 1000], [2e-3, 2e-1, 2e1]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
