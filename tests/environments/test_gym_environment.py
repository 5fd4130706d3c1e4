from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from odd_worlds import Always, Countdown, Odd, Uniform
from refusals import refusals

from belated import DelayedPSVI, Feedback, FiniteMDP, Poisson, RiverSwim, SyntheticLinearMDP
from belated._kernels.streams import stream
from belated.delays import FeedbackQueue
from belated.environments import GymEnvironment, any_environment_from_dict, as_gymnasium
from belated.environments._gym_environment import episode_seed
from belated.environments._play import play
from belated.errors import BelatedError, InvalidInputError
from belated.features import Fourier, FromCallable, Tiles
from belated.types import SparseVector, TablePolicy, Trajectory


def same(one: Trajectory, other: Trajectory) -> bool:
    return (
        len(one.states) == len(other.states)
        and all(np.array_equal(a.indices, b.indices) for a, b in zip(one.states, other.states, strict=True))
        and all(np.array_equal(a.values, b.values) for a, b in zip(one.states, other.states, strict=True))
        and np.array_equal(one.actions, other.actions)
        and np.array_equal(one.rewards, other.rewards)
        and one.terminated == other.terminated
    )


class InOneHots:
    """The policy of a table where states are one-hot features."""

    def __init__(self, policy: TablePolicy) -> None:
        self.policy = policy

    def act(self, step: int, state: SparseVector) -> int:
        return self.policy.act(step, int(state.indices[0]))


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
    played = play(made, Uniform(actions, 0), seed=0, episode=0)
    earned = float(played.rewards.sum())
    assert earned == np.cumsum(played.rewards)[-1]
    assert 1 <= len(played.actions) <= horizon
    assert len(played.states) == len(played.actions) + 1 == len(played.rewards) + 1
    assert played.actions.dtype == np.int64 and played.rewards.dtype == np.float64


def test_an_episode_depends_on_the_seed_and_its_number_alone() -> None:
    made, other = GymEnvironment("CartPole-v1"), GymEnvironment("CartPole-v1")
    straight = [play(made, Uniform(2, k), seed=3, episode=k) for k in range(6)]
    for k in (4, 0, 5, 2):  # any order, as after a run was stopped
        assert same(play(other, Uniform(2, k), seed=3, episode=k), straight[k])
    assert not same(play(made, Uniform(2, 0), seed=4, episode=0), straight[0])
    assert len({episode_seed(s, k) for s in range(30) for k in range(30)}) == 900


def test_an_episode_is_that_of_gymnasium_with_the_derived_seed() -> None:
    made = GymEnvironment("MountainCar-v0", horizon=30, features=Tiles())
    played = play(made, Uniform(3, 1), seed=2, episode=7)
    earned = float(played.rewards.sum())
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
    played = play(made, Always(0), seed=0, episode=0)
    earned = float(played.rewards.sum())
    assert (len(played.actions), played.terminated, earned) == (3, terminal, 3.0)
    cut = play(GymEnvironment(Countdown, horizon=2), Always(0), seed=0, episode=0)
    assert (len(cut.actions), cut.terminated) == (2, False)
    exactly = play(GymEnvironment(Countdown, horizon=3), Always(0), seed=0, episode=0)
    assert (len(exactly.actions), exactly.terminated) == (3, True)


def test_the_horizon_of_an_id_can_be_longer_than_its_own() -> None:
    made = GymEnvironment("MountainCar-v0", horizon=260)
    played = play(made, Always(1), seed=0, episode=0)
    earned = float(played.rewards.sum())
    assert (len(played.actions), earned, played.terminated) == (260, -260.0, False)


def test_actions_that_do_not_start_at_zero() -> None:
    made = GymEnvironment(Odd, horizon=4)
    played = play(made, Always(1), seed=0, episode=0)
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
    one = play(made, Always(0), seed=1, episode=2)
    other = play(again, Always(0), seed=1, episode=2)
    assert same(one, other)


@pytest.mark.parametrize("mdp", [RiverSwim(states=4, horizon=6), SyntheticLinearMDP(actions=5, horizon=6)])
def test_our_environments_give_the_policies_of_the_direct_path(mdp: FiniteMDP) -> None:
    """A run by hand through Gymnasium, beside the same run on the tables: the same seeds, the same policies."""
    made = GymEnvironment(as_gymnasium, mdp=mdp)
    assert made.table is mdp
    assert made.problem.homogeneous == isinstance(mdp, RiverSwim)
    delays = Poisson(3).sample(stream(5, "delay"), 40).tolist()

    def run(rollout: Any) -> list[TablePolicy]:
        agent, rng, buffer = DelayedPSVI().start(mdp.problem), stream(5, "agent"), FeedbackQueue[Trajectory]()
        policies = []
        for k, delay in enumerate(delays):
            agent.learn([Feedback(origin, late) for origin, late in buffer.arrived(k)])
            policies.append(agent.plan(rng))
            buffer.add(k, delay, rollout(policies[-1], k))
        return policies

    environment = stream(5, "environment")
    direct = run(lambda policy, k: mdp.rollout(policy, environment, episode=k))
    sampled = run(lambda policy, k: made.tabulated(play(made, InOneHots(policy), seed=5, episode=k)))
    for one, other in zip(direct, sampled, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)


