"""Estimates with confidence intervals from arrays of results, one row per seed."""

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

__all__ = [
    "Band",
    "Convergence",
    "Estimate",
    "bootstrap",
    "cumulative_regret",
    "difference",
    "episodes_to_best",
    "first_reaching",
    "gaps",
    "growth_exponent",
    "interquartile_mean",
    "mean_interval",
    "performance_profile",
    "probability_of_improvement",
    "statistic_interval",
    "upon_convergence",
]


_CHUNK_NUMBERS = 50_000_000 // 8  # bootstrap means held at once: 50 MB of doubles


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds and its interval; `low` and `high` are nan with a single seed.

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

    Whole seeds are resampled, the same ones for every column, so curves stay intact. The interval always contains the
    mean; with one seed `low` and `high` are nan.

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

    # Relative to the first seed, a column without spread has an interval of width exactly zero.
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
    """Return the fraction of each seed in each resample, shape (seeds, resamples)."""
    draws = rng.integers(seeds, size=(resamples, seeds))
    cells = draws + seeds * np.arange(resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * seeds).reshape(resamples, seeds)
    return np.ascontiguousarray(counts.T / seeds)


def expanded_tail(level: float, seeds: int, groups: int = 1) -> float:
    """Return α'/2, the tail probability on each side, if spreads are estimated from `groups` times `seeds` samples."""
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


_ROUNDING = 1e-9  # relative differences below this are rounding


