"""Rewards that change with the episode, and the best fixed policy in hindsight against every other one."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest

import belated
from belated.agents import FixedPolicy, RandomPolicy
from belated.delays import Constant, Poisson
from belated.environments import AdversarialMDP, environment_from_dict
from belated.environments._adversarial import ADVERSARIES
from belated.errors import InvalidInputError, UnknownNameError
from belated.runner import simulate
from belated.types import Floats, TablePolicy

EACH = pytest.mark.parametrize("adversary", ADVERSARIES)


def tables(mdp: AdversarialMDP) -> Floats:
    return mdp.world.rewards


def hindsight(mdp: AdversarialMDP, policy: TablePolicy, episodes: int) -> float:
    """Sum the policy's values over the episodes, one by one."""
    distribution, total = mdp.transitions, 0.0
    for k in range(episodes):
        value = np.zeros(mdp.states)
        for h in reversed(range(mdp.horizon)):
            rewards = tables(mdp)[k % len(tables(mdp)), h]
            chosen = policy.actions[h]
            value = np.array([rewards[s, a] + distribution[h, s, a] @ value for s, a in enumerate(chosen)])
        total += value[0]
    return total


@EACH
@pytest.mark.parametrize("episodes", [1, 3, 8, 13])
def test_the_comparator_is_the_best_of_all_policies(adversary: str, episodes: int) -> None:
    mdp = AdversarialMDP(states=2, actions=2, horizon=2, adversary=adversary, period=8, seed=3)
    everything = itertools.product(range(2), repeat=4)
    best = max(hindsight(mdp, TablePolicy(np.reshape(each, (2, 2))), episodes) for each in everything)
    assert hindsight(mdp, mdp.comparator(episodes), episodes) == pytest.approx(best, rel=1e-12)


def test_the_comparator_depends_on_the_number_of_episodes() -> None:
    mdp = AdversarialMDP.from_tables([[[1], [1]]], np.array([[1, 0], [0, 0.75], [0, 0.75]]).reshape(3, 1, 1, 2))
    best = [int(mdp.comparator(k).actions[0, 0]) for k in range(1, 7)]
    assert best == [0, 0, 1, 0, 1, 1]  # totals 1:0, 1:0.75, 1:1.5, 2:1.5, 2:2.25, 2:3


@EACH
def test_a_run_counts_regret_against_the_comparator(adversary: str) -> None:
    mdp = AdversarialMDP(states=3, actions=2, horizon=3, adversary=adversary, period=20, seed=1)
    best = mdp.comparator(50)
    rows = simulate(mdp, FixedPolicy(actions=best.actions), Constant(1), episodes=50, seed=0)
    assert np.abs(rows["regret"].to_numpy()).max() == 0.0
    fixed = TablePolicy(np.ones((3, 3), np.int64))
    rows = simulate(mdp, FixedPolicy(actions=fixed.actions), Constant(1), episodes=50, seed=0)
    assert rows["regret"][-1] == pytest.approx(hindsight(mdp, best, 50) - hindsight(mdp, fixed, 50))


def test_summaries_cope_with_episodes_of_negative_regret() -> None:
    mdp = AdversarialMDP(states=2, actions=2, horizon=2, adversary="trap", period=40)
    lure = FixedPolicy(actions=mdp.comparator(10).actions)
    results = belated.run(mdp, {"lured": lure}, Poisson(2), episodes=40, seeds=2, jobs=1, progress=False)
    regret = results.regret(agent="lured")
    assert regret[:, 9].max() < 0 < regret[:, -1].min()
    summary = results.summary()
    assert summary["regret"][0] == pytest.approx(regret[0, -1])
    assert results.regret_band(agent="lured").value.shape == (40,)


def test_what_each_adversary_does() -> None:
    switching, drifting, random, trap = (tables(AdversarialMDP(adversary=name, period=40)) for name in ADVERSARIES)
    assert all(each.shape == (40, 5, 5, 3) and each.min() >= 0 and each.max() <= 1 for each in (switching, random))
    changes = np.flatnonzero((np.diff(switching, axis=0) != 0).any(axis=(1, 2, 3))) + 1
    assert changes.tolist() == [10, 20, 30]
    largest_step = 0.25 * 2 * np.pi / 40  # a quarter of the wave's amplitude times its greatest slope
    assert 0.9 * largest_step < np.abs(np.diff(drifting, axis=0)).max() <= largest_step
    assert np.ptp(drifting, axis=0).min() == pytest.approx(0.5, abs=0.01)
    assert len(np.unique(random, axis=0)) == 40
    early, late = trap[:10], trap[10:]
    assert (early == early[0]).all() and (late == late[0]).all()
    assert ((early[0] == 1).sum(axis=2) == 1).all() and ((early[0] == 0).sum(axis=2) == 1).all()
    moved = (early[0] == 1) | (early[0] == 0)
    np.testing.assert_array_equal(late[0][moved], 1 - early[0][moved])
    rest = late[0][~moved]
    np.testing.assert_array_equal(rest, early[0][~moved])
    assert rest.min() >= 0.25 and rest.max() <= 0.75


