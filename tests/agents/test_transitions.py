"""The store counts every transition once, in any order, and thins itself out to a uniform sample."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from belated.agents._transitions import SLACK, STATES, TERMINAL, Rows, Store, with_rewards_in_flight
from belated.errors import InvalidInputError
from belated.types import SparseVector

Visit = tuple[int, int, int, int, float]


def encoded(number: int) -> SparseVector:
    """Return features that differ by `number` in both parts."""
    return SparseVector(np.arange(1 + number % 3), np.full(1 + number % 3, 1.0 + number))


def visits(count: int, seed: int = 0, states: int = 6) -> list[Visit]:
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(2)), int(s), int(rng.integers(2)), int(rng.integers(-1, states)), float(rng.integers(3)))
        for s in rng.integers(states, size=count)
    ]


def filled(arrived: list[Visit], limit: int = 10**6) -> Store:
    store = Store(limit)
    for slot, state, action, after, reward in arrived:
        number = TERMINAL if after == TERMINAL else store.state(encoded(after))
        store.add(slot, store.state(encoded(state)), action, number, reward)
    store.thin_out()
    return store


def contents(store: Store) -> dict[Any, tuple[float, ...]]:
    """Return what is known of each transition, by the features themselves."""
    states, found = store.states(), {}

    def name(number: int) -> Any:
        entries = slice(states.starts[number], states.starts[number + 1])
        return "end" if number == TERMINAL else (*states.indices[entries], *states.values[entries])

    for slot in (0, 1):
        for state, action, after, *known in zip(*store.rows(slot), strict=True):
            found[slot, name(state), action, name(after)] = tuple(known)
    return found


def test_equal_transitions_share_a_row() -> None:
    arrived = visits(300)
    store = filled(arrived)
    counted = Counter((slot, s, a, after) for slot, s, a, after, _ in arrived)
    assert len(store) == len(counted) < 300
    assert store.steps == 300
    rows = store.rows()
    assert sorted(rows.visits.tolist()) == sorted(counted.values())
    assert rows.rewards.sum() == sum(reward for *_, reward in arrived)
    assert rows.squares.sum() == sum(reward**2 for *_, reward in arrived)
    assert set(Rows._fields) == set(store.rows(1)._fields)


def test_the_order_does_not_matter() -> None:
    arrived = visits(400)
    shuffled = [arrived[i] for i in np.random.default_rng(1).permutation(400)]
    for limit in (10**6, 30):
        assert contents(filled(arrived, limit)) == contents(filled(shuffled, limit))


def test_rewards_may_come_after_their_steps() -> None:
    arrived = visits(400)
    for limit in (10**6, 30):
        store, order = filled([], limit), np.random.default_rng(1).permutation(400)
        for batch in np.array_split(order, 10):
            for slot, state, action, after, _ in [arrived[i] for i in batch]:
                number = TERMINAL if after == TERMINAL else store.state(encoded(after))
                store.visit(slot, store.state(encoded(state)), action, number)
        for slot, state, action, after, reward in arrived:
            number = TERMINAL if after == TERMINAL else store.state(encoded(after))
            store.pay(slot, store.state(encoded(state)), action, number, reward)
        store.thin_out()
        whole = contents(filled(arrived, limit))
        assert whole == contents(store)
        assert all(known[0] == known[1] for known in whole.values())


def test_a_reward_in_flight_counts_as_what_its_row_has_paid_or_as_the_largest() -> None:
    store = Store(10)
    paid: dict[int, list[float]] = {1: [], 2: [0.25, 0.75], 3: [-1.0, 0.0, 0.5]}
    for after, rewards in paid.items():
        for number in range(3):
            store.visit(0, 0, 0, after)
            if number < len(rewards):
                store.pay(0, 0, 0, after, rewards[number])
    rows = with_rewards_in_flight(store.rows(), 0.5)
    wanted = [sum(rewards) + (3 - len(rewards)) * np.mean(rewards or [0.5]) for rewards in paid.values()]
    np.testing.assert_allclose(rows.rewards, wanted)
    squares = [3 * np.mean(np.square(rewards or [0.5])) for rewards in paid.values()]
    np.testing.assert_allclose(rows.squares, squares)
    assert rows.visits.tolist() == [3, 3, 3]


def test_random_pairs_are_counted() -> None:
    store = filled(
        [
            (0, 0, 0, 1, 0.5),  # once
            (0, 1, 0, 2, 0.5),  # twice the same
            (0, 1, 0, 2, 0.5),
            (0, 2, 0, 1, 0.5),  # two rewards
            (0, 2, 0, 1, 0.0),
            (0, 2, 1, 1, 0.5),  # two next states
            (0, 2, 1, TERMINAL, 0.5),
            (1, 0, 0, 2, 0.5),  # of another step
        ]
    )
    assert store.outcomes().tolist() == [3, 2]
    assert Store(5).outcomes().tolist() == [0, 0]


def test_a_full_store_keeps_a_uniform_sample_with_all_visits() -> None:
    limit, kept = 20, Counter[Any]()
    for seed in range(60):
        arrived = visits(3000, seed=seed, states=200 + seed)
        everything, thinned = contents(filled(arrived)), Store(limit)
        for k in range(0, 3000, 50):  # batch by batch
            for slot, state, action, after, reward in arrived[k : k + 50]:
                number = TERMINAL if after == TERMINAL else thinned.state(encoded(after))
                thinned.add(slot, thinned.state(encoded(state)), action, number, reward)
            thinned.thin_out()
            assert len(thinned) <= SLACK * limit
        found = contents(thinned)
        assert limit <= len(found) <= SLACK * limit
        assert all(everything[key] == known for key, known in found.items())
        assert thinned.steps == sum(known[0] for known in found.values())
        assert len(thinned.states().starts) - 1 <= STATES * limit
        kept.update((key[0], key[2]) for key in found)
    shares = np.array(list(kept.values())) / sum(kept.values())
    assert len(shares) == 4
    np.testing.assert_allclose(shares, 0.25, atol=0.05)


def test_a_thinned_store_takes_exactly_what_ranks_before_the_last_that_was_kept() -> None:
    store = filled(visits(3000, states=200), 20)
    store.thin_out()
    ranks = sorted(store._hash(*key) for key in store._places)
    assert len(ranks) == 20 and ranks[-1] == store._bound - 1
    slots, states = store._rows["slot"], store._rows["state"]
    before = len(store)
    for name in range(300, 600):  # states that were never seen
        store.visit(int(slots[0]), int(states[0]), 0, store.state(encoded(name)))
    kept = {key for key in store._places if store._hash(*key) < ranks[-1] + 1}
    assert kept == set(store._places) and len(store) > before


def test_memory_survives_a_round_trip() -> None:
    for limit in (10**6, 15):
        store = filled(visits(200), limit)
        copy = Store(limit)
        copy.restore(store.memory(), 3, 2, 2)
        for name, values in store.memory().items():
            np.testing.assert_array_equal(copy.memory()[name], values, err_msg=name)
        for each in (store, copy):
            each.add(0, each.state(encoded(4)), 1, each.state(encoded(77)), 1.0)
            each.thin_out()
        assert contents(copy) == contents(store)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows.state", lambda values: values + 100),
        ("rows.action", lambda values: values + 2),
        ("rows.slot", lambda values: values - 1),
        ("rows.after", lambda values: values - 1),
        ("rows.visits", lambda values: values[:-1]),
        ("states.indices", lambda values: values + 3),
        ("states.starts", lambda values: values + 1),
        ("bound", lambda values: values[:0]),
    ],
)
def test_memory_that_does_not_fit_is_refused(name: str, change: Any) -> None:
    memory = filled(visits(50)).memory()
    with pytest.raises(InvalidInputError, match="consistent"):
        Store(10).restore({**memory, name: change(memory[name])}, 3, 2, 2)
