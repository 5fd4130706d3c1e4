"""The rule where Ω is diagonal: one weight for each pair of a state and an action, on all states or those seen so far.

Finite problems with one-hot features and sampled ones with a feature for each state share this code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point, inlined, kernel
from belated._kernels.normals import standard_normal
from belated.agents._auto.rule import Rule, clipped, largest, residual_width, squared_targets
from belated.types import Floats, Ints


class Counts(NamedTuple):
    """What one regression knows; the pair (s, a) is entry s·A + a, and state S is the terminal one, worth nothing."""

    visits: Ints
    """n(s, a), shape (S·A,)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (S·A,)."""
    kinds: Ints
    """How many different states have followed (s, a), shape (S·A,)."""
    after: npt.NDArray[np.int32]
    """Which they are, shape (S·A, C)."""
    often: npt.NDArray[np.int32]
    """How often each has followed, shape (S·A, C)."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (S + 1,)."""
    arrivals: Floats
    """How often s' was reached, shape (S + 1,)."""
    reward_squares: float
    """Σr²."""
    steps: float
    """How many steps have arrived."""


class SweepScratch(NamedTuple):
    """Scratch space of a plan."""

    gains: Floats
    """V(s') − v₀, shape (S + 1,)."""
    means: Floats
    """ŵ of each pair, shape (S·A,)."""
    spread: Floats
    """By what s² and 1 are multiplied in the variance of each pair, shape (2, S·A)."""
    q: Floats
    """φᵀw of the actions of one state, shape (A,)."""


@kernel
def fill_spread(rule: Rule, visits: Floats, hidden: float, spread: Floats) -> None:
    """Set what the variance of each pair is made of: that of φᵀw is spread[0]·s² + spread[1]."""
    ridge = rule.ridge
    for j in range(visits.size):
        n = visits[j]
        known = n + ridge  # Ω
        spread[0, j] = n * n / (known * known * known)  # (1 − λ/Ω)²/Ω
        # D = n·h with the leverage h = 1/Ω
        spread[1, j] = (hidden * hidden * n / known + (rule.prior * ridge) ** 2) / (known * known)


@inlined
def fit(rule: Rule, counts: Counts, draft: SweepScratch, following: Floats, left: int) -> float:
    """Set ŵ of every pair for the targets r + V(s') − v₀ with `left` steps to go, and return s."""
    gains, means = draft.gains, draft.means
    prior_mean = rule.mean * left
    for s in range(following.size):
        gains[s] = following[s] - prior_mean
    gains[following.size] = -prior_mean
    fitted = 0.0
    for j in range(means.size):
        n = counts.visits[j]
        if n == 0:
            means[j] = 0.0
            continue
        moment = counts.reward_sums[j]
        for i in range(counts.kinds[j]):
            moment += counts.often[j, i] * gains[counts.after[j, i]]
        weight = moment / (n + rule.ridge)
        fitted += weight * (moment + rule.ridge * weight)
        means[j] = weight
    squares = squared_targets(counts.reward_squares, counts.next_rewards, counts.arrivals, gains)
    return residual_width(rule, squares, fitted, counts.steps)


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

    Only the states that have been `seen` are planned for; one normal number is drawn for each of their actions. What
    was never seen has followed nothing, so its value does not matter.
    """
    actions = counts.visits.size // seen.size
    for h in range(last - 1, first - 1, -1):
        left = rule.horizon - h
        width = fit(rule, counts, draft, values[h + 1], left)
        for s in range(seen.size):
            if seen[s] == 0:
                values[h, s] = rule.mean * left
                continue
            for a in range(actions):
                j = s * actions + a
                deviation = math.sqrt(draft.spread[0, j] * width * width + draft.spread[1, j])
                draft.q[a] = draft.means[j] + deviation * standard_normal(rng)
            choice = largest(draft.q, rng)
            values[h, s] = clipped(rule, draft.q[choice], left)
            policy[h, s] = choice


@kernel
def play_unseen(seen: Ints, actions: int, rng: np.random.Generator, policy: Ints) -> None:
    """Let `policy` (H, S) take a random action wherever nothing has been seen."""
    for h in range(policy.shape[0]):
        for s in range(seen.size):
            if seen[s] == 0:
                policy[h, s] = int(rng.random() * actions)


sweep_table, spread_out = entry_point(sweep), entry_point(fill_spread)
