"""The constants of `AutoPSVI`, the same for tables, linear features and simulators.

With the features φ of all that has arrived, Ω = Σφφᵀ + λI and the targets y = r + V(s') − v₀, the action values of a
step are v₀ + φᵀw, where

    w = ŵ + s·(I − λΩ⁻¹)Ω^{-½}z₁ + σ₀·Ω⁻¹D^{½}z₂ + τλ·Ω⁻¹z₃,   ŵ = Ω⁻¹Σφy,   D = Σ(φᵀΩ⁻¹φ)φφᵀ,

with standard normal z₁, z₂ and z₃. In a table, where Ω is diagonal, more is known about each pair, and the widths s and
σ₀ depend on it. docs/math/auto-psvi.md derives the terms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from belated._kernels.jit import inlined, kernel
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: A residual sum of squares below this fraction of the sum of squares may be rounding error, and counts as zero.
ROUNDING = 1e-10


class Returns(NamedTuple):
    """Statistics of the returns seen so far, including 0: from any step to the end of what has arrived of an episode.

    The means are per step, over whole episodes.
    """

    worst: float = 0.0
    best: float = 0.0
    worst_mean: float = 0.0
    best_mean: float = 0.0


class Rule(NamedTuple):
    """The constants for the kernels, from the settings and the problem."""

    horizon: int
    """H."""
    discount: float
    """γ, the problem's discount times 1 − H⁻²."""
    mean: float
    """v₀ of step h is this times Σγⁱ over the remaining steps: the maximum possible return."""
    goal: float
    """The largest return seen, used instead if it is larger and possible, when the range of rewards is unknown."""
    low: float
    """V of step h is at least this times Σγⁱ."""
    high: float
    """V of step h is at most this times Σγⁱ."""
    ridge: float
    """λ for features with maximum norm 1: H⁻³."""
    residual: float
    """s of a step is this times the root mean square of its residuals."""
    hidden: float
    """σ₀, relative to the range of one reward; times √p̂ on regressions."""
    slab: float
    """The width of the choice for a pair whose outcomes were all equal but which a plan treats as random."""
    rarity: float
    """ρ: in a table, the variance of an action tried x times less often than the others is larger by 1 + ρ·log x."""
    capped: bool
    """Whether σ₀ is capped by the residuals, on regressions."""
    prior: float
    """τ, the standard deviation of an unknown action value, relative to the range of the return."""
    weighted: bool
    """Whether p̂ is estimated; if not, it is 1."""
    forgetting: bool
    """Whether to test for changing rewards."""
    timed: bool
    """Whether to test for rewards that depend on the step, in a table whose steps share a regression."""
    span: float
    """r, the range of one reward."""


def make_rule(
    horizon: int,
    reward_range: tuple[float, float],
    *,
    returns: Returns | None = None,
    discount: float = 1.0,
    hurried: bool = True,
    optimistic: bool = True,
    ridge: float | None = None,
    residual: float = 0.3,
    hidden: float = 0.3,
    slab: float = 1.0,
    rarity: float = 1.0,
    capped: bool = True,
    prior: float = 0.1,
    weighted: bool = True,
    forgetting: bool = True,
    timed: bool = True,
) -> Rule:
    """Return the rule for a problem; a terminal state has value 0, so 0 is always a possible value.

    `returns` are those seen so far, if the range of rewards is learned.

    >>> rule = make_rule(horizon=10, reward_range=(-1.0, 0.0))
    >>> rule.ridge, rule.discount, rule.high, rule.low
    (0.001, 0.99, 0.0, -1.0)
    """
    least, most = reward_range
    low, high, width = min(least, 0.0), max(most, 0.0), most - least
    mean, goal, spread = high, 0.0, horizon * width
    if returns is not None:
        mean, goal = min(returns.best_mean, high), returns.best
        # the best and worst returns considered possible
        best = min(max(goal, mean * horizon), high * horizon)
        worst = max(min(returns.worst, returns.worst_mean * horizon), low * horizon)
        spread = best - worst or width
    return Rule(
        horizon=horizon,
        discount=discount * (1.0 - float(horizon) ** -2 if hurried and horizon > 1 else 1.0),
        mean=mean if optimistic else 0.0,
        goal=goal if optimistic else 0.0,
        low=low,
        high=high,
        ridge=float(horizon) ** -3 if ridge is None else ridge,
        residual=residual,
        hidden=hidden * width,
        slab=slab * width,
        rarity=rarity,
        capped=capped,
        prior=prior * spread,
        weighted=weighted,
        forgetting=forgetting,
        timed=timed,
        span=float(width),
    )


