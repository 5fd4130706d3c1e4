"""The numbers of the rule, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from belated.agents._auto.rule import (
    Returns,
    Rule,
    duration,
    hidden_width,
    largest,
    make_rule,
    note_outcome,
    possible,
    prior_mean,
    random_share,
    residual_width,
    squared_residuals,
    squared_targets,
)
from belated.errors import InvalidInputError


def rule(rewards: tuple[float, float] = (0.0, 1.0), **changed: Any) -> Rule:
    return make_rule(4, rewards, **{"residual": 0.5, "hurried": False, **changed})


def test_everything_follows_from_the_horizon_and_the_range_of_rewards() -> None:
    found = rule((-2.0, 3.0))
    assert (found.mean, found.low, found.high) == (3.0, -2.0, 3.0)
    assert (found.ridge, found.hidden, found.prior) == pytest.approx((4.0**-3, 1.5, 2.0))
    assert rule((-2.0, 3.0), optimistic=False).mean == 0.0
    assert (found.span, found.slab) == (5.0, 5.0)
    punished = rule((-2.0, -1.0))  # an end is worth 0, which is more than any reward
    assert (punished.mean, punished.high, punished.low) == (0.0, 0.0, -2.0)


def test_values_are_discounted_by_so_little_that_no_return_loses_more_than_one_in_the_horizon() -> None:
    assert rule().discount == 1.0
    for horizon in (2, 10, 1000):
        gamma = make_rule(horizon, (0.0, 1.0)).discount
        assert gamma == 1 - horizon**-2
        assert 1 - gamma ** (horizon - 1) <= 1 / horizon
    assert make_rule(1, (0.0, 1.0)).discount == 1.0
    assert make_rule(10, (0.0, 1.0), discount=0.5).discount == 0.5 * 0.99
    assert duration(rule(), 3) == 3.0
    assert duration(rule(discount=0.5), 3) == pytest.approx(1 + 0.5 + 0.25)


def test_the_prior_mean_is_the_largest_return_that_is_possible() -> None:
    assert [prior_mean(rule((-1.0, 2.0)), left) for left in (1, 3)] == [2.0, 6.0]
    assert prior_mean(rule((-1.0, 2.0), discount=0.5), 3) == pytest.approx(2 * 1.75)


def test_where_the_range_is_learned_an_outlier_is_not_multiplied_by_the_horizon() -> None:
    seen = Returns(worst=-250.0, best=90.0, worst_mean=-3.0, best_mean=0.5)
    found = rule((-100.0, 100.0), returns=seen)
    assert [prior_mean(found, left) for left in (1, 4)] == [90.0, 90.0]  # not 100 and 400
    assert found.prior == pytest.approx(0.1 * (90.0 + 250.0))
    rewarded = rule((0.0, 1.0), returns=Returns(0.0, 2.0, 0.0, 1.0))  # as long as it lasts
    assert [prior_mean(rewarded, left) for left in (1, 4)] == [1.0, 4.0]
    assert rule((0.0, 1.0), returns=Returns()).prior == pytest.approx(0.1)  # nothing has been seen


def test_the_share_of_random_pairs() -> None:
    assert random_share(rule(), np.array([0, 0]), 0) == 1 / 2
    assert random_share(rule(), np.array([8, 3]), 1) == 2.5 / 9
    assert random_share(rule(weighted=False), np.array([8, 0]), 0) == 1.0


def test_the_hidden_width_is_capped_by_the_residuals() -> None:
    assert hidden_width(rule(capped=False), 0.25, 0.0, 1e9) == pytest.approx(0.3 * 0.5)
    assert hidden_width(rule(), 0.25, 0.0, 0.0) == pytest.approx(0.3 * 0.5)  # nothing could have shown
    assert hidden_width(rule(), 1.0, 3.0, 18.0) == pytest.approx(0.3 * math.sqrt(5 / 20))
    assert hidden_width(rule((0.0, 10.0)), 1.0, 300.0, 18.0) == pytest.approx(3 * math.sqrt(5 / 20))


def test_outcomes_are_counted_by_pairs() -> None:
    outcomes = np.zeros(2, np.int64)
    note_outcome(1, False, False, outcomes)
    assert outcomes.tolist() == [0, 0]
    note_outcome(2, False, True, outcomes)  # the second visit, and it differs
    note_outcome(3, True, True, outcomes)  # the same pair again
    assert outcomes.tolist() == [1, 1]


def test_the_residual_width_is_a_part_of_the_root_mean_square() -> None:
    assert squared_residuals(10.0, 2.0) == 8.0
    assert squared_residuals(10.0, 10.0 - 1e-12) == 0.0  # rounding is not a residual
    assert residual_width(rule(), 8.0, 2.0) == pytest.approx(0.5 * 2.0)
    assert residual_width(rule(), 0.0, 0.0) == 0.0


def test_squared_targets_are_those_of_every_visit() -> None:
    rewards, after, gains = np.array([1.0, 0.5, 2.0]), np.array([0, 1, 1]), np.array([-1.0, 3.0])
    on_the_way, arrivals = np.array([1.0, 2.5]), np.array([1.0, 2.0])
    found = squared_targets(5.25, on_the_way, arrivals, gains)
    assert found == pytest.approx(((rewards + gains[after]) ** 2).sum())


def test_what_is_possible_grows_with_the_steps_to_go() -> None:
    assert possible(rule((-1.0, 1.0)), 2) == (2.0, -2.0, 2.0)


def test_the_largest_value_wins_and_ties_are_shared() -> None:
    rng = np.random.default_rng(0)
    assert largest(np.array([0.0, 2.0, 1.0]), rng) == 1
    taken = np.bincount([largest(np.array([1.0, 0.0, 1.0]), rng) for _ in range(600)], minlength=3)
    assert taken[1] == 0
    assert 240 < taken[0] < 360
    with pytest.raises(InvalidInputError, match="action values are not numbers"):
        largest(np.array([np.nan, np.nan]), rng)
