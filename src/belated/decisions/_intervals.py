"""Whether an estimate from a log has an interval, and which: one rule, for decisions and for sessions.

**A log that does not learn** has one if enough of its units (decisions, sessions) carry the estimate, and enough of its
rewards: below, coverage falls fast.

**In a log that learns** the probabilities follow from the rewards. A policy that the log has come to like carries an
estimate, and it was liked because its rewards happened to be large: an interval that is given for the same rewards
covers too seldom. So the first third of such a log says whether there is one, and the rest says where, and nothing
that the rest shows takes it back. There each unit counts with a weight that was known before it began, 1/s for the
standard deviation s of the terms before it: however the probabilities move, each part of the rest adds as much variance
as any other, which the sum needs to be normal. See docs/math/off-policy.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import scipy.special

from belated.types import Floats

#: So many units must carry an estimate that has an interval, and so many rewards.
UNITS, REWARDS = 100, 20
#: The first third of a log that learns must promise so many times as many: what it learns later may leave the policy.
MARGIN = 2.0
#: What an interval may be blind to, in standard errors: it then covers 94.5 % instead of 95 %.
_BLIND = 0.2


class Estimate(NamedTuple):
    """An estimate of a policy's mean reward."""

    method: str
    value: float
    error: float
    """Standard error; nan if there is no interval, since it would be as wrong."""
    low: float
    high: float
    """Ends of the interval; nan if there is none."""
    reason: str = ""
    """Why there is no interval."""


class Mean(NamedTuple):
    """A mean, or what varies as one: a sum of ratios, say."""

    value: float
    terms: Floats
    """Of a mean, its terms; else those of a mean that varies as it does."""

    @classmethod
    def of(cls, terms: Floats, counts: Floats) -> Mean:
        """Return the sum over the columns of the means of `terms`, in which each row counts so much.

        Row t adds Σ_b c_tb (z_tb − m_b)/C_b to it, C_b = Σ_t c_tb: the sum varies as a mean of n terms that are n times
        as large. The columns are ages, where they are not all known of the youngest rows.
        """
        totals = counts.sum(axis=0)
        means = (counts * terms).sum(axis=0) / totals
        value = float(means.sum())
        return cls(value, value + len(terms) * (counts * (terms - means) / totals).sum(axis=1))

    def rewards(self) -> float:
        """Return how many rewards carry it: a mean of so many equal terms among zeros is as skewed."""
        spread = self.terms - self.terms.mean()
        squares, cubes = float(spread @ spread), float(spread**2 @ spread)
        return squares**3 / cubes**2 if cubes else (math.inf if squares else 0.0)


class Weighed(Protocol):
    """A log whose units have weights: all that the rule needs to know of it."""

    @property
    def size(self) -> int:
        """How many units it has whose rewards are all known; they are its first."""

    def means(self, part: slice, counts: Floats) -> Mapping[str, Mean]:
        """Return the estimates from a part of the log, in which each unit of the log counts so much."""

    def carrying(self, part: slice, counts: Floats) -> float:
        """Return how many units carry these, by the probabilities of the log alone; nan if they are not known."""

    def precisions(self) -> Floats:
        """Return 1/s of each unit: s² = Σ_a π(a)²/p(a), the variance of its term if rewards had mean square 1."""

    def promised(self, part: slice) -> float:
        """Return how many units of a part would carry the estimates if the floor were all that takes the policy."""

    def too_few(self, part: slice, carrying: float, *, learned: bool) -> str:
        """Return why so many units of a part are not enough; nothing if they are."""


def estimates(log: Weighed, *, learned: bool, level: float) -> tuple[Estimate, ...]:
    """Return the estimates, each with an interval or with a reason; `learned` says whether the log did."""
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
    ahead = log.carrying(late, alike) * 2.0 * longer / MARGIN  # if the rest goes on as the log was just before
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
    """Return what each unit counts: the mean of 1/s of the 100 before it, which its own context has no part in.

    >>> steady(np.array([0.5, 0.5, 0.1])).tolist()
    [1.0, 0.5, 0.5]
    """
    sums = np.append(0.0, np.cumsum(precisions))
    ends = np.arange(len(precisions))
    begins = np.maximum(ends - UNITS, 0)
    return np.asarray(np.where(ends > 0, (sums[ends] - sums[begins]) / np.maximum(ends - begins, 1), 1.0))


def carried(masses: Floats, weights: Floats) -> float:
    """Return how many units carry an estimate whose terms have these weights, each with probability mass/weight.

    That is (Σ π²/p)³ / (Σ π³/p²)²: a sum of so many equal terms is as far from normal. If all the weights are equal,
    it is the expected number of units that have one. Terms with the largest weights are left out of the sums as
    long as all of them together matter less than 0.2 standard errors: the log may not have them, and need not.

    >>> carried(np.full(1000, 1.0), np.full(1000, 10.0))  # one in ten decisions counts for ten
    100.0
    >>> carried(np.full(1001, 1.0), np.append(np.full(1000, 10.0), 1e6))  # nobody will ever see the last one
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
    """Return what the log itself earned, with an interval if it has enough `units`, whose `name` this is."""
    few = f"it is of {units} {name} only, and an interval needs {UNITS}" if units < UNITS else ""
    return _estimate("logged", mean, units, level, few or _few_rewards(mean.rewards()))


def _few_rewards(rewards: float) -> str:
    if rewards >= REWARDS:
        return ""
    return (
        f"so few rewards differ from the rest that about {rewards:.1f} of them carry the estimate, and an interval "
        f"needs {REWARDS}: it takes more decisions"
    )


def _estimate(name: str, mean: Mean, carrying: float, level: float, reason: str) -> Estimate:
    """Return an estimate, with an interval if there is no reason against one.

    Student's quantile makes up for a variance that is known from as many units as carry the estimate.
    """
    if reason:
        return Estimate(name, mean.value, math.nan, math.nan, math.nan, reason)
    n, spread = len(mean.terms), mean.terms - mean.terms.mean()
    error = math.sqrt(float(spread @ spread) / (n - 1) / n)
    reach = error * float(scipy.special.stdtrit(max(carrying - 1.0, 1.0), 0.5 + level / 2))
    return Estimate(name, mean.value, error, mean.value - reach, mean.value + reach)
