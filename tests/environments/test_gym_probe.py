"""What is found out about an environment of Gymnasium before it is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from odd_worlds import Always, Odd
from refusals import refusals

from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.errors import BelatedError, InvalidInputError
from belated.features import Adaptive, OneHot, Tiles
from belated.types import SparseVector


def test_ranges_of_a_map_that_is_given_are_stated_or_those_of_random_play() -> None:
    features = GymEnvironment("CartPole-v1", features=Tiles()).features
    assert isinstance(features, Tiles) and features.low is not None and features.high is not None
    assert features.high[0] == pytest.approx(4.8) and features.high[2] == pytest.approx(0.41887903)
    assert all(
        0.5 < abs(bound) < 10 for bound in (features.low[1], features.high[1], features.low[3], features.high[3])
    )
    left = GymEnvironment("CartPole-v1").features
    assert isinstance(left, Adaptive) and left.first == features and left.size == 4


class Mine:
    """A feature map that knows nothing of the library."""

    size = 2

    def encode(self, observation: Any) -> SparseVector:
        return SparseVector(np.array([0, 1]), np.array([1.0, float(observation)]))


def test_features_of_your_own() -> None:
    made = GymEnvironment(Odd, horizon=3, features=Mine())
    first = play(made, Always(0), seed=0, episode=0).states[0]
    assert isinstance(first, SparseVector)
    assert first.values[0] == 1.0
    assert made.describe()["found"]["features"]["size"] == 2
    with pytest.raises(InvalidInputError, match=r"features must be one of belated.features, to be saved"):
        made.to_dict()
    hot = GymEnvironment(Odd, horizon=3, features=OneHot())
    assert hot.features == OneHot(sizes=(3,))


@refusals(
    (lambda: GymEnvironment("Pendulum-v1"), r"the action space must be Discrete: .* got Box\(-2\.0"),
    (lambda: GymEnvironment(Odd, horizon=3, actions=spaces.MultiDiscrete([2, 2])), "the action space must be Discrete"),
    (
        lambda: GymEnvironment(Odd, horizon=3, space=spaces.Graph(spaces.Text(3), None)),
        "the observation space must be Discrete, Multi",
    ),
    (lambda: GymEnvironment(Odd, horizon=3, space=spaces.Box(0, 1, (5000,))), "features must be given for observatio"),
    (
        lambda: GymEnvironment("CartPole-v1", features="learnt"),
        "features must be one of 'automatic', 'learned', or a feature map, got 'learnt'; did you mean 'learned'",
    ),
    (
        lambda: GymEnvironment(Odd, horizon=3, features=3),  # type: ignore[arg-type]
        "features must be one of belated.features, or an",
    ),
    (
        lambda: GymEnvironment("CartPole-v1", reward_range=(1, 1)),
        "reward_range must be a pair",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BelatedError, match=message):
        call()
