"""What a `GymEnvironment` refuses, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from odd_worlds import Always, Odd

from belated import RiverSwim
from belated.environments import GymEnvironment, any_environment_from_dict, as_gymnasium
from belated.errors import BelatedError
from belated.features import FromCallable


def growing() -> Any:
    calls: list[float] = []

    def features(observation: Any) -> list[float]:
        if len(calls) < 40:
            calls.append(0.0)
        return [1.0] if len(calls) < 40 else [1.0, 2.0]

    return features


def nan_after_reset() -> Any:
    return Odd(space=spaces.Box(0, 1, (2,)), observe=np.array([0.5, np.nan]))


def play(made: GymEnvironment) -> None:
    for k in range(20):
        made.play(Always(0), seed=0, episode=k)


wrong: Any = 3
BAD: list[tuple[Any, str]] = [
    (lambda: GymEnvironment("Pendulum-v1"), r"the action space must be Discrete: .* got Box\(-2\.0"),
    (lambda: GymEnvironment(Odd, horizon=3, actions=spaces.MultiDiscrete([2, 2])), "the action space must be Discrete"),
    (lambda: GymEnvironment("CliffWalking-v1"), "horizon must be given, since CliffWalking-v1 has no limit of steps"),
    (lambda: GymEnvironment(Odd), "horizon must be given, since Odd has no limit of steps"),
    (lambda: GymEnvironment("CartPole-v1", horizon=0), "horizon must be a whole number >= 1, got 0"),
    (lambda: GymEnvironment("belated/NChain-v0", horizon=9), "'nchain' has the fields size, slip, got 'horizon'"),
    (lambda: GymEnvironment(as_gymnasium, mdp=RiverSwim(), horizon=9), "horizon must be left out: .* has its own, 20"),
    (lambda: GymEnvironment("CartPole-v7"), "id_or_factory 'CartPole-v7' cannot be made: "),
    (lambda: GymEnvironment("CartPole-v1", wheels=3), "id_or_factory 'CartPole-v1' cannot be made: .*wheels"),
    (lambda: GymEnvironment(wrong), "id_or_factory must be an environment's id, or a function that makes it, got 3"),
    (lambda: GymEnvironment(dict), r"id_or_factory must be an id or function that makes a gymnasium.Env, got \{\}"),
    (lambda: GymEnvironment(Odd, horizon=3, space=spaces.Text(3)), "the observation space must be Discrete, Multi"),
    (lambda: GymEnvironment(Odd, horizon=3, space=spaces.Box(0, 1, (50,))), "features must be given for observations"),
    (
        lambda: GymEnvironment(Odd, horizon=3, features=wrong),
        "features must be one of belated.features, or an",
    ),
    (
        lambda: GymEnvironment("CartPole-v1", reward_range=(1, 1)),
        "reward_range must be a pair",
    ),
    (
        lambda: GymEnvironment(Odd, horizon=3, reward=0.0),
        r"must be given, such as \(0, 1\): all 60 rewards",
    ),
    (lambda: GymEnvironment(Odd, horizon=3, reward=float("nan")), "rewards must be finite, got nan in random play"),
    (
        lambda: play(GymEnvironment(Odd, horizon=3, reward=float("nan"), reward_range=(0, 1))),
        r"a reward of Odd must be finite and within \(0\.0, 1\.0\), got nan \(episode 0, step 0\)",
    ),
    (
        lambda: play(GymEnvironment(Odd, horizon=3, reward=2.0, reward_range=(0, 1))),
        r"a reward of Odd must be finite and within \(0\.0, 1\.0\), got 2\.0 \(episode 0, step 0\)",
    ),
    (
        lambda: play(GymEnvironment(Odd, horizon=3, observe=7)),
        r"an observation of Odd must be in its space, got 7 at index 0, which must be within \[0, 2\]",
    ),
    (
        lambda: play(GymEnvironment(nan_after_reset, horizon=3, reward_range=(0, 1))),
        "an observation of nan_after_reset must be in its space, got nan at index 1",
    ),
    (
        lambda: play(GymEnvironment(Odd, horizon=3, features=FromCallable(function=growing()))),
        "the function must always return 1 features, got 2",
    ),
    (
        lambda: GymEnvironment(Odd, horizon=3).play(Always(2), seed=0, episode=0),
        r"the policy's action must be a whole number in 0\.\.1, got 2",
    ),
    (lambda: GymEnvironment(Odd, horizon=3).play(Always(0), seed=-1, episode=0), "seed must be a whole number >= 0"),
    (
        lambda: GymEnvironment(Odd, horizon=3, observe=None, space=spaces.Discrete(3)).to_dict(),
        "space must be a number, a",
    ),
    (lambda: any_environment_from_dict({"environment": "gymnasium"}), "'gymnasium' needs either the field 'id' or the"),
    (
        lambda: any_environment_from_dict({"environment": "gymnasium", "id": "CartPole-v1", "steps": 3}),
        "'gymnasium' has the fields id, factory, horizon, features, reward_range, kwargs, got 'steps'",
    ),
    (
        lambda: any_environment_from_dict({"environment": "gymnasium", "factory": "nowhere:make"}),
        "factory 'nowhere:make' cannot be imported",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_bad_input_is_refused_in_words(call: Any, message: str) -> None:
    with pytest.raises(BelatedError, match=message):
        call()
