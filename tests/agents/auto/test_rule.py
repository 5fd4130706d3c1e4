"""The numbers of the rule, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated.agents._auto.rule import (
    Rule,
    clipped,
    hidden_width,
    largest,
    make_rule,
    note_outcome,
    residual_width,
    squared_targets,
)
from belated.errors import InvalidInputError


def rule(
    rewards: tuple[float, float] = (0.0, 1.0),
    *,
    weighted: bool = True,
    optimistic: bool = True,
    forgetting: bool = True,
) -> Rule:
    return make_rule(
        4,
        rewards,
        optimistic=optimistic,
        ridge=None,
        residual=0.5,
        hidden=0.3,
        prior=0.1,
        weighted=weighted,
        forgetting=forgetting,
    )


def test_everything_follows_from_the_horizon_and_the_range_of_rewards() -> None:
    found = rule((-2.0, 3.0))
    assert (found.mean, found.low, found.high) == (3.0, -2.0, 3.0)
    assert (found.ridge, found.hidden, found.prior) == pytest.approx((4.0**-3, 1.5, 2.0))
    assert rule((-2.0, 3.0), optimistic=False).mean == 0.0
    assert (found.span, rule((-2.0, 3.0), forgetting=False).span) == (5.0, 0.0)
    punished = rule((-2.0, -1.0))  # an end is worth 0, which is more than any reward
    assert (punished.mean, punished.high, punished.low) == (0.0, 0.0, -2.0)


def test_the_hidden_width_grows_with_the_share_of_random_pairs() -> None:
    assert hidden_width(rule(), np.array([0, 0])) == pytest.approx(0.3 * math.sqrt(1 / 2))
    assert hidden_width(rule(), np.array([8, 4])) == pytest.approx(0.3 * math.sqrt(5 / 10))
    assert hidden_width(rule(weighted=False), np.array([8, 0])) == 0.3


def test_outcomes_are_counted_by_pairs() -> None:
    outcomes = np.zeros(2, np.int64)
    note_outcome(1, False, False, outcomes)
    assert outcomes.tolist() == [0, 0]
    note_outcome(2, False, True, outcomes)  # the second visit, and it differs
    note_outcome(3, True, True, outcomes)  # the same pair again
    assert outcomes.tolist() == [1, 1]


def test_the_residual_width_is_a_part_of_the_root_mean_square() -> None:
    assert residual_width(rule(), 10.0, 2.0, 2.0) == pytest.approx(0.5 * 2.0)
    assert residual_width(rule(), 10.0, 10.0 - 1e-12, 2.0) == 0.0  # rounding is not a residual
    assert residual_width(rule(), 0.0, 0.0, 0.0) == 0.0


def test_squared_targets_are_those_of_every_visit() -> None:
    rewards, after, gains = np.array([1.0, 0.5, 2.0]), np.array([0, 1, 1]), np.array([-1.0, 3.0])
    on_the_way, arrivals = np.array([1.0, 2.5]), np.array([1.0, 2.0])
    found = squared_targets(5.25, on_the_way, arrivals, gains)
    assert found == pytest.approx(((rewards + gains[after]) ** 2).sum())


def test_values_stay_within_what_is_possible() -> None:
    assert [clipped(rule((-1.0, 1.0)), gain, 2) for gain in (-9.0, -2.5, 0.5)] == [-2.0, -0.5, 2.0]


def test_the_largest_value_wins_and_ties_are_shared() -> None:
    rng = np.random.default_rng(0)
    assert largest(np.array([0.0, 2.0, 1.0]), rng) == 1
    taken = np.bincount([largest(np.array([1.0, 0.0, 1.0]), rng) for _ in range(600)], minlength=3)
    assert taken[1] == 0
    assert 240 < taken[0] < 360
    with pytest.raises(InvalidInputError, match="action values are not numbers"):
        largest(np.array([np.nan, np.nan]), rng)