@inlined
def duration(rule: Rule, left: int) -> float:
    """Return Σγⁱ over the `left` steps to go."""
    return float(left) if rule.discount == 1.0 else (1.0 - rule.discount**left) / (1.0 - rule.discount)


@inlined
def prior_mean(rule: Rule, left: int) -> float:
    """Return v₀ with `left` steps to go."""
    steps = duration(rule, left)
    return max(rule.mean * steps, min(rule.goal, rule.high * steps))


@kernel
def random_share(rule: Rule, outcomes: Ints, sure: int) -> float:
    """Return p̂ = (½ + random) / (1 + repeated), the estimated probability that a pair has random outcomes.

    `outcomes` has the number of pairs visited at least twice, and of those with different outcomes. Of the latter,
    `sure` have rewards that lie on a line over the step.
    """
    return (0.5 + outcomes[1] - sure) / (1.0 + outcomes[0]) if rule.weighted else 1.0


@inlined
def squared_residuals(squares: float, fitted: float) -> float:
    """Return Σ(y − φᵀŵ)² as Σy², `squares`, less `fitted` = ŵᵀΦy + λ|ŵ|²."""
    left = squares - fitted
    return left if left > ROUNDING * squares else 0.0


@inlined
def residual_width(rule: Rule, residuals: float, visits: float) -> float:
    """Return s = c·√(Σ(y − φᵀŵ)²/n)."""
    return rule.residual * math.sqrt(residuals / visits) if visits > 0.0 else 0.0


@inlined
def hidden_width(rule: Rule, share: float, residuals: float, freedom: float) -> float:
    """Return σ₀ of a regression, c·r·√p̂, capped at c·√((Σ(y − φᵀŵ)² + 2r²) / (Σ(1 − ℓ) + 2)).

    `freedom` is Σ(1 − ℓ) over all visits, the residual degrees of freedom.
    """
    width = rule.hidden * math.sqrt(share)
    if rule.capped and rule.span > 0.0:
        seen = (residuals / (rule.span * rule.span) + 2.0) / (max(freedom, 0.0) + 2.0)
        width = min(width, rule.hidden * math.sqrt(seen))
    return width


@inlined
def squared_targets(reward_squares: float, next_rewards: Floats, arrivals: Floats, gains: Floats) -> float:
    """Return Σy² = Σr² + 2Σr·g(s') + Σg(s')² for the targets y = r + g(s').

    `next_rewards` are the sums of rewards on the way to each s', `arrivals` how often it was reached.
    """
    total = reward_squares
    for s in range(gains.size):
        total += gains[s] * (2.0 * next_rewards[s] + arrivals[s] * gains[s])
    return total


@inlined
def possible(rule: Rule, left: int) -> tuple[float, float, float]:
    """Return v₀, and the minimum and maximum possible V with `left` steps to go."""
    steps = duration(rule, left)
    return prior_mean(rule, left), rule.low * steps, rule.high * steps


def clipped_all(rule: Rule, gains: Floats, left: int) -> Floats:
    """Return the clipped values of many states."""
    steps = duration(rule, left)
    return np.clip(prior_mean(rule, left) + gains, rule.low * steps, rule.high * steps)


@inlined
def largest(q: Floats, rng: np.random.Generator) -> int:
    """Return the action with the largest value; ties are broken at random.

    The values are not clipped: if the cap would make them equal, the larger draw decides.
    """
    best = q[0]
    for a in range(1, q.size):
        best = max(best, q[a])
    choice, ties = -1, 0
    for a in range(q.size):
        if q[a] == best:
            ties += 1
            if ties == 1 or rng.random() * ties < 1.0:
                choice = a
    if choice < 0:
        raise InvalidInputError("action values are not numbers: rewards are too large for floats")
    return choice


@inlined
def note_outcome(visits: int, was_random: bool, random: bool, outcomes: Ints) -> None:
    """Count in `outcomes` the pairs visited at least twice, and those with different outcomes.

    `visits` includes the visit that has just arrived, which may have made the pair's outcomes `random`.
    """
    outcomes[0] += visits == 2
    outcomes[1] += random and not was_random
