"""Steps of backward induction over a table of state features: arrays in, arrays out.

The planner never sees an MDP. It sees features and, for each step h, sufficient statistics: the reward moment
Σφr/σ² and the next-state moment C[s'] = Σφ·1(next state is s')/σ². With them Φy/σ² = Σφr/σ² + Σ_{s'} C[s']·V(s') for
any V, so that the cost of planning does not depend on how many episodes have passed.
"""

from __future__ import annotations

import numpy as np

from belated.compiled import kernel
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Two action values closer than this, relative to their size, are a tie: rounding must not decide.
TIE = 1e-12

#: How a tie is broken.
TIES = ("random", "first")


@kernel
def target_moment(reward_moment: Floats, next_moment: Floats, next_values: Floats, moment: Floats) -> None:
    """Set `moment` to Φy/σ² for the targets y = r + V(s')."""
    for i in range(moment.size):
        moment[i] = reward_moment[i]
    for s in range(next_values.size):
        value = next_values[s]
        if value == 0.0:  # all of them after the last step
            continue
        row = next_moment[s]
        for i in range(moment.size):
            moment[i] += value * row[i]


@kernel
def linear_values(columns: Floats, weights: Floats, first: int, q: Floats) -> None:
    """Set q(s, a) = φ(s, a)ᵀw for as many pairs as q holds, from number `first` on.

    `columns` is the feature table transposed, (d, S·A).
    """
    q[:] = 0.0
    for i in range(weights.size):
        weight = weights[i]
        row = columns[i, first : first + q.size]
        for j in range(q.size):
            q[j] += weight * row[j]


@kernel
def raise_to(q: Floats, other: Floats) -> None:
    """Set q to the larger of q and `other`, entry by entry."""
    for j in range(q.size):
        q[j] = max(q[j], other[j])


@kernel
def greedy(q: Floats, cap: float, first: bool, rng: np.random.Generator, values: Floats, policy: Ints) -> None:
    """Set V(s) = max_a min{Q(s, a), cap} and a maximising action: of a tie the `first`, or one at random.

    At random, one uniform number is drawn for each state that has a tie, none elsewhere.
    """
    states = values.size
    actions = q.size // states
    for s in range(states):
        row = q[s * actions : (s + 1) * actions]
        best = row[0]
        for a in range(1, actions):
            best = max(best, row[a])
        best = min(best, cap)
        least = best - TIE * max(1.0, abs(best))
        ties = 0
        for a in range(actions):
            if row[a] >= least:
                ties += 1
        if ties == 0:
            raise InvalidInputError("action values are not numbers: rewards or settings are too large for floats")
        pick = 0 if first or ties == 1 else int(rng.random() * ties)
        for a in range(actions):
            if row[a] >= least:
                if pick == 0:
                    policy[s] = a
                    break
                pick -= 1
        values[s] = best
