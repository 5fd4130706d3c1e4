"""φ(s, a) of a function of observation and action."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refusals

from belated import GymEnvironment
from belated.errors import InvalidInputError
from belated.features import Joint
from belated.types import JointFeatureMap


def pairs(observation: Any, action: int) -> list[float]:
    return [1.0, float(observation) * action, float(action == 1)]


def position(observation: Any, action: int) -> list[float]:
    return [float(observation[0]), float(action), 0.0, float(observation[1]) * 10 * (action - 1)]


def test_rows_are_the_nonzero_entries_of_the_function() -> None:
    features = Joint(function=pairs, actions=3, width=3)
    given: Any = features
    assert isinstance(given, JointFeatureMap)
    for observation in (0.0, -2.0, 3.5):
        found = features.encode(observation)
        assert found.starts[0] == 0
        for action in range(3):
            row = np.zeros(3)
            entries = slice(found.starts[action], found.starts[action + 1])
            row[found.indices[entries]] = found.values[entries]
            assert row.tolist() == pairs(observation, action)
        assert (found.values != 0).all()
        assert found.indices.dtype == found.starts.dtype == np.int64


def test_actions_and_width_are_those_of_the_environment() -> None:
    made = GymEnvironment("MountainCar-v0", horizon=20, features=Joint(function=position))
    assert made.features.size == 4
    problem = made.problem
    assert (problem.joint, problem.actions, problem.dimension) == (True, 3, 4)
    values = json.loads(json.dumps(made.to_dict()))
    again = GymEnvironment.from_dict(values)
    assert again.to_dict() == made.to_dict()
    observation = made.reset(seed=0, episode=0)
    for one, other in zip(made.encode(observation), again.encode(again.reset(seed=0, episode=0)), strict=True):
        np.testing.assert_array_equal(one, other)


def restless() -> Callable[[Any, int], Any]:
    calls: list[int] = []

    def function(observation: Any, action: int) -> list[float]:
        calls.append(action)
        return [1.0, float(len(calls))]

    return function


@refusals(
    (lambda: Joint(function=3), "function must be a function, or a name of the form"),  # type: ignore[arg-type]
    (lambda: Joint(function=pairs, actions=0), "actions must be an integer >= 1, got 0"),
    (lambda: Joint(function=pairs, width=0), "width must be an integer >= 1, got 0"),
    (lambda: Joint(function=pairs, actions=3).size, "width must be given, or inferred from an environment"),
    (lambda: Joint(function=pairs, width=3).encode(1.0), "actions must be given, or inferred from an environment"),
    (lambda: Joint(function=pairs, actions=2, width=4).encode(1.0), "function must be returning 4 finite numbers"),
    (
        lambda: Joint(function=lambda o, a: [np.inf], actions=1, width=1).encode(1.0),
        "the function must return finite features, got inf",
    ),
    (
        lambda: GymEnvironment("MountainCar-v0", features=Joint(function=position, actions=2)),
        "actions must be 3, the number of actions of the environment, got 2",
    ),
    (lambda: GymEnvironment("MountainCar-v0", features=Joint(function=restless())), "function must be deterministic"),
    (
        lambda: Joint(function=lambda o, a: [1.0]).to_dict(),
        "function must be importable as",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