def test_an_environment_that_ends_with_its_steps_is_cut_and_not_over() -> None:
    played = play(GymEnvironment("belated/NChain-v0", size=5), Always(1), seed=0, episode=0)
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
            played = play(made, InOneHots(policy), seed=0, episode=0)
            earned = float(played.rewards.sum())
            assert earned == pytest.approx(optimum)
            again = made.tabulated(played)
            low, high = made.reward_range
            assert again.rewards.sum() * (high - low) + low * made.horizon == pytest.approx(optimum)
            assert len(again.actions) == made.horizon


def test_a_discount_counts_for_agents_and_in_exact_values() -> None:
    made = GymEnvironment("CliffWalking-v1", horizon=20, discount=0.9)
    assert made.problem.discount == 0.9
    assert made.optimal_value == pytest.approx(-sum(0.9**h for h in range(13)))  # 13 steps, of -1 each
    river = GymEnvironment("belated/RiverSwim-v0")
    assert river.problem.discount == 1.0


def test_mean_returns_are_the_values_of_the_table() -> None:
    made = GymEnvironment("Taxi-v4", horizon=30)
    assert made.table is not None
    policy = made.table.optimal_policy()
    values = made.in_rewards(made.table.values(policy))[0]
    returns, expected = [], []
    for k in range(200):
        played = play(made, InOneHots(policy), seed=0, episode=k)
        earned = float(played.rewards.sum())
        returns.append(earned)
        expected.append(values[int(played.states[0].indices[0])])
    np.testing.assert_allclose(returns, expected)  # nothing is random after the start


def make_lake(size: str = "4x4") -> gymnasium.Env[Any, Any]:
    return gymnasium.make("FrozenLake-v1", map_name=size)


ROUND_TRIPS = [
    GymEnvironment("MountainCar-v0"),
    GymEnvironment("CartPole-v1", horizon=50, features=Fourier(order=1), reward_range=(0, 2)),
    GymEnvironment("FrozenLake-v1", is_slippery=False, map_name="8x8"),
    GymEnvironment("CartPole-v1", features={"features": "tiles", "tilings": 4}),
    GymEnvironment(make_lake, size="8x8", discount=0.99),
]


@pytest.mark.parametrize("made", ROUND_TRIPS, ids=lambda made: made.label)
def test_round_trips(made: GymEnvironment) -> None:
    values = json.loads(json.dumps(made.to_dict()))
    for again in (any_environment_from_dict(values), pickle.loads(pickle.dumps(made))):
        assert isinstance(again, GymEnvironment)
        assert again.to_dict() == made.to_dict()
        assert again.describe() == made.describe()
        assert (again.label, repr(again)) == (made.label, repr(made))
        one, other = (play(each, Uniform(made.actions, 0), seed=1, episode=1) for each in (made, again))
        assert same(one, other)
    assert json.loads(json.dumps(made.describe())) == made.describe()


def test_labels_are_safe_and_tell_settings_apart() -> None:
    labels = [made.label for made in ROUND_TRIPS]
    assert labels[0] == "MountainCar-v0"
    assert labels[1] == "CartPole-v1-h50-fourier"
    assert labels[2] == "FrozenLake-v1-is_slippery=False-map_name=8x8"
    assert labels[4] == "make_lake-size=8x8-discount=0.99"
    assert GymEnvironment("belated/Chain-v0", size=4).label == "belated-Chain-v0-size=4"


def test_a_function_without_a_name_works_here_but_not_elsewhere() -> None:
    made = GymEnvironment(lambda: gymnasium.make("CartPole-v1"))
    play(made, Always(0), seed=0, episode=0)
    with pytest.raises(InvalidInputError, match="id_or_factory must be an id, or a function with a name"):
        made.to_dict()
    with pytest.raises(InvalidInputError, match="an id, or a function that can be imported by name, to be"):
        pickle.dumps(made)
    other = GymEnvironment(lambda: gymnasium.make("CartPole-v1", max_episode_steps=9))
    assert made.describe() == GymEnvironment(lambda: gymnasium.make("CartPole-v1")).describe()
    assert made.describe() != other.describe()