def gaps(optimal: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Return the regret V* - V^π of each episode, in the shape of `value`; `optimal` is broadcast to it.

    Raises InvalidInputError if a gap is negative by more than rounding: no exact value exceeds the optimum.

    >>> gaps(3.0, [1.0, 2.5, 3.0]).tolist()
    [2.0, 0.5, 0.0]
    """
    played = any_shape("value", value)
    best = any_shape("optimal", optimal)
    try:
        best = np.broadcast_to(best, played.shape)
    except ValueError:
        raise InvalidInputError(
            f"optimal must be a number or broadcast to value's shape {played.shape}, got shape {best.shape}"
        ) from None
    regret = best - played
    impossible = regret < -_ROUNDING * np.maximum(1.0, np.abs(best))
    if impossible.any():
        where = tuple(int(i) for i in np.argwhere(impossible)[0])
        raise InvalidInputError(
            f"value must not exceed optimal, got {played[where]} against {best[where]} at index {where}"
        )
    return np.asarray(np.maximum(regret, 0.0))


def cumulative_regret(gaps: npt.ArrayLike) -> Floats:
    """Return the running sum of per-episode gaps along the last axis.

    >>> cumulative_regret([[2.0, 0.5, 0.0]]).tolist()
    [[2.0, 2.5, 2.5]]
    """
    return np.cumsum(any_shape("gaps", gaps, axes=1), axis=-1)


def growth_exponent(regret_curves: npt.ArrayLike, *, first: float = 0.1) -> Estimate:
    """Return p of regret ∝ episode^p: the mean over seeds of the log-log least-squares slope.

    `regret_curves` is cumulative, shape (seeds, episodes), and must be positive after the `first` fraction of episodes,
    which is left out of the fit.

    >>> print(growth_exponent([[1.0, 4.0, 9.0, 16.0], [2.0, 8.0, 18.0, 32.0]]))
    2.00 [2.00, 2.00]
    """
    curves = seed_curves("regret_curves", regret_curves)
    episodes = curves.shape[1]
    skipped = round(real("first", first, at_least=0, below=1) * episodes)
    fitted = curves[:, skipped:]
    integer("the number of fitted episodes in regret_curves", fitted.shape[1], at_least=2)
    if fitted.min() <= 0:
        row, column = (int(i) for i in np.argwhere(fitted <= 0)[0])
        raise InvalidInputError(
            f"regret_curves must be > 0 after the first {skipped} episodes, "
            f"got {fitted[row, column]} at index {(row, skipped + column)}"
        )
    log_episode = np.log(np.arange(skipped + 1, episodes + 1))
    log_episode -= log_episode.mean()
    return mean_interval(np.log(fitted) @ log_episode / (log_episode @ log_episode))


@dataclass(frozen=True, slots=True)
class Convergence:
    """The value over the last `window` episodes; the spread of a single number is nan."""

    estimate: Estimate
    """Mean over the window, with its interval over seeds."""
    spread_over_seeds: float
    """Standard deviation (n - 1) of the per-seed means."""
    spread_over_episodes: float
    """Standard deviation (n - 1) of all values in the window, over seeds and episodes."""
    window: int
    """Number of episodes averaged."""


def upon_convergence(values: npt.ArrayLike, fraction: float = 0.1) -> Convergence:
    """Return the mean over the last `fraction` of episodes (rounded, at least one) and its spreads.

    >>> print(upon_convergence([[0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 4.0, 6.0]], fraction=0.5).estimate)
    4.00 [3.00, 5.00]
    """
    curves = seed_curves("values", values)
    window = max(1, round(real("fraction", fraction, above=0, at_most=1) * curves.shape[1]))
    settled = curves[:, -window:]
    per_seed = settled.mean(axis=1)
    return Convergence(mean_interval(per_seed), _spread(per_seed), _spread(settled), window)


def episodes_to_best(values: npt.ArrayLike, window: int = 50, share: float = 0.99) -> int:
    """Return the number of episodes until the moving average first reaches the fraction `share` of its maximum.

    The average is over seeds and the trailing `window` episodes (all of them if there are fewer). Its maximum must not
    be negative, since a fraction of it would exceed it.

    >>> episodes_to_best([[0.0, 0.0, 10.0, 10.0, 10.0]], window=2)
    4
    """
    share = real("share", share, above=0, at_most=1)
    averages, width = _moving_average(values, window)
    peak = float(averages.max())
    if peak < 0 and share < 1:
        raise InvalidInputError(
            f"values must have a moving average that is not negative throughout, got a maximum of {peak:g};"
            " use first_reaching with a threshold instead"
        )
    return int(np.argmax(_reaches(averages, share * peak))) + width


def first_reaching(values: npt.ArrayLike, threshold: float, window: int = 50) -> int | None:
    """Return the number of episodes until the moving average reaches `threshold`; None if it never does.

    >>> first_reaching([[0.0, 0.0, 10.0, 10.0, 10.0]], 5.0, window=2)
    3
    >>> print(first_reaching([[0.0, 0.0, 10.0, 10.0, 10.0]], 11.0, window=2))
    None
    """
    threshold = real("threshold", threshold)
    averages, width = _moving_average(values, window)
    reached = _reaches(averages, threshold)
    return int(np.argmax(reached)) + width if reached.any() else None


def _moving_average(values: npt.ArrayLike, window: int) -> tuple[Floats, int]:
    """Return the trailing averages of the mean over seeds, and the window; the first average ends at that episode."""
    mean = seed_curves("values", values).mean(axis=0)
    width = min(integer("window", window, at_least=1), mean.size)
    # Running sums of deviations stay small, which limits the rounding errors of their differences.
    centre = mean.mean()
    sums = np.concatenate(([0.0], np.cumsum(mean - centre)))
    return centre + (sums[width:] - sums[:-width]) / width, width


def _reaches(averages: Floats, threshold: float) -> npt.NDArray[np.bool_]:
    allowance = _ROUNDING * float(np.abs(averages).max())
    return averages >= threshold - allowance


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else float("nan")


TRIMMED = 0.25
"""The fraction of scores that an interquartile mean drops on each side."""
_CHUNK = 100
"""Resamples per batch, to bound memory."""


def interquartile_mean(scores: npt.ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Estimate:
    """Return the mean of the middle half of all scores, shape (runs, tasks), with its interval.

    It is less sensitive to outliers than the mean, and uses more of the data than the median.

    >>> print(interquartile_mean([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 100.0]]))
    6.50 [5.50, 50.75]
    """
    table = _scores("scores", scores)
    found = _resampled([table], lambda tables: _middle(tables[0]), resamples, seed)
    return _estimate(float(_middle(table[np.newaxis])[0]), found, level, table.shape)


def performance_profile(
    scores: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Band:
    """Return the fraction of all runs and tasks that score more than each of `thresholds`, with pointwise intervals.

    >>> performance_profile([[0.2, 0.9], [0.4, 1.0]], [0.0, 0.5, 1.0]).value.tolist()
    [1.0, 0.5, 0.0]
    """
    table = _scores("scores", scores)
    marks = array("thresholds", thresholds, (None,))

    def shares(tables: list[Floats]) -> Floats:
        return np.stack([(tables[0] > mark).mean(axis=(1, 2)) for mark in marks], axis=1)

    value = shares([table[np.newaxis]])[0]
    level, ends = _ends(_resampled([table], shares, resamples, seed), level, table.shape)
    return Band(value, np.minimum(ends[0], value), np.maximum(ends[1], value), level, table.shape[0])


def probability_of_improvement(
    a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Return the probability that a run of `a` scores more than one of `b` on a random task; ties count half.

    >>> print(probability_of_improvement([[2.0], [3.0]], [[1.0], [1.5]]))
    1.00 [1.00, 1.00]
    """
    first = _scores("a", a)
    second = _scores("b", b, tasks=first.shape[1])

    def wins(tables: list[Floats]) -> Floats:
        ours, theirs = tables[0][:, :, np.newaxis], tables[1][:, np.newaxis]
        share: Floats = ((ours > theirs) + 0.5 * (ours == theirs)).mean(axis=(1, 2, 3))
        return share

    value = float(wins([first[np.newaxis], second[np.newaxis]])[0])
    fewer = min(first, second, key=len)
    return _estimate(value, _resampled([first, second], wins, resamples, seed), level, fewer.shape)


