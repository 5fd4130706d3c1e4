from __future__ import annotations

import json
import pickle
import threading
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from odd_worlds import Always, Countdown, Odd, Uniform

from belated import DelayedPSVI, Feedback, FiniteMDP, Poisson, RiverSwim, SyntheticLinearMDP
from belated.delays import DelayBuffer
from belated.environments import GymEnvironment, TablePolicy, any_environment_from_dict, as_gymnasium
from belated.environments.gym_environment import episode_seed
from belated.errors import InvalidInputError
from belated.features import Fourier, OneHot, Tiles
from belated.rng import stream
from belated.sampled import Encoded, SampledTrajectory
from belated.types import Policy, Trajectory


def same(one: SampledTrajectory, other: SampledTrajectory) -> bool:
    return (
        all(np.array_equal(a.indices, b.indices) for a, b in zip(one.states, other.states, strict=True))
        and np.array_equal(one.actions, other.actions)
        and np.array_equal(one.rewards, other.rewards)
        and one.terminated == other.terminated
    )


KNOWN = {
    "CartPole-v1": (2, 500, (0.0, 1.0)),
    "MountainCar-v0": (3, 200, (-1.0, 0.0)),
    "Acrobot-v1": (3, 500, (-1.0, 0.0)),
    "FrozenLake-v1": (4, 100, (0.0, 1.0)),
    "Taxi-v4": (6, 200, (-10.0, 20.0)),
    "belated/RiverSwim-v0": (2, 20, (0.0, 1.0)),
    "belated/DeepSea-v0": (2, 10, (0.0, 1.0)),
}


@pytest.mark.parametrize("environment", KNOWN)
def test_what_is_left_out_is_found_out(environment: str) -> None:
    made = GymEnvironment(environment)
    actions, horizon, reward_range = KNOWN[environment]
    problem = made.problem
    assert (made.actions, made.horizon, made.reward_range) == KNOWN[environment]
    assert (problem.actions, problem.horizon, problem.reward_range) == (actions, horizon, reward_range)
    assert problem.features is made.features
    played, earned = made.play(Uniform(actions, 0), seed=0, episode=0)
    assert earned == np.cumsum(played.rewards)[-1]
    assert 1 <= len(played.actions) <= horizon
    assert len(played.states) == len(played.actions) + 1 == len(played.rewards) + 1
    assert played.actions.dtype == np.int64 and played.rewards.dtype == np.float64


def test_an_episode_depends_on_the_seed_and_its_number_alone() -> None:
    made, other = GymEnvironment("CartPole-v1"), GymEnvironment("CartPole-v1")
    straight = [made.play(Uniform(2, k), seed=3, episode=k)[0] for k in range(6)]
    for k in (4, 0, 5, 2):  # any order, as after a run was stopped
        assert same(other.play(Uniform(2, k), seed=3, episode=k)[0], straight[k])
    assert not same(made.play(Uniform(2, 0), seed=4, episode=0)[0], straight[0])
    assert len({episode_seed(s, k) for s in range(30) for k in range(30)}) == 900


def test_an_episode_is_that_of_gymnasium_with_the_derived_seed() -> None:
    made = GymEnvironment("MountainCar-v0", horizon=30)
    played, earned = made.play(Uniform(3, 1), seed=2, episode=7)
    env, rng = gymnasium.make("MountainCar-v0"), np.random.default_rng(1)
    observation, _ = env.reset(seed=episode_seed(2, 7))
    total = 0.0
    for step in range(30):
        np.testing.assert_array_equal(played.states[step].indices, made.features.encode(observation).indices)
        observation, reward, *_ = env.step(int(rng.integers(3)))
        total += float(reward)
    assert (earned, len(played.actions), played.terminated) == (total, 30, False)


@pytest.mark.parametrize(("how", "terminal"), [("terminated", True), ("truncated", False), ("both", True)])
def test_truncation_is_not_termination(how: str, terminal: bool) -> None:
    made = GymEnvironment(Countdown, how=how, horizon=10)
    played, earned = made.play(Always(0), seed=0, episode=0)
    assert (len(played.actions), played.terminated, earned) == (3, terminal, 3.0)
    cut, _ = GymEnvironment(Countdown, horizon=2).play(Always(0), seed=0, episode=0)
    assert (len(cut.actions), cut.terminated) == (2, False)
    exactly, _ = GymEnvironment(Countdown, horizon=3).play(Always(0), seed=0, episode=0)
    assert (len(exactly.actions), exactly.terminated) == (3, True)


def test_the_horizon_of_an_id_can_be_longer_than_its_own() -> None:
    made = GymEnvironment("MountainCar-v0", horizon=260)
    played, earned = made.play(Always(1), seed=0, episode=0)
    assert (len(played.actions), earned, played.terminated) == (260, -260.0, False)


