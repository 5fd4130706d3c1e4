"""Problems and trajectories are checked, copied and frozen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.types import Agent, Algorithm, Problem, SimulatorProblem, TablePolicy, TableProblem, Trajectory

PROBLEM = TableProblem(np.arange(24.0).reshape(2, 3, 4), 5)


def test_problem_knows_its_sizes() -> None:
    assert (PROBLEM.states, PROBLEM.actions, PROBLEM.dimension, PROBLEM.horizon) == (2, 3, 4, 5)


def test_problem_keeps_a_read_only_copy() -> None:
    features = np.ones((1, 2, 3), dtype=np.float32)
    problem = TableProblem(features, np.int64(2))  # type: ignore[arg-type]
    features[:] = 7.0
    assert problem.features.max() == 1.0
    assert problem.features.dtype == np.float64
    assert type(problem.horizon) is int
    with pytest.raises(ValueError, match="read-only"):
        problem.features[0, 0, 0] = 2.0


@pytest.mark.parametrize(
    ("features", "horizon", "message"),
    [
        (np.ones((2, 3)), 1, r"^features must have shape \(any, any, any\), got \(2, 3\)$"),
        (np.ones((0, 3, 2)), 1, r"^the number of states in features must be an integer >= 1, got 0$"),
        (np.ones((2, 0, 2)), 1, r"^the number of actions in features must be .*got 0$"),
        (np.ones((2, 3, 0)), 1, r"^the number of d in features must be .*got 0$"),
        (np.full((1, 1, 1), np.nan), 1, r"^features must be finite, got nan at index \(0, 0, 0\)$"),
        (np.ones((1, 1, 1)), 0, r"^horizon must be an integer >= 1, got 0$"),
        (np.ones((1, 1, 1)), 2.0, r"^horizon must be an integer >= 1, got 2\.0$"),
        ("features", 1, r"^features must be an array of numbers"),
    ],
)
def test_problem_refuses(features: Any, horizon: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TableProblem(features, horizon)


def fields(**changed: Any) -> dict[str, Any]:
    good = {"states": [0, 1, 1, 0, 1, 0], "actions": [0, 1, 2, 2, 0], "rewards": [0.0, 0.5, 1.0, 0.0, 0.25]}
    return {**good, **changed}


def test_check_returns_a_clean_copy() -> None:
    arrays: dict[str, Any] = {name: np.array(value) for name, value in fields().items()}
    given = Trajectory(**arrays)
    clean = given.check(PROBLEM)
    given.rows[:], given.actions[:], given.rewards[:] = 0, 0, 0.0
    assert clean.rows.tolist() == [0, 1, 1, 0, 1, 0]
    assert clean.actions.tolist() == [0, 1, 2, 2, 0]
    assert clean.rewards.tolist() == [0.0, 0.5, 1.0, 0.0, 0.25]
    for part in (clean.rows, clean.actions, clean.rewards):
        assert not part.flags.writeable
    assert Trajectory(**fields()).check(PROBLEM).rows.dtype == np.int64


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"states": [0] * 5}, r"^trajectory\.states must have shape \(6,\), got \(5,\)$"),
        ({"states": [0, 0, 0, 0, 0, 2]}, r"^trajectory\.states must hold integers in 0\.\.1, got 2$"),
        ({"states": [0.0] * 6}, r"^trajectory\.states must be an array of integers"),
        ({"actions": [0] * 6}, r"^trajectory\.actions must hold 1 to 5 actions from step 0 on, got 6$"),
        ({"actions": [0, 0, 3, 0, 0]}, r"^trajectory\.actions must hold integers in 0\.\.2, got 3$"),
        ({"actions": [0, 0, -1, 0, 0]}, r"^trajectory\.actions must hold integers in 0\.\.2, got -1$"),
        ({"rewards": [0.0] * 4}, r"^trajectory\.rewards must have shape \(5,\), got \(4,\)$"),
        ({"rewards": [0.0, 0.0, np.nan, 0.0, 0.0]}, r"^trajectory\.rewards must be finite, got nan at index \(2,\)$"),
        (
            {"rewards": [0.0, -0.5, 1.5, 0.0, 0.0]},
            r"^trajectory\.rewards must be within the problem's reward_range \[0, 1\], got -0\.5 at index \(1,\)$",
        ),
        ({"rewards": None}, r"^trajectory\.rewards must have shape"),
    ],
)
def test_check_refuses(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Trajectory(**fields(**changed)).check(PROBLEM)


def test_a_problem_states_its_range_of_rewards() -> None:
    features = np.ones((1, 1, 1))
    assert (TableProblem(features, 1).reward_range, TableProblem(features, 1).homogeneous) == ((0.0, 1.0), False)
    wide = TableProblem(features, 1, homogeneous=True, reward_range=[-3, np.int64(8)])  # type: ignore[arg-type]
    assert (wide.reward_range, wide.homogeneous) == ((-3.0, 8.0), True)
    late = Trajectory(np.zeros(2, np.int64), np.zeros(1, np.int64), np.array([8.0]))
    late.check(wide)
    late.check(TableProblem(features, 1, reward_range=(-np.inf, np.inf)))
    with pytest.raises(InvalidInputError, match=r"reward_range \[0, 7\.5\], got 8\.0"):
        late.check(TableProblem(features, 1, reward_range=(0, 7.5)))


@pytest.mark.parametrize("wrong", [None, 1.0, (0.0,), (1.0, 0.0), (0.0, 0.0), (0.0, np.nan), ("a", "b"), (0, 1, 2)])
def test_a_range_of_rewards_is_a_pair_that_rises(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^reward_range must be a pair \(low, high\) of numbers"):
        TableProblem(np.ones((1, 1, 1)), 1, reward_range=wrong)


def test_rewards_have_a_largest_magnitude() -> None:
    features, everything = np.ones((1, 1, 1)), (-np.inf, np.inf)
    with pytest.raises(InvalidInputError, match=r"^reward_range must be of magnitude at most 1e\+12, or infinite, got"):
        TableProblem(features, 1, reward_range=(0.0, 1e13))
    for reward, fits in ((1e12, True), (-1e12, True), (1.1e12, False), (1e160, False)):
        late = Trajectory(np.zeros(2, np.int64), np.zeros(1, np.int64), np.array([reward]))
        if fits:
            late.check(TableProblem(features, 1, reward_range=everything))
            continue
        with pytest.raises(InvalidInputError, match=r"^trajectory.rewards must be of magnitude at most 1e\+12, got 1"):
            late.check(TableProblem(features, 1, reward_range=everything))


@pytest.mark.parametrize(
    ("reward", "learned", "fits"),
    [(1.0, False, True), (1.0 + 1e-7, False, True), (1.1, False, False), (-0.1, False, False), (1.1, True, True)],
)
def test_rewards_of_a_simulator_are_within_a_stated_range(reward: float, learned: bool, fits: bool) -> None:
    """Up to single precision, in which many environments pay."""
    features = OneHot(start=(0,), sizes=(2,))
    problem = SimulatorProblem(features, 1, actions=2, learned_range=learned)
    late = Trajectory([features.encode(0), features.encode(1)], np.zeros(1, np.int64), np.array([reward]))
    if fits:
        assert late.check(problem).rewards[0] == reward
        return
    with pytest.raises(InvalidInputError, match=r"must be within the problem's reward_range \[0, 1\], got"):
        late.check(problem)


@pytest.mark.parametrize("wrong", [None, 1, "yes"])
def test_homogeneous_is_true_or_false(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^homogeneous must be True or False"):
        TableProblem(np.ones((1, 1, 1)), 1, homogeneous=wrong)


def test_policy_acts_by_its_table() -> None:
    policy = TablePolicy(np.array([[0, 2], [1, 0]]))
    assert [policy.act(h, s) for h in range(2) for s in range(2)] == [0, 2, 1, 0]
    assert type(policy.act(0, 1)) is int


def test_anything_of_the_right_shape_is_an_agent() -> None:
    class Mine:
        def plan(self, rng: np.random.Generator) -> TablePolicy:
            return TablePolicy(np.zeros((1, 1), np.int64))

        def learn(self, batch: Any) -> None: ...

    class Start:
        def start(self, problem: Problem) -> Mine:
            return Mine()

    assert isinstance(Mine(), Agent)
    assert isinstance(Start(), Algorithm)
    assert not isinstance(Start(), Agent)
    assert not isinstance(object(), Algorithm)
