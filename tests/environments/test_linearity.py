"""Linearity against sums written out: where errors are made, how often that is, and what it costs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from belated import AdversarialMDP, Bandit, FiniteMDP, InvalidInputError, RandomLinearMDP, RiverSwim, TablePolicy
from belated.environments import Linearity
from belated.environments._finite import linear_fit, visited


def small(seed: int = 0, dimension: int = 3) -> FiniteMDP:
    """Return an MDP of two states, two actions and three steps whose tables no features of these express."""
    rng = np.random.default_rng(seed)
    return FiniteMDP(
        rng.dirichlet(np.ones(2), (3, 2, 2)),
        rng.random((3, 2, 2)),
        features=rng.normal(size=(2, 2, dimension)),
        start=[0.3, 0.7],
    )


def paths(mdp: FiniteMDP, policy: TablePolicy) -> np.ndarray:
    """Return how likely each step, state and action is, by adding up all paths."""
    shares = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    for path in itertools.product(range(mdp.states), repeat=mdp.horizon):
        taken = [int(policy.actions[h, s]) for h, s in enumerate(path)]
        chance = mdp.start[path[0]]
        for h in range(mdp.horizon - 1):
            chance *= mdp.transitions[h, path[h], taken[h], path[h + 1]]
        for h in range(mdp.horizon):
            shares[h, path[h], taken[h]] += chance
    return shares


def test_visits_are_the_sum_over_all_paths() -> None:
    mdp = small()
    np.testing.assert_allclose(visited(mdp, mdp.optimal_policy()), paths(mdp, mdp.optimal_policy()), atol=1e-12)
    np.testing.assert_allclose((visited(mdp, mdp.optimal_policy()) * mdp.rewards).sum(), mdp.optimal_value, atol=1e-12)


def test_errors_are_those_of_each_step_s_own_least_squares() -> None:
    mdp = small()
    flat = mdp.features.reshape(4, -1)
    projection = flat @ np.linalg.pinv(flat)
    fit = linear_fit(mdp.features, mdp.rewards, mdp.transitions)
    for h in range(3):
        rewards, distribution = mdp.rewards[h].reshape(4), mdp.transitions[h].reshape(4, 2)
        np.testing.assert_allclose(fit.reward_errors[h].ravel(), projection @ rewards - rewards, atol=1e-12)
        np.testing.assert_allclose(
            fit.transition_errors[h].reshape(4, 2), projection @ distribution - distribution, atol=1e-12
        )


@pytest.mark.parametrize("given", [False, True])
def test_the_weighted_errors_are_those_a_policy_meets(given: bool) -> None:
    mdp = small()
    policy = TablePolicy(np.array([[1, 0], [0, 0], [1, 1]])) if given else mdp.optimal_policy()
    found = mdp.linearity(policy if given else None)
    fit, weights = linear_fit(mdp.features, mdp.rewards, mdp.transitions), paths(mdp, policy) / 3
    assert found.visited_reward_error == pytest.approx((weights * abs(fit.reward_errors)).sum())
    variation = abs(fit.transition_errors).sum(axis=-1) / 2
    assert found.visited_transition_error == pytest.approx((weights * variation).sum())
    assert found.visited_reward_error <= found.reward_error
    assert found.reward_error == pytest.approx(abs(fit.reward_errors).max())


def test_the_value_lost_is_that_of_the_best_policy_by_the_fit() -> None:
    lost = []
    for seed in range(12):
        mdp = small(seed, dimension=2)
        flat = mdp.features.reshape(4, -1)
        projection = (flat @ np.linalg.pinv(flat)).reshape(2, 2, 2, 2)
        values, actions = np.zeros(2), np.zeros((3, 2), np.int64)
        for h in (2, 1, 0):  # least-squares value iteration with all transitions known: project r + P V
            q = np.einsum("saij,ij->sa", projection, mdp.rewards[h] + mdp.transitions[h] @ values)
            actions[h], values = q.argmax(axis=1), np.clip(q.max(axis=1), 0, 3 - h)
        expected = mdp.optimal_value - mdp.value(TablePolicy(actions))
        assert mdp.linearity().value_lost == pytest.approx(expected, abs=1e-12)
        lost.append(expected)
    assert max(lost) > 0.01
    assert min(lost) == pytest.approx(0.0, abs=1e-12), "errors need not cost anything"


def test_a_linear_mdp_loses_nothing() -> None:
    for mdp in (RandomLinearMDP(), RiverSwim()):
        assert max(mdp.linearity()) < 1e-12


def test_an_error_off_the_way_weighs_nothing() -> None:
    """State 1 is never reached, and only there the rewards cannot be told apart."""
    stay = np.broadcast_to(np.eye(2)[:, np.newaxis], (2, 2, 2))
    features = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    found = FiniteMDP(stay, [[1.0, 0.0], [0.0, 1.0]], features=features, horizon=2).linearity()
    assert found.reward_error == pytest.approx(0.5)
    assert found.visited_reward_error == pytest.approx(0.0, abs=1e-12)
    assert found.value_lost == pytest.approx(0.0, abs=1e-12)


def test_a_bandit_loses_what_the_wrong_arm_pays_less() -> None:
    bandit = Bandit([[[1.0], [2.0], [3.0]]], [[1.0, 5.0, 2.0]], noise=0.5)
    found = bandit.linearity()  # θ = (1 + 10 + 6) / 14, so the third arm looks best
    assert found == pytest.approx(Linearity(abs(34 / 14 - 5), 0.0, abs(34 / 14 - 5), 0.0, 3.0))


def test_rewards_that_change_are_measured_on_average() -> None:
    assert AdversarialMDP().linearity().value_lost >= 0.0


def test_a_policy_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"policy\.actions"):
        small().linearity(TablePolicy(np.zeros((2, 2), np.int64)))
