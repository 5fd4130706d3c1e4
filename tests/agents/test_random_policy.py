"""A random policy takes every action as often as any other."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from belated import Feedback, InvalidInputError
from belated.agents import RandomPolicy
from belated.environments import RandomLinearMDP
from belated.features import OneHot
from belated.types import SimulatorProblem, SparseVector, Trajectory


def test_a_random_policy_is_uniform() -> None:
    mdp = RandomLinearMDP(states=4, actions=5, horizon=3)
    agent, rng = RandomPolicy().start(mdp.problem), np.random.default_rng(0)
    plans = np.array([agent.plan(rng).actions for _ in range(4000)])
    counts = np.stack([(plans == action).sum(axis=0) for action in range(5)])
    statistic = ((counts - 800.0) ** 2 / 800.0).sum(axis=0)
    assert statistic.max() < 28.0  # P(χ²₄ > 28) ≈ 1e-5 for each of 12 cells
    assert statistic.sum() < 103.0  # P(χ²₄₈ > 103) ≈ 1e-5
    pairs = np.bincount(plans[:, 0, 0] * 5 + plans[:, 0, 1], minlength=25)
    assert ((pairs - 160.0) ** 2 / 160.0).sum() < 66.0  # P(χ²₂₄ > 66) ≈ 1e-5: entries are independent


def test_without_a_table_it_is_uniform_too_and_refuses_bad_feedback() -> None:
    problem = SimulatorProblem(actions=5, horizon=3, features=OneHot(sizes=(4,)), reward_range=(0.0, 1.0))
    agent, state = RandomPolicy().start(problem), SparseVector(np.array([1]), np.ones(1))
    plans = [agent.plan(np.random.default_rng(seed)) for seed in range(1000)]
    counts = np.bincount([plan.act(step, state) for plan in plans for step in range(4)], minlength=5)
    assert ((counts - 800.0) ** 2 / 800.0).sum() < 28.0  # P(χ²₄ > 28) ≈ 1e-5
    good, bad = (
        cast(Any, Trajectory([state] * 2, np.array([action]), np.array([1.0]), terminated=False))
        for action in (4, 5)
    )
    agent.learn([Feedback(0, good)])
    with pytest.raises(InvalidInputError, match="action"):
        agent.learn([Feedback(0, good), Feedback(1, bad)])
