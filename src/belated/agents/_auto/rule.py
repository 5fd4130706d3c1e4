"""The rule of `AutoPSVI` in numbers, the same for tables, linear features and environments that can only be sampled.

With the features φ of all that has arrived, Ω = Σφφᵀ + λI and the targets y = r + V(s') − v₀, the action values of a
step are v₀ + φᵀw, where

    w = ŵ + s·(I − λΩ⁻¹)Ω^{-½}z₁ + σ₀·Ω⁻¹D^{½}z₂ + τλ·Ω⁻¹z₃,   ŵ = Ω⁻¹Σφy,   D = Σ(φᵀΩ⁻¹φ)φφᵀ,

with standard normal z₁, z₂ and z₃. What the three terms are for is derived in docs/math/auto-psvi.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from belated._kernels.jit import inlined, kernel
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: A sum of squared residuals below this part of the sum of squares may be rounding alone, and counts as zero.
ROUNDING = 1e-10


class Rule(NamedTuple):
    """What the kernels need of the settings and of the problem."""

    horizon: int
    """H."""
    mean: float
    """v₀ of step h is this times H − h: the largest return that is possible, as long as nothing is known."""
    low: float
    """V of step h is at least this times H − h."""
    high: float
    """V of step h is at most this times H − h."""
    ridge: float
    """λ for features whose largest norm is 1: H⁻³."""
    residual: float
    """s of a step is this times the root mean square of its residuals."""
    hidden: float
    """σ₀ is this times √p̂: a part of the range of one reward."""
    prior: float
    """τ, the standard deviation of an action value of which nothing is known: a part of the range of the return."""
    weighted: bool
    """Whether p̂ is estimated; if not, it is 1."""
    span: float
    """r, by which changes of rewards are judged; 0 if they are not looked for."""


def make_rule(
    horizon: int,
    reward_range: tuple[float, float],
    *,
    optimistic: bool,
    ridge: float | None,
    residual: float,
    hidden: float,
    prior: float,
    weighted: bool,
    forgetting: bool,
) -> Rule:
    """Return the rule for a problem; a terminal state is worth 0, so 0 is among the values that are possible.

    >>> rule = make_rule(
    ...     horizon=10,
    ...     reward_range=(-1.0, 0.0),
    ...     optimistic=True,
    ...     ridge=None,
    ...     residual=0.3,
    ...     hidden=0.3,
    ...     prior=0.1,
    ...     weighted=True,
    ...     forgetting=True,
    ... )
    >>> rule.ridge, rule.prior, rule.high, rule.low
    (0.001, 1.0, 0.0, -1.0)
    """
    least, most = reward_range
    width = most - least
    high = max(most, 0.0)
    return Rule(
        horizon=horizon,
        mean=high if optimistic else 0.0,
        low=min(least, 0.0),
        high=high,
        ridge=float(horizon) ** -3 if ridge is None else ridge,
        residual=residual,
        hidden=hidden * width,
        prior=prior * horizon * width,
        weighted=weighted,
        span=float(width) if forgetting else 0.0,
    )


@kernel
def hidden_width(rule: Rule, outcomes: Ints) -> float:
    """Return σ₀ = c·r·√p̂, where p̂ = (1 + random) / (2 + repeated) tells how likely it is that outcomes differ.

    `outcomes` holds the number of pairs that were visited twice or more, and of those whose outcomes have differed.
    """
    if not rule.weighted:
        return rule.hidden
    return rule.hidden * math.sqrt((1.0 + outcomes[1]) / (2.0 + outcomes[0]))


@inlined
def residual_width(rule: Rule, squares: float, fitted: float, visits: float) -> float:
    """Return s = c·√(Σ(y − φᵀŵ)²/n), where the sum is Σy², `squares`, less `fitted` = ŵᵀΦy + λ|ŵ|²."""
    left = squares - fitted
    if visits == 0.0 or left <= ROUNDING * squares:
        return 0.0
    return rule.residual * math.sqrt(left / visits)


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
def clipped(rule: Rule, gain: float, left: int) -> float:
    """Return V = v₀ + `gain`, within what is possible with `left` steps to go."""
    return min(max(rule.mean * left + gain, rule.low * left), rule.high * left)


@inlined
def largest(q: Floats, rng: np.random.Generator) -> int:
    """Return the action of the largest value, one at random if some are equal.

    The values are those before V is clipped: where the cap makes them equal, the larger draw decides.
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
    """Count in `outcomes` the pairs visited twice or more, and those whose outcomes have differed.

    `visits` are those of a pair with the one that has just arrived, which may have made its outcomes `random`.
    """
    outcomes[0] += visits == 2
    outcomes[1] += random and not was_random
