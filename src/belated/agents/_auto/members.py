"""The sweep of `blocks` for several plans of the same regression at once.

Plans that are drawn together differ only in their noise. So the transitions are read once for all of them, and one
matrix product replaces a matrix-vector product for each: the members are the last axis.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.jit import entry_point, kernel
from belated.agents._auto.blocks import Factors
from belated.agents._auto.rule import Rule, hidden_width, possible, prior_mean, residual_width, squared_residuals
from belated.agents._blocks import Data
from belated.agents._transitions import Sparse
from belated.types import Floats

#: Number of members planned together: one cache line of doubles.
LANES = 8


@kernel
def largest_values(states: Sparse, first: int, last: int, weights: Floats, value: Floats, best: Floats) -> None:
    """Set `best` to max_a ψᵀw_a of each member, for the state with the rows `first` to `last - 1` of `states`."""
    best[:] = -np.inf
    for row in range(first, last):
        for b in range(weights.shape[0]):
            value[:] = 0.0
            for i in range(states.starts[row], states.starts[row + 1]):
                w, x = weights[b, states.indices[i]], states.values[i]
                for j in range(LANES):
                    value[j] += x * w[j]
            for j in range(LANES):
                best[j] = max(best[j], value[j])


@entry_point
def sweep_together(
    rule: Rule,
    data: Data,
    leads_to: Sparse,
    factors: Factors,
    share: float,
    first: int,
    last: int,
    untried: Floats,
    weights: Floats,
) -> None:
    """Plan the steps from `last - 1` back to `first` as `sweep` does, into `weights` of shape (H, A, k, LANES).

    `leads_to` is the transpose of `next_moment`: one row for each s', the terminal state last. The noise of the factors
    and `untried` have a leading axis of members.
    """
    actions, states, ends = weights.shape[1], data.following, data.arrivals.size - 1
    per_state = (states.starts.size - 1) // ends if ends > 0 else 1  # A with joint features
    moment, mean = np.empty((data.active.size, LANES)), np.empty((data.active.size, LANES))
    value, gain, squares, fitted = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for h in range(last - 1, first - 1, -1):
        left, at = rule.horizon - h, h - first
        before = prior_mean(rule, left)
        v0, low, high = possible(rule, left - 1)
        for i in range(moment.shape[0]):
            moment[i] = data.reward_moment[i]
        squares[:] = data.reward_squares
        for s in range(ends + 1):
            gain[:] = -before
            if s < ends and left > 1:  # a terminal state has value 0
                largest_values(states, s * per_state, (s + 1) * per_state, weights[h + 1], value, gain)
                for j in range(LANES):
                    gain[j] = rule.discount * min(max(v0 + gain[j], low), high) - before
            for i in range(leads_to.starts[s], leads_to.starts[s + 1]):
                into, often = moment[leads_to.indices[i]], leads_to.values[i]
                for j in range(LANES):
                    into[j] += often * gain[j]
            for j in range(LANES):  # Σy² = Σr² + 2Σr·g(s') + Σg(s')²
                squares[j] += gain[j] * (2.0 * data.next_rewards[s] + data.arrivals[s] * gain[j])
        done = 0
        for a in range(actions):
            begin, end = data.starts[a], data.starts[a + 1]
            k = end - begin
            mean[begin:end] = np.dot(factors.inverse[done : done + k * k].reshape(k, k), moment[begin:end])
            done += k * k
        fitted[:] = 0.0
        for i in range(mean.shape[0]):
            for j in range(LANES):
                fitted[j] += mean[i, j] * (moment[i, j] + factors.ridge * mean[i, j])
        for j in range(LANES):
            residuals = squared_residuals(squares[j], fitted[j])
            width = residual_width(rule, residuals, data.steps)
            hidden = hidden_width(rule, share, residuals, factors.freedom)
            weights[h, :, :, j] = untried[j, at]
            for a in range(actions):
                for i in range(data.starts[a], data.starts[a + 1]):
                    noise = width * factors.residual_noise[j, at, i] + hidden * factors.hidden_noise[j, at, i]
                    weights[h, a, data.active[i], j] = mean[i, j] + noise + factors.prior_noise[j, at, i]
