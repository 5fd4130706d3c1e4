"""Distributions that look at what happened."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated import testing
from belated.delays import (
    NEVER,
    Constant,
    DelayByAction,
    DelayByReward,
    DelayDistribution,
    Fixed,
    Geometric,
    IndependentDelays,
    Lossy,
    OutcomeDelays,
    Poisson,
    delay_from_dict,
    delay_from_text,
)
from belated.errors import InvalidInputError
from belated.types import Trajectory

BY_ACTION = DelayByAction([Constant(3), Poisson(20), Lossy(Geometric(5), 0.25)])
CONVERSIONS = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(20))


def episode(actions: list[int], rewards: list[float]) -> Trajectory:
    return Trajectory(np.zeros(len(actions) + 1, np.int64), np.array(actions), np.array(rewards))


@pytest.mark.parametrize("distribution", [BY_ACTION, CONVERSIONS], ids=lambda distribution: distribution.label)
def test_each_column_is_what_its_distribution_draws_from_the_same_stream(distribution: OutcomeDelays) -> None:
    drawn = distribution.sample(np.random.default_rng(4), 500)
    assert drawn.shape == (500, len(distribution.distributions_by_outcome))
    for column, each in zip(drawn.T, distribution.distributions_by_outcome, strict=True):
        np.testing.assert_array_equal(column, each.sample(np.random.default_rng(4), 500))


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 60), more=st.integers(0, 60), seed=st.integers(0, 1000))
def test_a_longer_sample_only_adds_to_it_and_takes_one_uniform_an_episode(count: int, more: int, seed: int) -> None:
    rng, reference = np.random.default_rng(seed), np.random.default_rng(seed)
    drawn = BY_ACTION.sample(rng, count + more)
    np.testing.assert_array_equal(drawn[:count], BY_ACTION.sample(np.random.default_rng(seed), count))
    reference.random(count + more)
    assert rng.bit_generator.state == reference.bit_generator.state


def test_a_longer_distribution_is_longer_for_every_episode() -> None:
    drawn = DelayByAction([Poisson(5), Poisson(6), Poisson(60)]).sample(np.random.default_rng(0), 1000)
    assert (np.diff(drawn, axis=1) >= 0).all()


def test_the_outcome_is_the_first_action() -> None:
    assert [BY_ACTION.outcome(episode([a, 2 - a], [0, 0])) for a in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("rewards", "outcome"),
    [([0.0], 0), ([1.0], 1), ([-0.5], 0), ([1.0, -1.0], 0), ([-1.0, 1.5], 1), ([0.0, 0.0], 0)],
)
def test_the_outcome_is_whether_the_rewards_add_up_to_something(rewards: list[float], outcome: int) -> None:
    assert CONVERSIONS.outcome(episode([0] * len(rewards), rewards)) == outcome


def test_what_is_never_reported_has_no_delay() -> None:
    drawn = CONVERSIONS.sample(np.random.default_rng(0), 300)
    assert (drawn[:, 0] == NEVER).all()
    assert (drawn[:, 1] < NEVER).all()


@pytest.mark.parametrize("distribution", [BY_ACTION, CONVERSIONS], ids=lambda distribution: distribution.label)
def test_round_trip_through_json(distribution: OutcomeDelays) -> None:
    again = delay_from_dict(json.loads(json.dumps(distribution.to_dict())))
    assert again == distribution
    assert (type(again), again.label) == (type(distribution), distribution.label)


def test_labels() -> None:
    assert BY_ACTION.label == "byaction-constant-3-poisson-20-lossy-0.25-geometric-5"
    assert CONVERSIONS.label == "byreward-lossy-1-constant-0-geometric-20"
    assert DelayByAction([Constant(0)] * 4).label == "byaction-4"
    assert DelayByAction((Constant(0),)) == DelayByAction([Constant(0)])


wrong: Any = "later"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: DelayByAction([]),
            r"delays must be a list of delay distributions, one for each action, got \[\]",
        ),
        (
            lambda: DelayByAction(wrong),
            "delays must be a list of delay distributions, one for each action, got 'later'",
        ),
        (lambda: DelayByAction([Constant(1), wrong]), r"delays\[1\] must be a delay distribution, got 'later'"),
        (lambda: DelayByAction([Fixed([1])]), r"delays\[0\] must be a distribution of independent draws"),  # type: ignore[list-item]
        (lambda: DelayByReward(wrong, Constant(1)), "zero must be a delay distribution, got 'later'"),
        (lambda: DelayByReward(Constant(1), Fixed([1])), "positive must be a distribution of independent"),  # type: ignore[arg-type]
        (lambda: DelayByReward(Constant(1), BY_ACTION), "positive must be a delay distribution"),  # type: ignore[arg-type]
        (lambda: BY_ACTION.sample(wrong, 1), "rng must be a numpy.random.Generator, got 'later'"),
        (lambda: BY_ACTION.sample(np.random.default_rng(0), -1), "size must be an integer >= 0, got -1"),
        (
            lambda: delay_from_dict({"distribution": "byaction"}),
            "byaction needs the setting 'delays'",
        ),
        (
            lambda: delay_from_dict({"distribution": "byreward", "zero": 3, "positive": 4}),
            "zero must be a delay distribution, got 3",
        ),
        (
            lambda: delay_from_dict({"distribution": "byreward", "one": 3}),
            "byreward has no setting 'one'; its settings are: zero, positive",
        ),
        (lambda: delay_from_text("byaction"), "byaction needs the setting 'delays'"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


@dataclass(frozen=True)
class OnStep(OutcomeDelays):
    """Late if a step of one's choice paid."""

    early: IndependentDelays
    late: IndependentDelays
    step: int = 0

    def outcome(self, trajectory: Trajectory) -> int:
        paid = trajectory.rewards[max(self.step - trajectory.first, 0) :][:1]
        return int(paid.sum() > 0)


