"""Whether an estimate from a log has an interval, and which: one rule for decisions and sessions.

**A log that does not learn** has one if enough of its units (decisions or sessions) carry the estimate, and enough of
its rewards. With fewer, coverage falls fast.

**In a log that learns** the propensities depend on the rewards. The log supports a policy that the model has come to
favour, and the model favours it because its rewards happened to be large: an interval computed from the same rewards
covers too rarely. So the first third of such a log decides whether there is an interval, the rest gives it, and nothing
in the rest withdraws it. Each unit of the rest has a weight that was known before the unit began: 1/s, where s is the
standard deviation of the terms before it. Every part of the rest then adds the same variance, however the propensities
move, which the sum needs to be normal. See docs/math/off-policy.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import scipy.special

from belated.types import Floats

#: Minimum number of units, and of rewards, that must carry an estimate with an interval.
UNITS, REWARDS = 100, 20
#: Safety factor for the first third of a log that learns: the model may leave the policy later.
MARGIN = 2.0
#: How much an interval may miss, in standard errors: it then covers 94.5 % instead of 95 %.
_BLIND = 0.2


class Estimate(NamedTuple):
    """An estimate of a policy's mean reward."""

    method: str
    value: float
    error: float
    """Standard error; nan if there is no interval, since it would be just as unreliable."""
    low: float
    high: float
    """Bounds of the interval; nan if there is none."""
    reason: str = ""
    """Why there is no interval."""


class Mean(NamedTuple):
    """A mean, or an estimate with the same sampling variance as one, such as a sum of ratios."""

    value: float
    terms: Floats
    """Terms whose mean has the sampling variance of the value."""

    @classmethod
    def of(cls, terms: Floats, counts: Floats) -> Mean:
        """Return the sum over the columns of the means of `terms`, weighted by `counts`.

        Row t contributes Σ_b c_tb (z_tb − m_b)/C_b with C_b = Σ_t c_tb, so the sum varies like a mean of n terms
        that are n times as large. The columns are ages; the youngest rows have not reached all of them.
        """
        totals = counts.sum(axis=0)
        means = (counts * terms).sum(axis=0) / totals
        value = float(means.sum())
        return cls(value, value + len(terms) * (counts * (terms - means) / totals).sum(axis=1))

    def rewards(self) -> float:
        """Return how many rewards carry it: a mean of that many equal terms among zeros is equally skewed."""
        spread = self.terms - self.terms.mean()
        squares, cubes = float(spread @ spread), float(spread**2 @ spread)
        return squares**3 / cubes**2 if cubes else (math.inf if squares else 0.0)


class Weighed(Protocol):
    """What the rule needs to know of a log with importance weights."""

    @property
    def size(self) -> int:
        """Number of units whose rewards are all known; they come first."""

    def means(self, part: slice, counts: Floats) -> Mapping[str, Mean]:
        """Return the estimates from a part of the log, with its units weighted by `counts`."""

    def carrying(self, part: slice, counts: Floats) -> float:
        """Return how many units carry these estimates, by the propensities alone; nan if those are unknown."""

    def precisions(self) -> Floats:
        """Return 1/s of each unit: s² = Σ_a π(a)²/p(a), the variance of its term if rewards had mean square 1."""

    def promised(self, part: slice) -> float:
        """Return how many units of a part would carry the estimates if only the floor took the policy's actions."""

    def too_few(self, part: slice, carrying: float, *, learned: bool) -> str:
        """Return why `carrying` units of a part cannot support an interval; empty if they can."""