def _scores(name: str, scores: npt.ArrayLike, tasks: int | None = None) -> Floats:
    table = array(name, scores, (None, tasks))
    if table.size == 0:
        raise InvalidInputError(f"{name} must have at least one run and one task, got shape {table.shape}")
    return table


def _middle(tables: Floats) -> Floats:
    """Return the interquartile mean of each of `tables`, shape (count, runs, tasks)."""
    ordered = np.sort(tables.reshape(len(tables), -1), axis=1)
    cut = int(TRIMMED * ordered.shape[1])
    middle: Floats = ordered[:, cut : ordered.shape[1] - cut].mean(axis=1)
    return middle


def _resampled(tables: list[Floats], statistic: Callable[[list[Floats]], Floats], resamples: int, seed: int) -> Floats:
    """Return `statistic` of resampled tables: runs drawn with replacement within each task."""
    rng, left, found = stream(seed, "bootstrap"), integer("resamples", resamples, at_least=100), []
    while left:
        count = min(_CHUNK, left)
        drawn = [rng.integers(len(table), size=(count, *table.shape)) for table in tables]
        found.append(
            statistic([np.take_along_axis(t[np.newaxis], d, axis=1) for t, d in zip(tables, drawn, strict=True)])
        )
        left -= count
    return np.concatenate(found)


def _ends(found: Floats, level: float, shape: tuple[int, ...]) -> tuple[float, Floats]:
    """Return the checked level and both bounds of the interval; nan for a single run."""
    level, (runs, tasks) = real("level", level, above=0, below=1), shape
    if runs == 1:
        return level, np.full((2, *found.shape[1:]), np.nan)
    tail = expanded_tail(level, runs, tasks)
    return level, np.quantile(found, [tail, 1 - tail], axis=0)


def _estimate(value: float, found: Floats, level: float, shape: tuple[int, ...]) -> Estimate:
    level, (low, high) = _ends(found, level, shape)
    return Estimate(value, float(np.minimum(low, value)), float(np.maximum(high, value)), level, shape[0])
