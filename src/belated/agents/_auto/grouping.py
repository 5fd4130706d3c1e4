"""The rows of a store as the counts of a table, where every state has one feature of its own."""

from __future__ import annotations

import numpy as np

from belated.agents._auto.table import Counts
from belated.agents._transitions import TERMINAL, Rows, Sparse, sums
from belated.types import Ints


def is_table(states: Sparse) -> bool:
    """Tell whether every state has a single feature, and that is 1."""
    return bool((np.diff(states.starts) == 1).all() and (states.values == 1.0).all())


def make_counts(rows: Rows, feature: Ints, states: int, actions: int) -> Counts:
    """Return the counts of a table of so many `states`, where `feature` is the row of the table for each state."""
    pair = feature[rows.state] * actions + rows.action
    after = np.where(rows.after == TERMINAL, states, feature[rows.after])
    order = np.lexsort((after, pair))
    pair, after = pair[order], after[order]
    rewards, visits = rows.rewards[order], rows.visits[order]
    kinds = np.bincount(pair, minlength=states * actions)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(kinds) - kinds, kinds)
    shape = (states * actions, max(int(kinds.max(initial=0)), 1))
    followed, often = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    followed[pair, place], often[pair, place] = after, visits
    return Counts(
        visits=sums(pair, visits, states * actions).astype(np.int64),
        reward_sums=sums(pair, rewards, states * actions),
        kinds=kinds.astype(np.int64),
        after=followed,
        often=often,
        next_rewards=sums(after, rewards, states + 1),
        arrivals=sums(after, visits, states + 1),
        reward_squares=float(rows.squares.sum()),
        steps=float(visits.sum()),
    )