def test_actions_that_do_not_start_at_zero() -> None:
    made = GymEnvironment(Odd, horizon=4)
    played, _ = made.play(Always(1), seed=0, episode=0)
    assert played.actions.tolist() == [1] * 4
    assert made._env.taken[-4:] == [6] * 4


SPACES: list[spaces.Space[Any]] = [
    spaces.Discrete(4, start=2),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiBinary(3),
    spaces.Box(-1, 1, (3,)),
    spaces.Box(-np.inf, np.inf, (2, 2)),
    spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(0, np.inf, (1,))}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_space_of_observations(space: spaces.Space[Any]) -> None:
    made = GymEnvironment(Odd, space=space, horizon=5)
    again = GymEnvironment(Odd, space=space, horizon=5)
    assert made.features == again.features  # what random play shows is always the same
    one, _ = made.play(Always(0), seed=1, episode=2)
    other, _ = again.play(Always(0), seed=1, episode=2)
    assert same(one, other)


def test_bounds_that_are_not_stated_are_those_of_random_play() -> None:
    features = GymEnvironment("CartPole-v1").features
    assert isinstance(features, Tiles) and features.low is not None and features.high is not None
    assert features.high[0] == pytest.approx(4.8) and features.high[2] == pytest.approx(0.41887903)
    assert all(
        0.5 < abs(bound) < 10 for bound in (features.low[1], features.high[1], features.low[3], features.high[3])
    )


def test_rewards_are_learned_from_random_play() -> None:
    assert GymEnvironment(Odd, horizon=5, reward=-2.5).reward_range == (-2.5, 0.0)
    assert GymEnvironment("CartPole-v1", sutton_barto_reward=True).reward_range == (-1.0, 0.0)
    wrapped = partial(
        gymnasium.wrappers.TransformReward, gymnasium.make("FrozenLake-v1"), lambda reward: 7 - float(reward)
    )
    assert GymEnvironment(wrapped, horizon=9).reward_range == (0.0, 7.0)
    made = GymEnvironment(Odd, horizon=5)
    made._env.reward = 9.0  # beyond what was learned, which is not refused
    assert made.play(Always(0), seed=0, episode=0)[1] == 45.0


@pytest.mark.parametrize("mdp", [RiverSwim(states=4, horizon=6), SyntheticLinearMDP(actions=5, horizon=6)])
def test_our_environments_give_the_policies_of_the_direct_path(mdp: FiniteMDP) -> None:
    """A run by hand through Gymnasium, beside the same run on the tables: the same seeds, the same policies."""
    made = GymEnvironment(as_gymnasium, mdp=mdp)
    assert made.table is mdp
    assert made.problem.homogeneous == isinstance(mdp, RiverSwim)
    delays = Poisson(3).sample(stream(5, "delay"), 40).tolist()

    def run(play: Any) -> list[Policy]:
        agent, rng, buffer = DelayedPSVI().start(mdp.problem), stream(5, "agent"), DelayBuffer[Trajectory]()
        policies = []
        for k, delay in enumerate(delays):
            agent.learn([Feedback(origin, late) for origin, late in buffer.arrived(k)])
            policies.append(agent.plan(rng))
            buffer.add(k, delay, play(policies[-1], k))
        return policies

    environment = stream(5, "environment")
    direct = run(lambda policy, k: mdp.rollout(policy, environment, episode=k))
    sampled = run(lambda policy, k: made.tabulated(made.play(TablePolicy(policy), seed=5, episode=k)[0]))
    for one, other in zip(direct, sampled, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)


def test_an_environment_that_ends_with_its_steps_is_cut_and_not_over() -> None:
    played, _ = GymEnvironment("belated/NChain-v0", size=5).play(Always(1), seed=0, episode=0)
    assert (len(played.actions), played.terminated) == (13, False)


@pytest.mark.parametrize(
    ("environment", "settings", "optimum"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, 1.0),
        ("CliffWalking-v1", {"horizon": 50}, -13.0),
        ("belated/RiverSwim-v0", {}, 7.0780),
        ("belated/RiverSwim-v0", {"states": 10, "horizon": 50}, RiverSwim(10, 50).optimal_value),
        ("CartPole-v1", {}, None),
        ("belated/DeepSea-v0", {"size": 50}, None),
    ],
)
def test_exact_values_where_there_is_a_table(environment: str, settings: dict[str, Any], optimum: float | None) -> None:
    made = GymEnvironment(environment, **settings)
    assert made.optimal_value == (None if optimum is None else pytest.approx(optimum, abs=1e-2))
    if made.table is not None:
        policy = made.table.optimal_policy()
        if not made.table.bernoulli and environment != "belated/RiverSwim-v0":
            played, earned = made.play(TablePolicy(policy), seed=0, episode=0)
            assert earned == pytest.approx(optimum)
            again = made.tabulated(played)
            low, high = made.reward_range
            assert again.rewards.sum() * (high - low) + low * made.horizon == pytest.approx(optimum)
            assert len(again.actions) == made.horizon


