import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

from belated._kernels.streams import stream
from belated.environments import FiniteMDP, from_gymnasium
from belated.errors import BelatedError, InvalidInputError
from belated.types import TablePolicy


class Tabular:
    """As much of a Gymnasium environment as the bridge reads."""

    def __init__(self, P: Any, start: Any = None) -> None:
        self.P = P
        if start is not None:
            self.initial_state_distrib = start


def raw_return(env: Any, policy: TablePolicy, horizon: int, seed: int) -> float:
    state, total = int(env.reset(seed=seed)[0]), 0.0
    for h in range(horizon):
        state, reward, terminated, _, _ = env.step(policy.act(h, state))
        state, total = int(state), total + reward
        if terminated:
            break
    return total


def test_frozen_lake_without_slipping_matches_the_real_environment() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    lake = from_gymnasium(env, horizon=12)
    assert lake.optimal_value == 1.0
    assert raw_return(env, lake.optimal_policy(), 12, 0) == 1.0
    assert from_gymnasium(env, horizon=5).optimal_value == 0.0
    for seed in range(30):
        policy = TablePolicy(stream(seed, "policy").choice([1, 2], size=(12, 16)))
        assert raw_return(env, policy, 12, 0) == lake.value(policy)
    env.close()


def test_slippery_frozen_lake_matches_monte_carlo() -> None:
    env = gymnasium.make("FrozenLake-v1").unwrapped
    lake = from_gymnasium(env, horizon=30)
    returns = np.array([raw_return(env, lake.optimal_policy(), 30, seed) for seed in range(2000)])
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    assert 0 < error < 0.02
    assert abs(returns.mean() - lake.optimal_value) < 4 * error


def test_cliff_walking_is_rescaled_by_the_documented_map() -> None:
    env = CliffWalkingEnv()
    cliff = from_gymnasium(env, horizon=30)
    assert cliff.rewards.min() == 0.0
    assert cliff.rewards.max() == 1.0
    raw = raw_return(env, cliff.optimal_policy(), 30, 0)
    assert raw == -13
    assert cliff.optimal_value == pytest.approx((raw - 30 * -100) / 100)
    goal = 47
    assert cliff.transitions[0, goal, :, goal].tolist() == [1.0] * 4
    assert cliff.label == "CliffWalkingEnv-h30"


def test_taxi_solves_every_start_of_the_real_environment() -> None:
    env = TaxiEnv()
    taxi = from_gymnasium(env, horizon=20, reward_range=(-10, 20))
    values = taxi.optimal_values()[0]
    for seed in range(10):
        first = int(env.reset(seed=seed)[0])
        raw = raw_return(env, taxi.optimal_policy(), 20, seed)
        assert values[first] == pytest.approx((raw + 20 * 10) / 30)
    np.testing.assert_allclose(taxi.start, env.initial_state_distrib)


def test_options_reach_the_environment() -> None:
    assert from_gymnasium("FrozenLake-v1", 3, map_name="8x8").states == 64
    assert from_gymnasium("FrozenLake-v1", 3).label == "FrozenLake-v1-h3"


CHAIN = {
    0: {0: [(0.5, 0, 0.0, False), (0.5, 1, 3.0, False)]},
    1: {0: [(0.25, 2, 4.0, True), (0.75, 1, 0.0, False)]},
    2: {0: [(1.0, 0, 9.0, False)]},
}


def test_a_table_by_hand() -> None:
    mdp = from_gymnasium(Tabular(CHAIN), horizon=2, reward_range=(-1, 3))
    assert mdp.start.tolist() == [1.0, 0.0, 0.0]
    assert mdp.transitions[1, :, 0].tolist() == [[0.5, 0.5, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]]
    assert mdp.rewards[0, :, 0].tolist() == [2.5 / 4, 2.0 / 4, 1.0 / 4]
    assert from_gymnasium(Tabular(CHAIN), 2).rewards[0, :, 0].tolist() == [1.0, 1.0 / 1.5, 0.0]
    assert from_gymnasium(Tabular(CHAIN, [0, 1, 0]), 2).start.tolist() == [0.0, 1.0, 0.0]


def test_rewards_within_zero_and_one_are_left_alone() -> None:
    table = {0: {0: [(1.0, 0, 0.25, False)], 1: [(1.0, 0, 0.5, False)]}}
    assert from_gymnasium(Tabular(table), 2).rewards[0, 0].tolist() == [0.25, 0.5]


def test_a_constant_reward_outside_becomes_zero() -> None:
    assert from_gymnasium(Tabular({0: {0: [(1.0, 0, -7.0, False)]}}), 2).optimal_value == 0.0


def refused(message: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(InvalidInputError, match=message):
        from_gymnasium(*args, **kwargs)


def test_bad_input_is_named() -> None:
    refused("horizon must be an integer >= 1, got 0", Tabular(CHAIN), 0)
    refused("env_or_id must be a tabular environment", "CartPole-v1", 5)
    refused("kwargs must be empty unless an environment id", Tabular(CHAIN), 5, is_slippery=False)
    refused("with low < high", Tabular(CHAIN), 5, reward_range=(1, 1))
    refused(r"wide enough for the mean rewards, in \[0, 1.5\]", Tabular(CHAIN), 5, reward_range=(0, 1))
    refused(r"P\[1\] must be a table of 1 actions", Tabular({**CHAIN, 1: {}}), 5)
    refused("initial_state_distrib must sum to one", Tabular(CHAIN, [1, 1, 0]), 5)
    refused("transitions must sum to one", Tabular({0: {0: [(0.5, 0, 0.0, False)]}}), 5)


def test_a_state_that_ends_only_sometimes_is_refused() -> None:
    both = {0: {0: [(0.5, 0, 0.0, True), (0.5, 0, 0.0, False)]}}
    refused(r"must either end the episode or not, got both at \(0, 0, 0\)", Tabular(both), 5)
    sometimes = {0: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, False)]}, 1: {0: [], 1: []}}
    sometimes[1] = {action: [(1.0, 1, 0.0, False)] for action in range(2)}
    refused("got state 1, where it ends after some moves", Tabular(sometimes), 5)


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(BelatedError, match=r"pip install 'belated\[gym\]'"):
        from_gymnasium("FrozenLake-v1", 3)


def test_the_result_is_an_ordinary_mdp() -> None:
    assert type(from_gymnasium(Tabular(CHAIN), 2)) is FiniteMDP
