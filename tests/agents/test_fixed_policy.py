"""A fixed policy is a table that fits the problem, played as it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.agents import (
    FixedPolicy,
)
from belated.environments import RiverSwim
from belated.errors import InvalidInputError
from belated.types import Feedback


@pytest.mark.parametrize(
    "actions",
    [None, [0, 1], [[0.0, 1.0]], [[-1, 0]], [["a"]], [[[0]]], "actions", [[0], [0, 1]]],
)
def test_a_fixed_policy_must_be_a_table(actions: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^actions must"):
        FixedPolicy(actions=actions)


@pytest.mark.parametrize(
    "actions", [np.zeros((2, 3), np.int64), np.zeros((3, 2), np.int64), np.full((3, 3), 2), np.zeros((0, 3), int)]
)
def test_a_fixed_policy_must_fit_the_problem(actions: Any) -> None:
    policy = FixedPolicy(actions=actions)
    with pytest.raises(InvalidInputError, match=r"^actions must"):
        policy.start(RiverSwim(states=3, horizon=3).problem)


def test_a_fixed_policy_is_played_as_given() -> None:
    mdp = RiverSwim(states=3, horizon=2)
    table = np.array([[0, 1, 1], [1, 0, 1]])
    settings = FixedPolicy(actions=table)
    agent, rng = settings.start(mdp.problem), np.random.default_rng(0)
    first = agent.plan(rng)
    first.actions[:] = 0  # what was handed out is the caller's
    table[:] = 0
    agent.learn([Feedback(0, mdp.rollout(first, rng))])
    assert agent.plan(rng).actions.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert settings.actions == ((0, 1, 1), (1, 0, 1))