def test_mean_returns_are_the_values_of_the_table() -> None:
    made = GymEnvironment("Taxi-v4", horizon=30)
    assert made.table is not None
    policy = made.table.optimal_policy()
    values = made.in_rewards(made.table.values(policy))[0]
    returns, expected = [], []
    for k in range(200):
        played, earned = made.play(TablePolicy(policy), seed=0, episode=k)
        returns.append(earned)
        expected.append(values[int(played.states[0].indices[0])])
    np.testing.assert_allclose(returns, expected)  # nothing is random after the start


def make_lake(size: str = "4x4") -> Any:
    return gymnasium.make("FrozenLake-v1", map_name=size)


ROUND_TRIPS = [
    GymEnvironment("MountainCar-v0"),
    GymEnvironment("CartPole-v1", horizon=50, features=Fourier(order=1), reward_range=(0, 2)),
    GymEnvironment("FrozenLake-v1", is_slippery=False, map_name="8x8"),
    GymEnvironment("CartPole-v1", features={"features": "tiles", "tilings": 4}),
    GymEnvironment(make_lake, size="8x8"),
]


@pytest.mark.parametrize("made", ROUND_TRIPS, ids=lambda made: made.label)
def test_round_trips(made: GymEnvironment) -> None:
    values = json.loads(json.dumps(made.to_dict()))
    for again in (any_environment_from_dict(values), pickle.loads(pickle.dumps(made))):
        assert isinstance(again, GymEnvironment)
        assert again.to_dict() == made.to_dict()
        assert again.describe() == made.describe()
        assert (again.label, repr(again)) == (made.label, repr(made))
        one, other = (each.play(Uniform(made.actions, 0), seed=1, episode=1)[0] for each in (made, again))
        assert same(one, other)
    assert json.loads(json.dumps(made.describe())) == made.describe()


def test_labels_are_safe_and_tell_settings_apart() -> None:
    labels = [made.label for made in ROUND_TRIPS]
    assert labels[0] == "MountainCar-v0"
    assert labels[1] == "CartPole-v1-h50-fourier"
    assert labels[2] == "FrozenLake-v1-is_slippery=False-map_name=8x8"
    assert labels[4] == "make_lake-size=8x8"
    assert GymEnvironment("belated/Chain-v0", size=4).label == "belated-Chain-v0-size=4"


def test_a_function_without_a_name_works_here_but_not_elsewhere() -> None:
    made = GymEnvironment(lambda: gymnasium.make("CartPole-v1"))
    made.play(Always(0), seed=0, episode=0)
    with pytest.raises(InvalidInputError, match="id_or_factory must be an id, or a function with a name"):
        made.to_dict()
    with pytest.raises(InvalidInputError, match="an id, or a function that can be imported by name, to be"):
        pickle.dumps(made)
    other = GymEnvironment(lambda: gymnasium.make("CartPole-v1", max_episode_steps=9))
    assert made.describe() == GymEnvironment(lambda: gymnasium.make("CartPole-v1")).describe()
    assert made.describe() != other.describe()


def test_threads_do_not_disturb_one_another() -> None:
    made = GymEnvironment("CartPole-v1", horizon=60)
    expected = [made.play(Uniform(2, k), seed=0, episode=k)[0] for k in range(8)]
    found: dict[int, SampledTrajectory] = {}

    def play(k: int) -> None:
        found[k] = made.play(Uniform(2, k), seed=0, episode=k)[0]

    threads = [threading.Thread(target=play, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(found[k], expected[k]) for k in range(8))


class Mine:
    """A feature map that knows nothing of the library."""

    size = 2

    def encode(self, observation: Any) -> Encoded:
        return Encoded(np.array([0, 1]), np.array([1.0, float(observation)]))


def test_features_of_your_own() -> None:
    made = GymEnvironment(Odd, horizon=3, features=Mine())
    assert made.play(Always(0), seed=0, episode=0)[0].states[0].values[0] == 1.0
    assert made.describe()["found"]["features"]["size"] == 2
    with pytest.raises(InvalidInputError, match=r"features must be one of belated.features, to be saved"):
        made.to_dict()
    hot = GymEnvironment(Odd, horizon=3, features=OneHot())
    assert hot.features == OneHot(sizes=(3,))
