"""Learning curves, of shape (seeds, episodes): regret, how fast it grows, and when values settle.

Every episode count that is returned starts from 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from belated._util.validate import integer, real
from belated.errors import InvalidInputError
from belated.evaluation._intervals import Estimate, any_shape, mean_interval, seed_curves
from belated.types import Floats

_ROUNDING = 1e-9  # relative differences below this are rounding


def gaps(optimal: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Return the regret V* - V^π of each episode, in the shape of `value`; `optimal` is broadcast to it.

    Raises InvalidInputError if a gap is below zero by more than rounding: no exact value beats the optimum.

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
    """Return after how many episodes the moving average first reaches `share` of its own maximum.

    The average is that of the mean over seeds in the trailing `window` episodes (all of them if there are fewer). Its
    maximum must not be negative, since a share of it would lie above it.

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
    """Return after how many episodes the moving average reaches `threshold`, None if it never does.

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
    # Running sums of deviations stay small, and so does the rounding of their differences.
    centre = mean.mean()
    sums = np.concatenate(([0.0], np.cumsum(mean - centre)))
    return centre + (sums[width:] - sums[:-width]) / width, width


def _reaches(averages: Floats, threshold: float) -> npt.NDArray[np.bool_]:
    allowance = _ROUNDING * float(np.abs(averages).max())
    return averages >= threshold - allowance


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else float("nan")
