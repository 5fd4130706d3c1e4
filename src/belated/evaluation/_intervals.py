"""Means over seeds with bootstrap intervals that keep their level for few seeds.

The plain percentile bootstrap is too narrow for n seeds: its spread is that of the sample with divisor n
instead of n - 1, and its tails are normal where Student's are due. The *expanded percentile* interval
(Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015) takes the
same bootstrap means at the tail probability that makes up for both:

    α'/2 = Φ( -√(n / (n - 1)) · t_{1 - α/2, n - 1} ),    α = 1 - level.

For ten seeds at level 0.95 that is 0.0086 rather than 0.025. No resampled mean leaves the range of the data,
so with fewer than six seeds a level of 0.95 is out of reach: the range of n symmetric samples holds their
centre with probability 1 - 2^(1-n), which is 0.5, 0.75, 0.875 and 0.9375 for n = 2, 3, 4, 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from belated._kernels.streams import stream
from belated._util.validate import array, integer, real
from belated.errors import InvalidInputError
from belated.types import Floats

_CHUNK_NUMBERS = 50_000_000 // 8  # bootstrap means held at once: 50 MB of doubles


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds and its interval; `low` and `high` are nan when there is one seed only.

    >>> print(Estimate(11.53, 11.4, 11.66, level=0.95, seeds=10))
    11.53 [11.40, 11.66]
    >>> f"{Estimate(11.53, 11.4, 11.66, level=0.95, seeds=10):.1f}"
    '11.5 [11.4, 11.7]'
    >>> print(Estimate(11.53, float("nan"), float("nan"), level=0.95, seeds=1))
    11.53 [one seed]
    """

    value: float
    low: float
    high: float
    level: float
    seeds: int

    def __str__(self) -> str:
        return format(self, ".2f")

    def __format__(self, spec: str) -> str:
        spec = spec or ".2f"
        if self.seeds == 1:
            return f"{self.value:{spec}} [one seed]"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Means over seeds and their pointwise intervals, as arrays of one shape."""

    value: Floats
    low: Floats
    high: Floats
    level: float
    seeds: int


def bootstrap(samples: npt.ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Band:
    """Return the mean of `samples`, shape (seeds, ...), over seeds with expanded percentile intervals.

    Whole seeds are resampled, the same ones for every column, so a seed's curve stays in one piece. The interval always
    contains the mean; with one seed `low` and `high` are nan.

    >>> band = bootstrap([[1.0, 5.0], [3.0, 5.0]])
    >>> band.value.tolist(), band.low.tolist(), band.high.tolist()
    ([2.0, 5.0], [1.0, 5.0], [3.0, 5.0])
    """
    table = any_shape("samples", samples, axes=1)
    seeds, shape = table.shape[0], table.shape[1:]
    if seeds == 0:
        raise InvalidInputError(f"samples must have at least one seed, got shape {table.shape}")
    level = real("level", level, above=0, below=1)
    resamples = integer("resamples", resamples, at_least=100)
    rng = stream(seed, "bootstrap")

    # Measured from the first seed, a column without spread has an interval of width exactly zero.
    offsets = (table - table[0]).reshape(seeds, -1)
    centre = offsets.mean(axis=0)
    value = table[0] + centre.reshape(shape)
    if seeds == 1:
        return Band(value, np.full(shape, np.nan), np.full(shape, np.nan), level, seeds)

    weights = _resampling_weights(rng, resamples, seeds)
    tail = expanded_tail(level, seeds)
    ends = np.empty((2, offsets.shape[1]))
    width = max(1, _CHUNK_NUMBERS // resamples)
    for start in range(0, offsets.shape[1], width):
        columns = slice(start, start + width)
        means = offsets[:, columns].T @ weights
        ends[:, columns] = np.quantile(means, [tail, 1 - tail], axis=1, overwrite_input=True)
    # A low level on skewed samples, or rounding, could leave the mean outside.
    low = table[0] + np.minimum(ends[0], centre).reshape(shape)
    high = table[0] + np.maximum(ends[1], centre).reshape(shape)
    return Band(value, low, high, level, seeds)


def mean_interval(samples: npt.ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Estimate:
    """Return the mean of one number per seed, with the interval of `bootstrap`.

    >>> print(mean_interval([1.0, 2.0, 3.0, 4.0]))
    2.50 [1.00, 4.00]
    """
    band = bootstrap(array("samples", samples, (None,)), level=level, resamples=resamples, seed=seed)
    return Estimate(float(band.value), float(band.low), float(band.high), band.level, band.seeds)


def difference(
    a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Return the mean of `a - b`, paired by seed: `a[i]` and `b[i]` must come from the same seed.

    >>> print(difference([5.0, 7.0, 9.0], [4.0, 6.0, 8.0]))
    1.00 [1.00, 1.00]
    """
    first = array("a", a, (None,))
    second = array("b", b, first.shape)
    return mean_interval(first - second, level=level, resamples=resamples, seed=seed)


