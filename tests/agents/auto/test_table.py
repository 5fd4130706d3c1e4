"""Plans on a table: the mean by a backward induction in NumPy, the spread by the formula of a pair."""

from __future__ import annotations

import numpy as np
import pytest

from belated.agents._auto.rule import Rule, make_rule
from belated.agents._auto.table import Counts, SweepScratch, fill_spread, play_unseen, sweep
from belated.types import Floats, Ints

STATES, ACTIONS, HORIZON = 3, 2, 4


def rule(**changed: float) -> Rule:
    settings = {"residual": 0.0, "hidden": 0.0, "prior": 0.0, **changed}
    return make_rule(HORIZON, (0.0, 1.0), optimistic=True, ridge=0.5, weighted=True, forgetting=True, **settings)


def made(rng: np.random.Generator) -> tuple[Counts, Ints, Floats]:
    """Return counts of random visits, all of (s, a, s') with the terminal state last, and the rewards of the pairs."""
    often = rng.integers(1, 4, size=(STATES * ACTIONS, STATES + 1))
    rewards = rng.random(STATES * ACTIONS)  # of every visit of a pair
    visits = often.sum(axis=1)
    counts = Counts(
        visits=visits,
        reward_sums=visits * rewards,
        kinds=np.full(STATES * ACTIONS, STATES + 1),
        after=np.tile(np.arange(STATES + 1, dtype=np.int32), (STATES * ACTIONS, 1)),
        often=often.astype(np.int32),
        next_rewards=often.T @ rewards,
        arrivals=often.sum(axis=0).astype(float),
        reward_squares=float(visits @ rewards**2),
        steps=float(visits.sum()),
    )
    return counts, often, rewards


def planned(given: Rule, counts: Counts, seen: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    pairs = STATES * ACTIONS
    draft = SweepScratch(np.zeros(STATES + 1), np.zeros(pairs), np.zeros((2, pairs)), np.zeros(ACTIONS))
    fill_spread(given, counts.visits.astype(float), 0.0, draft.spread)
    values, policy = np.zeros((HORIZON + 1, STATES)), np.full((HORIZON, STATES), -1)
    sweep(given, counts, draft, seen, 0, HORIZON, rng, values, policy)
    return values, policy


def test_without_noise_a_plan_is_backward_induction_on_shrunken_means() -> None:
    rng = np.random.default_rng(0)
    counts, often, rewards = made(rng)
    values, policy = planned(rule(), counts, np.ones(STATES, np.int64), rng)
    wanted = np.zeros(STATES)
    for h in range(HORIZON - 1, -1, -1):
        best = HORIZON - h  # v₀
        y = rewards[:, np.newaxis] + np.append(wanted, 0.0) - best
        q = (best + (often * y).sum(axis=1) / (counts.visits + 0.5)).reshape(STATES, ACTIONS)
        wanted = np.clip(q.max(axis=1), 0.0, best)
        np.testing.assert_allclose(values[h], wanted)
        assert policy[h].tolist() == q.argmax(axis=1).tolist()


def test_what_was_not_seen_is_worth_the_most_and_played_at_random() -> None:
    rng = np.random.default_rng(0)
    values, policy = planned(rule(), made(rng)[0], np.array([1, 0, 1]), rng)
    assert values[:HORIZON, 1].tolist() == [4.0, 3.0, 2.0, 1.0]
    assert (policy[:, 1] == -1).all()
    kept = policy[:, [0, 2]].copy()
    drawn = set()
    for _ in range(40):
        play_unseen(np.array([1, 0, 1]), ACTIONS, rng, policy)
        drawn |= set(policy[:, 1].tolist())
    assert drawn == {0, 1}
    np.testing.assert_array_equal(policy[:, [0, 2]], kept)


@pytest.mark.parametrize("visits", [0, 1, 7])
def test_the_spread_of_a_pair(visits: int) -> None:
    given, spread = rule(prior=0.25), np.zeros((2, 1))
    fill_spread(given, np.array([float(visits)]), 0.3, spread)
    known = visits + 0.5
    assert spread[0, 0] == pytest.approx(visits**2 / known**3)
    assert spread[1, 0] == pytest.approx(0.3**2 * visits / known**3 + (given.prior * 0.5 / known) ** 2)
