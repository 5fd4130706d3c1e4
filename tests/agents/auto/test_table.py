"""Plans on a table: the mean by a backward induction in NumPy, the spread by the formula of a pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.agents._auto.rule import Rule, make_rule
from belated.agents._auto.table import Counts, SweepScratch, fill_spread, play_unseen, sweep
from belated.types import Floats, Ints

STATES, ACTIONS, HORIZON = 3, 2, 4


def rule(**changed: float) -> Rule:
    settings: dict[str, Any] = {"residual": 0.0, "hidden": 0.0, "slab": 0.0, "prior": 0.0, "hurried": False, **changed}
    return make_rule(HORIZON, (0.0, 1.0), ridge=0.5, **settings)


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
        random=np.ones(STATES * ACTIONS, np.int64),
        lines=np.zeros((3, STATES * ACTIONS)),
    )
    return counts, often, rewards


def planned(given: Rule, counts: Counts, seen: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    pairs = STATES * ACTIONS
    draft = SweepScratch(np.zeros(STATES + 1), np.zeros(pairs), np.zeros((3, pairs)), np.zeros(ACTIONS))
    fill_spread(given, counts.visits.astype(float), counts.random, ACTIONS, 1.0, rng, draft.spread)
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


def test_of_equal_returns_the_one_that_comes_sooner_is_taken() -> None:
    """State 0 may wait (action 0) or end with a reward (action 1); so few as 1 − H⁻² decides, at every step."""
    counts = Counts(
        visits=np.array([5, 5]),
        reward_sums=np.array([0.0, 5.0]),
        kinds=np.array([1, 1]),
        after=np.array([[0], [1]], np.int32),
        often=np.array([[5], [5]], np.int32),
        next_rewards=np.array([0.0, 5.0]),
        arrivals=np.array([5.0, 5.0]),
        reward_squares=5.0,
        random=np.zeros(2, np.int64),
        lines=np.zeros((3, 2)),
    )
    rng, draft = np.random.default_rng(0), SweepScratch(np.zeros(2), np.zeros(2), np.zeros((3, 2)), np.zeros(2))
    for hurried, wanted in ((True, {1}), (False, {0, 1})):
        given = make_rule(HORIZON, (0.0, 1.0), ridge=1e-12, prior=0.0, hurried=hurried)
        taken = set()
        for _ in range(20):
            values, policy = np.zeros((HORIZON + 1, 1)), np.zeros((HORIZON, 1), np.int64)
            sweep(given, counts, draft, np.ones(1, np.int64), 0, HORIZON, rng, values, policy)
            taken |= set(policy[:-1, 0].tolist())
        assert taken == wanted


@pytest.mark.parametrize("visits", [0, 1, 7])
def test_the_spread_of_a_random_pair(visits: int) -> None:
    given, spread = rule(prior=0.25, hidden=0.3), np.zeros((3, 1))
    fill_spread(given, np.array([float(visits)]), np.array([1]), 1, 0.1, np.random.default_rng(0), spread)
    known = visits + 0.5
    assert spread[0, 0] == pytest.approx(visits**2 / known**3)
    assert spread[1, 0] == pytest.approx(0.3**2 * visits / known**3 + (given.prior * 0.5 / known) ** 2)
    assert spread[2, 0] == 0.0


def test_actions_that_were_tried_less_than_others_have_wider_draws() -> None:
    given, spread = rule(hidden=0.3, rarity=2.0), np.zeros((3, 4))
    visits = np.array([1.0, 7.0, 3.0, 3.0])  # two actions in two states
    fill_spread(given, visits, np.ones(4, np.int64), 2, 1.0, np.random.default_rng(0), spread)
    wider = np.array([1 + 2 * np.log(8 / 2), 1.0, 1.0, 1.0])
    np.testing.assert_allclose(spread[0], wider * visits**2 / (visits + 0.5) ** 3)
    np.testing.assert_allclose(spread[1], wider * 0.09 * visits / (visits + 0.5) ** 3)


def test_equal_outcomes_may_be_random_all_the_same() -> None:
    """With the posterior chance of that, and then with √p̂ as noise of the value, else of the choice."""
    given, spread, n, share = rule(hidden=0.3, slab=1.0), np.zeros((3, 1)), 3.0, 0.25
    rng, found = np.random.default_rng(0), []
    for _ in range(20_000):
        fill_spread(given, np.array([n]), np.array([0]), 1, share, rng, spread)
        found.append(spread[:, 0].tolist())
    drawn = np.array(found)
    assert (drawn[:, 0] == 0).all()  # it has no residuals
    random = share * 2 / (n + 1) / (share * 2 / (n + 1) + 1 - share)  # Bayes; n equal outcomes have 2/(n + 1) chances
    assert (drawn[:, 1:] > 0).mean(axis=0).tolist() == pytest.approx([random * 0.5, random * 0.5], abs=0.01)
    scale = n / (n + 0.5) ** 3
    assert set(drawn[:, 1].round(12)) == {0.0, round(0.09 * scale, 12)}
    assert set(drawn[:, 2].round(12)) == {0.0, round(scale, 12)}