def test_threads_do_not_disturb_one_another() -> None:
    made = GymEnvironment("CartPole-v1", horizon=60)
    expected = [play(made, Uniform(2, k), seed=0, episode=k) for k in range(8)]
    found: dict[int, Trajectory] = {}

    def play_one(k: int) -> None:
        found[k] = play(made, Uniform(2, k), seed=0, episode=k)

    threads = [threading.Thread(target=play_one, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(found[k], expected[k]) for k in range(8))


def growing() -> Any:
    calls: list[float] = []

    def features(observation: Any) -> list[float]:
        if len(calls) < 40:
            calls.append(0.0)
        return [1.0] if len(calls) < 40 else [1.0, 2.0]

    return features


def nan_after_reset() -> Any:
    return Odd(space=spaces.Box(0, 1, (2,)), observe=np.array([0.5, np.nan]))


def play_some(made: GymEnvironment) -> None:
    for k in range(20):
        play(made, Always(0), seed=0, episode=k)


@refusals(
    (lambda: GymEnvironment("CliffWalking-v1"), "horizon must be given, since CliffWalking-v1 has no limit of steps"),
    (lambda: GymEnvironment(Odd), "horizon must be given, since Odd has no limit of steps"),
    (lambda: GymEnvironment("CartPole-v1", horizon=0), "horizon must be an integer >= 1, got 0"),
    (lambda: GymEnvironment("belated/NChain-v0", horizon=9), "nchain has no setting 'horizon'"),
    (lambda: GymEnvironment(as_gymnasium, mdp=RiverSwim(), horizon=9), "horizon must be left out: .* has its own, 20"),
    (lambda: GymEnvironment("CartPole-v7"), "id_or_factory 'CartPole-v7' cannot be made: "),
    (lambda: GymEnvironment("CartPole-v1", wheels=3), "id_or_factory 'CartPole-v1' cannot be made: .*wheels"),
    (
        lambda: GymEnvironment(3),  # type: ignore[arg-type]
        "id_or_factory must be an environment's id, or a function that makes it, got 3",
    ),
    (lambda: GymEnvironment(dict), r"id_or_factory must be an id or function that makes a gymnasium.Env, got \{\}"),
    (
        lambda: play_some(GymEnvironment(Odd, horizon=3, reward=float("nan"), reward_range=(0, 1))),
        r"a reward of Odd \(episode 0, step 0\) must be a finite number of magnitude at most 1e\+12, got nan",
    ),
    (
        lambda: play_some(GymEnvironment(Odd, horizon=3, reward=2.0, reward_range=(0, 1))),
        r"a reward of Odd \(episode 0, step 0\) must be within \(0\.0, 1\.0\), got 2\.0",
    ),
    (
        lambda: play_some(GymEnvironment(Odd, horizon=3, observe=7)),
        r"an observation of Odd must be in its space, got 7 at index 0, which must be within \[0, 2\]",
    ),
    (
        lambda: play_some(GymEnvironment(nan_after_reset, horizon=3, reward_range=(0, 1))),
        "an observation of nan_after_reset must be in its space, got nan at index 1",
    ),
    (
        lambda: play_some(GymEnvironment(Odd, horizon=3, features=FromCallable(function=growing()))),
        "the function must always return 1 features, got 2",
    ),
    (
        lambda: play(GymEnvironment(Odd, horizon=3), Always(2), seed=0, episode=0),
        r"the policy's action must be an integer in 0\.\.1, got 2",
    ),
    (lambda: play(GymEnvironment(Odd, horizon=3), Always(0), seed=-1, episode=0), "seed must be an integer >= 0"),
    (
        lambda: GymEnvironment(Odd, horizon=3, observe=None, space=spaces.Discrete(3)).to_dict(),
        "space must be a number, a",
    ),
    (lambda: GymEnvironment("CartPole-v1", discount=1.5), r"discount must be"),
    (lambda: GymEnvironment("belated/RiverSwim-v0", discount=0.5), "discount must be left out: .* has its own, 1, got"),
    (lambda: any_environment_from_dict({"environment": "gymnasium"}), "'gymnasium' needs either the field 'id' or the"),
    (
        lambda: any_environment_from_dict({"environment": "gymnasium", "id": "CartPole-v1", "steps": 3}),
        "'gymnasium' has the fields id, factory, horizon, features, reward_range, discount, kwargs, got 'steps'",
    ),
    (
        lambda: any_environment_from_dict({"environment": "gymnasium", "factory": "nowhere:make"}),
        "factory 'nowhere:make' cannot be imported",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BelatedError, match=message):
        call()