@EACH
def test_the_value_is_the_mean_over_a_period(adversary: str) -> None:
    mdp = AdversarialMDP(states=3, actions=2, horizon=3, adversary=adversary, period=12)
    policy = TablePolicy(np.random.default_rng(0).integers(2, size=(3, 3)))
    each = [mdp.values(policy, episode=k)[0, 0] for k in range(12)]
    assert mdp.value(policy) == pytest.approx(np.mean(each))
    assert mdp.value(mdp.optimal_policy()) == pytest.approx(mdp.optimal_value)
    np.testing.assert_array_equal(mdp.comparator(12).actions, mdp.optimal_policy().actions)
    assert mdp.normalised() is mdp


@EACH
def test_round_trip_through_json(adversary: str) -> None:
    mdp = AdversarialMDP(4, 3, 2, adversary, 9, True, 5)
    again = environment_from_dict(json.loads(json.dumps(mdp.to_dict())))
    assert isinstance(again, AdversarialMDP)
    assert again.to_dict() == mdp.to_dict()
    assert again.label == mdp.label == f"adversarial-{adversary}-s4-a3-h2-p9-5-known"
    np.testing.assert_array_equal(tables(again), tables(mdp))
    copy = pickle.loads(pickle.dumps(mdp))
    np.testing.assert_array_equal(tables(copy), tables(mdp))
    assert copy.to_dict() == mdp.to_dict()
    assert not tables(copy).flags.writeable


def test_the_seed_decides_and_the_dynamics_are_told_only_if_asked() -> None:
    first, again, other = AdversarialMDP(seed=1), AdversarialMDP(seed=1, known_dynamics=True), AdversarialMDP(seed=2)
    np.testing.assert_array_equal(first.transitions, again.transitions)
    np.testing.assert_array_equal(tables(first), tables(again))
    assert not np.array_equal(first.transitions, other.transitions)
    assert first.problem.dynamics is None
    assert again.problem.dynamics is not None


def test_from_tables() -> None:
    drawn = AdversarialMDP(states=3, actions=2, horizon=4, period=6)
    mdp = AdversarialMDP.from_tables(drawn.transitions, tables(drawn), name="mine")
    np.testing.assert_array_equal(mdp.comparator(5).actions, drawn.comparator(5).actions)
    one, two = (
        simulate(each, RandomPolicy(), Poisson(2), episodes=30, seed=0, record_every=5) for each in (mdp, drawn)
    )
    assert one.equals(two)
    assert mdp.label == "mine"
    with pytest.raises(InvalidInputError, match="an MDP built from arrays has no plain specification"):
        mdp.to_dict()
    changed = np.array(tables(drawn))
    changed[5, 0, 0, 0] = 1 - changed[5, 0, 0, 0]
    assert AdversarialMDP.from_tables(drawn.transitions, changed).describe() != mdp.describe()


@pytest.mark.parametrize("field", ["states", "horizon", "period"])
def test_sizes_are_checked(field: str) -> None:
    settings: dict[str, Any] = {field: 0}
    with pytest.raises(InvalidInputError, match=f"{field} must be an integer >= 1, got 0"):
        AdversarialMDP(**settings)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="actions must be an integer >= 2, got 1"):
        AdversarialMDP(actions=1)
    with pytest.raises(UnknownNameError, match=r"adversary must be one of 'switching'.*did you mean 'drifting'"):
        AdversarialMDP(adversary="drifts")
    with pytest.raises(InvalidInputError, match="known_dynamics must be True or False, got 1"):
        AdversarialMDP(known_dynamics=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="seed must be an integer >= 0, got -1"):
        AdversarialMDP(seed=-1)
    with pytest.raises(InvalidInputError, match="episodes must be an integer >= 1, got 0"):
        AdversarialMDP().comparator(0)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (np.zeros((2, 1, 2)), r"rewards must have shape \(any, any, any, any\), got \(2, 1, 2\)"),
        (np.full((2, 1, 1, 2), 1.5), r"rewards must be within \[0, 1\], got 1.5 at index \(0, 0, 0, 0\)"),
        (np.zeros((0, 1, 1, 2)), "rewards must be rewards of at least one episode"),
        (np.zeros((2, 1, 3, 2)), "rewards must have shape"),
    ],
)
def test_bad_tables_are_refused(rewards: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        AdversarialMDP.from_tables([[[1], [1]]], rewards)


def test_all_tables_count_for_whether_steps_are_alike() -> None:
    distribution = np.ones((1, 2, 1))
    alike = np.array([[[[0.1, 0.2]]] * 2, [[[0.3, 0.4]]] * 2])
    assert AdversarialMDP.from_tables(distribution, alike).problem.homogeneous
    crossed = np.array([[[[0.0, 1.0]], [[1.0, 0.0]]], [[[1.0, 0.0]], [[0.0, 1.0]]]])  # the same in the mean
    assert not AdversarialMDP.from_tables(distribution, crossed).problem.homogeneous
