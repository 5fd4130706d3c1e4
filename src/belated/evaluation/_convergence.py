"""When and where learning curves settle.

Curves have shape (seeds, episodes). Every episode count that is returned starts from 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from belated._util.validate import integer, real
from belated.errors import InvalidInputError
from belated.evaluation._arrays import seed_curves
from belated.evaluation._intervals import Estimate, mean_interval
from belated.types import Floats

_ROUNDING = 1e-9  # an average short of its target by less than this share of the curve's size is there


@dataclass(frozen=True, slots=True)
class Convergence:
    """The value over the last `window` episodes; a spread of fewer than two numbers is nan."""

    estimate: Estimate
    """Mean over the window, with its interval over seeds."""
    spread_over_seeds: float
    """Standard deviation (n - 1) of the per-seed means."""
    spread_over_episodes: float
    """Standard deviation (n - 1) of all values in the window, over seeds and episodes together."""
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

    The average is that of the seed-mean value over the trailing `window` episodes (all of them if there
    are fewer). A share of a negative maximum lies above it, so such curves are refused.

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
    """Return after how many episodes that moving average is `threshold` or more, None if it never is.

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
    """Return the trailing averages of the seed mean and the window used; the first ends at that episode."""
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
