"""Scores of one agent over several tasks: interquartile mean, performance profile, probability of improvement.

These are the statistics of Agarwal et al. ("Deep Reinforcement Learning at the Edge of the Statistical Precipice",
NeurIPS 2021). Scores are a table of runs (rows) and tasks (columns), brought to a common scale by the caller, for
example as a fraction of the optimum. Intervals resample runs within each task separately (a stratified bootstrap).

Resampling n runs shrinks their variance by (n - 1)/n, and M tasks together estimate it with M(n - 1) degrees of
freedom. As in `belated.evaluation.bootstrap`, the percentiles are taken further out to correct for both:

    α'/2 = Φ( -√(n / (n - 1)) · t_{1 - α/2, M(n - 1)} ),    α = 1 - level.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import stream
from belated._util.validate import array, integer, real
from belated.errors import InvalidInputError
from belated.evaluation._intervals import Band, Estimate, expanded_tail
from belated.types import Floats

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
    """Return the checked level and both ends of the interval; nan for a single run."""
    level, (runs, tasks) = real("level", level, above=0, below=1), shape
    if runs == 1:
        return level, np.full((2, *found.shape[1:]), np.nan)
    tail = expanded_tail(level, runs, tasks)
    return level, np.quantile(found, [tail, 1 - tail], axis=0)


def _estimate(value: float, found: Floats, level: float, shape: tuple[int, ...]) -> Estimate:
    level, (low, high) = _ends(found, level, shape)
    return Estimate(value, float(np.minimum(low, value)), float(np.maximum(high, value)), level, shape[0])
