"""Regret against the optimal value: per episode, in total, and how fast it grows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from belated._util.validate import integer, real
from belated.errors import InvalidInputError
from belated.evaluation._arrays import any_shape, seed_curves
from belated.evaluation._intervals import Estimate, mean_interval
from belated.types import Floats

_ROUNDING = 1e-9  # a gap below zero by less than this share of max(1, |V*|) is rounding


def gaps(optimal: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Return the regret V* - V^π of each episode, in the shape of `value`; `optimal` is broadcast to it.

    An exact value cannot beat the optimum, so a gap below zero by more than rounding is refused.

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
    """Return p of the distribution regret ∝ episode^p: the log-log least-squares slope, per seed, over seeds.

    `regret_curves` is cumulative, shape (seeds, episodes). The `first` share of episodes (rounded) is left
    out of the fit. Regret that is still zero in the fitted part has no logarithm, and is refused.

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
