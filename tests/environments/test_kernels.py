import numpy as np
import pytest
from scipy.stats import chisquare

from belated._kernels.streams import stream
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, World
from belated.environments import _kernels as kernels
from belated.types import Floats, Ints


def random_policy(mdp: FiniteMDP, seed: int) -> Ints:
    return stream(seed, "policy").integers(mdp.actions, size=(mdp.horizon, mdp.states))


def naive_action_values(mdp: FiniteMDP, h: int, following: Floats) -> Floats:
    after: Floats = mdp.rewards[h] + mdp.transitions[h] @ following
    return after


def play(world: World, policy: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
    states = np.full(world.horizon + 1, -1)
    states[0] = kernels.first_state(world, 0, rng)
    actions = np.full(world.horizon, -1)
    rewards = np.full(world.horizon, np.nan)
    kernels.rollout(world, 0, policy, rng, states, actions, rewards)
    return states, actions, rewards


MODELS = [RiverSwim(states=4, horizon=6), RandomLinearMDP(seed=3), RandomLinearMDP(seed=4, bernoulli=True)]


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_policy_values_match_numpy(mdp: FiniteMDP) -> None:
    policy = random_policy(mdp, 0)
    expected = np.zeros((mdp.horizon + 1, mdp.states))
    for h in reversed(range(mdp.horizon)):
        expected[h] = naive_action_values(mdp, h, expected[h + 1])[np.arange(mdp.states), policy[h]]
    values = np.full_like(expected, np.nan)
    kernels.policy_values(mdp.world, 0, policy, values)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_optimal_values_match_numpy(mdp: FiniteMDP) -> None:
    expected = np.zeros((mdp.horizon + 1, mdp.states))
    best = np.zeros((mdp.horizon, mdp.states), dtype=np.int64)
    for h in reversed(range(mdp.horizon)):
        action_values = naive_action_values(mdp, h, expected[h + 1])
        expected[h], best[h] = action_values.max(axis=1), action_values.argmax(axis=1)
    values, policy = np.full_like(expected, np.nan), np.full_like(best, -1)
    kernels.optimal_values(mdp.world, mdp.world.rewards[0], values, policy)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(policy, best)


def test_the_first_of_equally_good_actions_is_chosen() -> None:
    mdp = FiniteMDP(np.ones((1, 4, 1)), [[0.0, 0.5, 0.5, 0.0]], horizon=2)
    assert mdp.optimal_policy().actions.tolist() == [[1], [1]]


@pytest.mark.parametrize(("bernoulli", "draws"), [(False, 1 + 8), (True, 1 + 2 * 8)])
def test_rollout_draws_the_promised_number_of_uniforms(bernoulli: bool, draws: int) -> None:
    mdp = RandomLinearMDP(bernoulli=bernoulli)
    rng, reference = stream(5, "environment"), stream(5, "environment")
    play(mdp.world, random_policy(mdp, 1), rng)
    reference.random(draws)
    assert rng.bit_generator.state == reference.bit_generator.state


@pytest.mark.parametrize("mdp", MODELS, ids=lambda mdp: mdp.label)
def test_rollout_matches_a_naive_episode(mdp: FiniteMDP) -> None:
    policy = random_policy(mdp, 2)
    for seed in range(20):
        states, actions, rewards = play(mdp.world, policy, stream(seed, "environment"))
        rng = stream(seed, "environment")
        state = int(np.argmax(np.cumsum(mdp.start) > rng.random()))
        for h in range(mdp.horizon):
            action = policy[h, state]
            assert (states[h], actions[h]) == (state, action)
            mean = mdp.rewards[h, state, action]
            state = int(np.argmax(np.cumsum(mdp.transitions[h, state, action]) > rng.random()))
            assert rewards[h] == (float(rng.random() < mean) if mdp.bernoulli else mean)
        assert states[mdp.horizon] == state


def test_rollout_frequencies_match_the_transitions() -> None:
    distribution = stream(0, "distribution").dirichlet(np.full(4, 3.0), size=(2, 4, 2))
    mdp = FiniteMDP(distribution, np.zeros((4, 2)), start=[0.1, 0.0, 0.6, 0.3])
    policy, rng = random_policy(mdp, 3), stream(0, "environment")
    episodes = np.array([play(mdp.world, policy, rng)[0] for _ in range(20_000)])
    assert not (episodes[:, 0] == 1).any()
    first = np.bincount(episodes[:, 0], minlength=4)[[0, 2, 3]]
    assert chisquare(first, 20_000 * mdp.start[[0, 2, 3]]).pvalue > 1e-3
    for h in range(2):
        for state in np.unique(episodes[:, h]):
            after = episodes[episodes[:, h] == state, h + 1]
            expected = distribution[h, state, policy[h, state]] * len(after)
            assert expected.min() > 5  # fewer would make the p-value a poor approximation
            assert chisquare(np.bincount(after, minlength=4), expected).pvalue > 1e-3


def test_cumulated_never_lands_on_an_impossible_state() -> None:
    distribution = np.array([[0.0, 0.7, 0.2, 0.1, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    sums = kernels.cumulated(distribution)
    assert sums[0, 3:].tolist() == [1.0, 1.0]
    assert sums[1].tolist() == [1.0] * 5
    assert sums[2].tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]
    for row, (lowest, highest) in zip(sums, [(1, 3), (0, 0), (4, 4)], strict=True):
        assert kernels.first_above(row, 0.0) == lowest
        assert kernels.first_above(row, np.nextafter(1.0, 0.0)) == highest


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_first_above_is_a_search_for_the_first_larger_entry(size: int) -> None:
    sums = kernels.cumulated(stream(size, "distribution").dirichlet(np.ones(size)))
    for uniform in [0.0, *sums[:-1], *stream(size, "draws").random(50)]:
        assert kernels.first_above(sums, uniform) == int(np.argmax(sums > uniform))
