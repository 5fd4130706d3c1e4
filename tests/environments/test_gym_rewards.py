"""The range of rewards: known, or learned from random play."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import pytest
from odd_worlds import Always, Odd
from refusals import refusals

from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.errors import BelatedError


def test_rewards_are_learned_from_random_play() -> None:
    assert GymEnvironment(Odd, horizon=5, reward=-2.5).reward_range == (-2.5, 0.0)
    assert GymEnvironment("CartPole-v1", sutton_barto_reward=True).reward_range == (-1.0, 0.0)
    wrapped = partial(
        gymnasium.wrappers.TransformReward, gymnasium.make("FrozenLake-v1"), lambda reward: 7 - float(reward)
    )
    assert GymEnvironment(wrapped, horizon=9).reward_range == (0.0, 7.0)
    made = GymEnvironment(Odd, horizon=5)
    made._env.reward = 9.0  # beyond what was learned, which is not refused
    assert play(made, Always(0), seed=0, episode=0).rewards.sum() == 45.0


@refusals(
    (
        lambda: GymEnvironment(Odd, horizon=3, reward=0.0),
        r"must be given, such as \(0, 1\): all 60 rewards",
    ),
    (
        lambda: GymEnvironment(Odd, horizon=3, reward=float("nan")),
        "a reward of Odd in random play must be a finite number",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BelatedError, match=message):
        call()
