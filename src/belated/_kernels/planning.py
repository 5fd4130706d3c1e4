"""Steps of backward induction over a table of state features.

The planner never sees an MDP. It sees features and, for each step h, sufficient statistics: the reward moment
Σφr/σ² and the next-state moment C[s'] = Σφ·1(next state is s')/σ². With them Φy/σ² = Σφr/σ² + Σ_{s'} C[s']·V(s') for
any V, so the cost of planning does not depend on the number of episodes.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.jit import fast_sums, kernel
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Relative tolerance for ties between action values, so that rounding does not decide.
TIE = 1e-12

#: The maximum magnitude of a state value in a simulator. With it and numbers of at most `LARGEST_NUMBER`, moments,
#: weights and action values of any number of steps stay finite: N·d²·F³·V < 1e200.
LARGEST_VALUE = 1e60

#: How a tie is broken.
TIES = ("random", "first")


@kernel
def target_moment(
    reward_moment: Floats, next_moment: Floats, next_values: Floats, discount: float, moment: Floats
) -> None:
    """Set `moment` to Φy/σ² for the targets y = r + γV(s')."""
    for i in range(moment.size):
        moment[i] = reward_moment[i]
    for s in range(next_values.size):
        value = discount * next_values[s]
        if value == 0.0:  # all of them after the last step
            continue
        row = next_moment[s]
        for i in range(moment.size):
            moment[i] += value * row[i]


@kernel
def entry(weights: Floats, i: int) -> float:
    """Return wᵢ, which is zero beyond the last."""
    return float(weights[i]) if i < weights.size else 0.0


@kernel
def raise_to(q: Floats, other: Floats) -> None:
    """Set q to the elementwise maximum of q and `other`."""
    for j in range(q.size):
        q[j] = np.maximum(q[j], other[j])  # stores every entry; `max` would compile to a masked store, which is slow


@fast_sums
def linear_values(columns: Floats, w: Floats, first: int | np.int64, q: Floats) -> None:
    """Set q(s, a) = φ(s, a)ᵀw for as many pairs as q has entries, from `first` on.

    `columns` is the feature table transposed, (d, S·A). Five of its rows share one pass over q.
    Pass `first` as an `np.int64`: a literal 0 would be compiled separately.
    """
    last, end = first + q.size, w.size - 1
    for i in range(0, w.size, 5):
        a, b, c = columns[i, first:last], columns[min(i + 1, end), first:last], columns[min(i + 2, end), first:last]
        d, e = columns[min(i + 3, end), first:last], columns[min(i + 4, end), first:last]
        wa, wb, wc, wd, we = w[i], entry(w, i + 1), entry(w, i + 2), entry(w, i + 3), entry(w, i + 4)
        if i == 0:
            for j in range(q.size):
                q[j] = wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j] + we * e[j]
        else:
            for j in range(q.size):
                q[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j] + we * e[j]


@fast_sums
def larger_values(columns: Floats, w: Floats, v: Floats, first: int | np.int64, q: Floats, other: Floats) -> None:
    """Set q(s, a) to the larger of φ(s, a)ᵀw and φ(s, a)ᵀv in one pass over the table; `other` is work space."""
    last, end = first + q.size, w.size - 1
    for i in range(0, w.size, 5):
        a, b, c = columns[i, first:last], columns[min(i + 1, end), first:last], columns[min(i + 2, end), first:last]
        d, e = columns[min(i + 3, end), first:last], columns[min(i + 4, end), first:last]
        wa, wb, wc, wd, we = w[i], entry(w, i + 1), entry(w, i + 2), entry(w, i + 3), entry(w, i + 4)
        va, vb, vc, vd, ve = v[i], entry(v, i + 1), entry(v, i + 2), entry(v, i + 3), entry(v, i + 4)
        if i == 0:
            for j in range(q.size):
                q[j] = wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j] + we * e[j]
                other[j] = va * a[j] + vb * b[j] + vc * c[j] + vd * d[j] + ve * e[j]
        elif i + 5 <= end:
            for j in range(q.size):
                q[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j] + we * e[j]
                other[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j] + ve * e[j]
        else:
            for j in range(q.size):
                value = q[j] + wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j] + we * e[j]
                q[j] = max(value, other[j] + va * a[j] + vb * b[j] + vc * c[j] + vd * d[j] + ve * e[j])
    if w.size <= 5:
        raise_to(q, other)


@kernel
def greedy(
    q: Floats, cap: float, first: bool | np.bool, rng: np.random.Generator, values: Floats, policy: Ints
) -> None:
    """Set V(s) = max_a min{Q(s, a), cap} and a maximising action; ties are broken by the `first`, or at random.

    One uniform number is drawn for each state with a random tie.
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
        ties, choice = 0, 0
        for a in range(actions):
            if row[a] >= least:
                ties += 1
                choice += a  # branch-free: without a tie the sum is the action
        if ties == 0:
            raise InvalidInputError("action values are not numbers: rewards or settings are too large for floats")
        if ties > 1:
            choice = tied(row, least, 0 if first else int(rng.random() * ties))
        policy[s] = choice
        values[s] = best


@kernel
def tied(row: Floats, least: float, number: int) -> int:
    """Return the `number`-th of the actions whose value is at least `least`."""
    for a in range(row.size):
        if row[a] >= least:
            if number == 0:
                return a
            number -= 1
    return -1
