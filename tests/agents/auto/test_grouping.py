"""The rows of a store as a table of counts, beside a plain loop."""

from __future__ import annotations

from collections import Counter

import numpy as np

from belated.agents._auto.sparse import is_table, make_counts
from belated.agents._transitions import TERMINAL, Rows, Sparse


def states(features: list[list[int]], value: float = 1.0) -> Sparse:
    flat = [number for each in features for number in each]
    starts = np.cumsum([0, *map(len, features)])
    return Sparse(starts, np.array(flat, np.int64), np.full(len(flat), value))


def test_a_table_has_one_feature_a_state_and_it_is_one() -> None:
    assert is_table(states([[0], [2], [1]]))
    assert not is_table(states([[0], [1, 2]]))
    assert not is_table(states([[0], [1]], value=0.5))


def test_counts_are_those_of_a_loop() -> None:
    rng, feature = np.random.default_rng(0), np.array([2, 0, 1])  # of each state of the store, its row of the table
    state, action, after = rng.integers(3, size=12), rng.integers(2, size=12), rng.integers(-1, 3, size=12)
    visits, rewards = rng.integers(1, 5, size=12).astype(float), rng.random(12)
    rows = Rows(state, action, after, visits, visits, rewards, rewards**2, rewards, rewards)
    counts = make_counts(rows, feature, 3, 2)
    followed: dict[int, Counter[int]] = {pair: Counter() for pair in range(6)}
    paid, reached, on_the_way = np.zeros(6), np.zeros(4), np.zeros(4)
    for i in range(12):
        pair = int(feature[state[i]] * 2 + action[i])
        into = 3 if after[i] == TERMINAL else int(feature[after[i]])
        followed[pair][into] += int(visits[i])
        paid[pair] += rewards[i]
        reached[into] += visits[i]
        on_the_way[into] += rewards[i]
    for pair in range(6):
        found: Counter[int] = Counter()
        for i in range(counts.kinds[pair]):
            found[int(counts.after[pair, i])] += int(counts.often[pair, i])
        assert found == followed[pair]
        assert counts.visits[pair] == followed[pair].total()
    np.testing.assert_allclose(counts.reward_sums, paid)
    np.testing.assert_allclose(counts.arrivals, reached)
    np.testing.assert_allclose(counts.next_rewards, on_the_way)
    assert counts.random.tolist() == [len(followed[pair]) > 1 for pair in range(6)]
    paid_twice = make_counts(rows._replace(most=np.where(visits > 2, 1.0, rows.most)), feature, 3, 2)
    for pair in range(6):
        twice = visits[(feature[state] * 2 + action == pair)] > 2
        assert paid_twice.random[pair] == (len(followed[pair]) > 1 or twice.any())
