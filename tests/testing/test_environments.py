"""The conformance suite of environments: ours pass it, and every way of breaking the contract is caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated import GymEnvironment, LinearBandit, RiverSwim
from belated.testing import check_environment
from belated.types import Step

OURS = [RiverSwim(states=4, horizon=5), LinearBandit(dimension=3, actions=3), GymEnvironment("CartPole-v1", horizon=20)]


@pytest.mark.parametrize("environment", OURS, ids=lambda environment: environment.label)
def test_ours_conform(environment: Any) -> None:
    check_environment(environment)


class River(RiverSwim):
    def __init__(self) -> None:
        super().__init__(states=4, horizon=5)


class LabelWithASlash(River):
    label = "a/b"


class NotPlain(River):
    def describe(self) -> dict[str, Any]:
        return {"table": np.zeros(3)}


class AsGymnasiumSteps(River):
    def step(self, action: int) -> Any:
        return (*super().step(action), {})


class EndlessReward(River):
    def step(self, action: int) -> Step:
        return super().step(action)._replace(reward=float("inf"))


class StateOutside(River):
    def encode(self, observation: int) -> int:
        return observation + 4


class GoesOn(River):
    """Goes on with the random numbers of the last episode."""

    def reset(self, *, seed: int, episode: int) -> int:
        self._count = getattr(self, "_count", 0) + 1
        return super().reset(seed=seed, episode=self._count)


class OneEpisodeForAllThreads(River):
    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_playing"] = type("Shared", (), {})()


class Fails(River):
    def step(self, action: int) -> Step:
        raise KeyError("broken")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (LabelWithASlash, "label must be letters, digits"),
        (NotPlain, r"describe\(\) must return plain values"),
        (AsGymnasiumSteps, r"step must return \(observation, reward, terminated, truncated\)"),
        (EndlessReward, "a reward must be finite, got inf"),
        (StateOutside, "episode 0 of riverswim-4-h5 cannot be learned"),
        (GoesOn, "differs when it is played after other episodes"),
        (OneEpisodeForAllThreads, "another thread plays|threads do not disturb each other"),
        (Fails, "the environment raised KeyError"),
        (object, "an environment must have 'label'"),
    ],
)
def test_every_mistake_is_caught(environment: type, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_environment(environment())