def estimates(log: Weighed, *, learned: bool, level: float) -> tuple[Estimate, ...]:
    """Return the estimates, each with an interval or the reason why there is none."""
    every, alike = slice(None), np.ones_like(log.precisions())
    whole, carrying = log.means(every, alike), log.carrying(every, alike)
    if not learned or math.isnan(carrying):
        reason = log.too_few(every, carrying, learned=False)
        return tuple(
            _estimate(name, mean, carrying, level, reason or _few_rewards(mean.rewards()))
            for name, mean in whole.items()
        )
    third = log.size // 3
    first, late, rest = slice(0, third), slice(third // 2, third), slice(third, None)
    longer = (log.size - third) / max(third, 1)
    ahead = log.carrying(late, alike) * 2.0 * longer / MARGIN  # if the rest continues like the end of the first third
    reason = log.too_few(first, max(ahead, log.promised(rest)), learned=True)
    if reason:
        return tuple(_estimate(name, mean, carrying, level, reason) for name, mean in whole.items())
    counts = steady(log.precisions())
    said, told, carrying = log.means(first, counts), log.means(rest, counts), log.carrying(rest, counts)
    found = []
    for name, mean in told.items():
        few = _few_rewards(said[name].rewards() * longer)
        found.append(_estimate(name, whole[name] if few else mean, carrying, level, few))
    return tuple(found)


def steady(precisions: Floats) -> Floats:
    """Return the weight of each unit: the mean of 1/s over the 100 units before it, independent of its own context.

    >>> steady(np.array([0.5, 0.5, 0.1])).tolist()
    [1.0, 0.5, 0.5]
    """
    sums = np.append(0.0, np.cumsum(precisions))
    ends = np.arange(len(precisions))
    begins = np.maximum(ends - UNITS, 0)
    return np.asarray(np.where(ends > 0, (sums[ends] - sums[begins]) / np.maximum(ends - begins, 1), 1.0))


def carried(masses: Floats, weights: Floats) -> float:
    """Return how many units carry an estimate whose terms have these weights, each with probability mass/weight.

    That is (Σ π²/p)³ / (Σ π³/p²)²: a sum of that many equal terms is equally skewed. If all weights are equal, it is
    the expected number of units with a nonzero weight. Terms with the largest weights are left out of the sums as long
    as together they matter less than 0.2 standard errors: an estimate does without them.

    >>> carried(np.full(1000, 1.0), np.full(1000, 10.0))  # one in ten decisions counts for ten
    100.0
    >>> carried(np.full(1001, 1.0), np.append(np.full(1000, 10.0), 1e6))  # the last one practically never occurs
    100.0
    """
    order = np.argsort(weights)
    masses, weights = masses[order], weights[order]
    reached = np.isfinite(weights)
    missed = masses.sum() - np.cumsum(masses)[reached]
    masses, weights = masses[reached], weights[reached]
    squares, cubes = np.cumsum(masses * weights), np.cumsum(masses * weights**2)
    allowed = (missed <= _BLIND * np.sqrt(squares)) & (cubes > 0.0)
    return float(np.max(squares[allowed] ** 3 / cubes[allowed] ** 2, initial=0.0))


def itself(mean: Mean, units: int, name: str, level: float) -> Estimate:
    """Return the mean reward of the log itself, with an interval if it has enough `units`, which are called `name`."""
    few = f"only {units} {name} are usable; an interval needs {UNITS}" if units < UNITS else ""
    return _estimate("logged", mean, units, level, few or _few_rewards(mean.rewards()))


def _few_rewards(rewards: float) -> str:
    if rewards >= REWARDS:
        return ""
    return (
        f"nearly all rewards are equal, so that about {rewards:.1f} of them carry the estimate, and an interval needs "
        f"{REWARDS}: more decisions are needed"
    )


def _estimate(name: str, mean: Mean, carrying: float, level: float, reason: str) -> Estimate:
    """Return an estimate, with an interval unless a `reason` is given.

    Student's t quantile accounts for a variance that is estimated from as many units as carry the estimate.
    """
    if reason:
        return Estimate(name, mean.value, math.nan, math.nan, math.nan, reason)
    n, spread = len(mean.terms), mean.terms - mean.terms.mean()
    error = math.sqrt(float(spread @ spread) / (n - 1) / n)
    reach = error * float(scipy.special.stdtrit(max(carrying - 1.0, 1.0), 0.5 + level / 2))
    return Estimate(name, mean.value, error, mean.value - reach, mean.value + reach)
