"""The rule with diagonal Ω: one weight for each pair of state and action, on all states or those seen so far.

Finite problems and simulators with one-hot features share this code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point, inlined, kernel
from belated._kernels.normals import standard_normal
from belated.agents._auto.rule import (
    Rule,
    largest,
    possible,
    prior_mean,
    residual_width,
    squared_residuals,
    squared_targets,
)
from belated.types import Floats, Ints


class Counts(NamedTuple):
    """The counts of one regression; the pair (s, a) is entry s·A + a, and state S is the terminal one, of value 0."""

    visits: Ints
    """n(s, a), shape (S·A,)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (S·A,)."""
    kinds: Ints
    """Number of distinct next states of (s, a), shape (S·A,)."""
    after: npt.NDArray[np.int32]
    """The next states, shape (S·A, C)."""
    often: npt.NDArray[np.int32]
    """How often each of them occurred, shape (S·A, C)."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (S + 1,)."""
    arrivals: Floats
    """How often s' was reached, shape (S + 1,)."""
    reward_squares: float
    """Σr²."""
    random: Ints
    """1 for each pair with different outcomes, shape (S·A,)."""
    lines: Floats
    """If the rewards of a pair depend on the step: the slope, the mean step, and the explained sum of squares; else 0,
    shape (3, S·A)."""


class SweepScratch(NamedTuple):
    """Scratch space of a plan."""

    gains: Floats
    """V(s') − v₀, shape (S + 1,)."""
    means: Floats
    """ŵ of each pair, shape (S·A,)."""
    spread: Floats
    """The components of each pair's variance, see `fill_spread`, shape (3, S·A)."""
    q: Floats
    """φᵀw of the actions of one state, shape (A,)."""


@kernel
def fill_spread(
    rule: Rule, visits: Floats, random: Ints, actions: int, share: float, rng: np.random.Generator, spread: Floats
) -> None:
    """Set the components of each pair's variance, for one plan.

    The variance of its action value is spread[0]·s² + spread[1], plus spread[2] when an action is chosen. Whether a
    pair with equal outcomes is random is drawn; `share` is p̂.
    """
    ridge = rule.ridge
    for j in range(visits.size):
        n = visits[j]
        known = n + ridge  # Ω
        spread[0, j] = spread[2, j] = 0.0
        spread[1, j] = (rule.prior * ridge / known) ** 2
        if n == 0.0:
            continue
        first, tried = j - j % actions, 0.0
        for k in range(first, first + actions):
            tried += visits[k]
        wider = 1.0 + rule.rarity * max(math.log(tried / (actions * n)), 0.0)  # κ²
        if random[j] == 1:
            spread[0, j] = wider * n * n / (known * known * known)  # (1 − λ/Ω)²/Ω
            spread[1, j] += wider * rule.hidden * rule.hidden * n / (known * known * known)  # D = n·ℓ, ℓ = 1/Ω
            continue
        alike = 2.0 * share / (n + 1.0)  # p̂ times the probability that n random outcomes are equal
        if rng.random() < alike / (alike + 1.0 - share):
            into, width = (1, rule.hidden) if rng.random() < math.sqrt(share) else (2, rule.slab)
            spread[into, j] += wider * width * width * n / (known * known * known)


@inlined
def fit(rule: Rule, counts: Counts, draft: SweepScratch, following: Floats, left: int) -> float:
    """Set ŵ of every pair for the targets r + γV(s') − v₀ with `left` steps to go, and return s."""
    gains, means = draft.gains, draft.means
    v0 = prior_mean(rule, left)
    for s in range(following.size):
        gains[s] = rule.discount * following[s] - v0
    gains[following.size] = -v0
    fitted, random_visits, more = 0.0, 0.0, 0.0
    for j in range(means.size):
        n = counts.visits[j]
        if n == 0:
            means[j] = 0.0
            continue
        moment = counts.reward_sums[j]
        for i in range(counts.kinds[j]):
            moment += counts.often[j, i] * gains[counts.after[j, i]]
        if counts.lines[0, j] != 0.0:  # every reward is shifted along the line to this step
            mean = counts.reward_sums[j] / n
            there = mean + counts.lines[0, j] * (rule.horizon - left - counts.lines[1, j])
            shift = min(max(there, rule.low), rule.high) - mean
            more += (
                shift * (2.0 * moment + n * shift) - counts.lines[2, j]
            )  # Σ(y + shift)² − Σy², less the explained part
            moment += n * shift
        weight = moment / (n + rule.ridge)
        fitted += weight * (moment + rule.ridge * weight)
        means[j] = weight
        random_visits += n * counts.random[j]  # only these have residuals
    squares = squared_targets(counts.reward_squares, counts.next_rewards, counts.arrivals, gains) + more
    return residual_width(rule, squared_residuals(squares, fitted), random_visits)


@kernel
def sweep(
    rule: Rule,
    counts: Counts,
    draft: SweepScratch,
    seen: Ints,
    first: int,
    last: int,
    rng: np.random.Generator,
    values: Floats,
    policy: Ints,
) -> None:
    """Plan the steps from `last - 1` back to `first` into `policy` (H, S), with V in `values` (H + 1, S).

    Only states that have been `seen` are planned for; one normal number is drawn for each of their actions, and one
    more if there is noise of the choice. An unseen state was never a next state, so its value does not matter.
    """
    actions = counts.visits.size // seen.size
    for h in range(last - 1, first - 1, -1):
        left = rule.horizon - h
        v0, low, high = possible(rule, left)
        width = fit(rule, counts, draft, values[h + 1], left)
        for s in range(seen.size):
            if seen[s] == 0:
                values[h, s] = v0
                continue
            best = -np.inf
            for a in range(actions):
                j = s * actions + a
                deviation = math.sqrt(draft.spread[0, j] * width * width + draft.spread[1, j])
                draft.q[a] = draft.means[j] + deviation * standard_normal(rng)
                best = max(best, draft.q[a])
                if draft.spread[2, j] > 0.0:
                    draft.q[a] += math.sqrt(draft.spread[2, j]) * standard_normal(rng)
            policy[h, s] = largest(draft.q, rng)
            values[h, s] = min(max(v0 + best, low), high)


@kernel
def play_unseen(seen: Ints, actions: int, rng: np.random.Generator, policy: Ints) -> None:
    """Set `policy` (H, S) to random actions in unseen states."""
    for h in range(policy.shape[0]):
        for s in range(seen.size):
            if seen[s] == 0:
                policy[h, s] = int(rng.random() * actions)


sweep_table, spread_out = entry_point(sweep), entry_point(fill_spread)