def test_one_method_makes_a_distribution_of_ones_own() -> None:
    mine = OnStep(Constant(1), Geometric(20), step=2)
    assert mine.distributions_by_outcome == (Constant(1), Geometric(20))
    assert mine.label == "onstep-constant-1-geometric-20-2"
    assert repr(mine) == "OnStep(early=Constant(value=1), late=Geometric(mean=20.0), step=2)"
    assert mine.to_dict() | {"distribution": ""} == {
        "distribution": "",
        "early": {"distribution": "constant", "value": 1},
        "late": {"distribution": "geometric", "mean": 20.0},
        "step": 2,
    }
    assert mine.outcome(episode([0, 0, 0], [0, 0, 1])) == 1
    assert mine.outcome(episode([0, 0, 0], [1, 1, 0])) == 0
    testing.check_delay(mine)


def test_several_distributions_in_one_field_are_as_many_outcomes() -> None:
    assert BY_ACTION.distributions_by_outcome == tuple(BY_ACTION.delays)


def test_a_class_without_distributions_is_refused_when_it_is_drawn_from() -> None:
    class Empty(OutcomeDelays):
        def outcome(self, trajectory: Trajectory) -> int:
            return 0

    with pytest.raises(InvalidInputError, match="distributions_by_outcome must be a list of delay distributions, one "):
        Empty().sample(np.random.default_rng(0), 2)


def test_distributions_of_ones_own_are_checked_when_they_are_drawn_from() -> None:
    class Mine(OutcomeDelays):
        distributions_by_outcome: tuple[DelayDistribution, ...] = (Constant(1), Fixed([2]))
        label = "mine"

        def outcome(self, trajectory: Trajectory) -> int:
            return 0

        def to_dict(self) -> dict[str, Any]:
            return {"distribution": "mine"}

    with pytest.raises(
        InvalidInputError, match=r"distributions_by_outcome\[1\] must be a distribution of independent draws"
    ):
        Mine().sample(np.random.default_rng(0), 2)