def statistic_interval(
    curves: npt.ArrayLike,
    statistic: Callable[[Floats], float],
    *,
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> Estimate:
    """Return `statistic` of the mean curve of `curves` (seeds, episodes), with its interval over resampled seeds.

    >>> print(statistic_interval([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]], lambda curve: float(curve.max())))
    3.00 [1.00, 5.00]
    """
    table = array("curves", curves, (None, None))
    if table.shape[0] == 0:
        raise InvalidInputError(f"curves must have at least one seed, got shape {table.shape}")
    level = real("level", level, above=0, below=1)
    seeds = table.shape[0]
    value = float(statistic(table.mean(axis=0)))
    if seeds == 1:
        return Estimate(value, math.nan, math.nan, level, seeds)
    weights = _resampling_weights(stream(seed, "bootstrap"), integer("resamples", resamples, at_least=100), seeds)
    found = [statistic(curve) for curve in weights.T @ table]
    tail = expanded_tail(level, seeds)
    low, high = np.quantile(found, [tail, 1 - tail])
    return Estimate(value, min(float(low), value), max(float(high), value), level, seeds)


def _resampling_weights(rng: np.random.Generator, resamples: int, seeds: int) -> Floats:
    """Return the share of each seed in each resample, shape (seeds, resamples)."""
    draws = rng.integers(seeds, size=(resamples, seeds))
    cells = draws + seeds * np.arange(resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * seeds).reshape(resamples, seeds)
    return np.ascontiguousarray(counts.T / seeds)


def expanded_tail(level: float, seeds: int, groups: int = 1) -> float:
    """Return α'/2, the probability left out on each side, if spreads are known from `groups` times `seeds` samples."""
    student = scipy.special.stdtrit(groups * (seeds - 1), (1 + level) / 2)
    return float(scipy.special.ndtr(-math.sqrt(seeds / (seeds - 1)) * student))


def any_shape(name: str, value: Any, *, axes: int = 0) -> Floats:
    """Return a read-only float copy of `value`, finite, with at least `axes` axes.

    >>> any_shape("samples", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        found = np.ndim(value)
    except ValueError:
        found = axes  # ragged lists, which `array` rejects
    if found < axes:
        raise InvalidInputError(f"{name} must have at least {axes} axis, got {value!r}")
    return array(name, value, (None,) * found)


def seed_curves(name: str, value: Any) -> Floats:
    """Return `value` as curves of shape (seeds, episodes), at least one of each.

    >>> seed_curves("values", [[], []])
    Traceback (most recent call last):
    belated.errors.InvalidInputError: values must have at least one seed and one episode, got shape (2, 0)
    """
    curves = array(name, value, (None, None))
    if curves.size == 0:
        raise InvalidInputError(f"{name} must have at least one seed and one episode, got shape {curves.shape}")
    return curves
