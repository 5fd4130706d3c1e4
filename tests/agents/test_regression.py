"""What the linear algorithms share, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from belated import (
    DelayedLPSVI,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    Greedy,
    InvalidInputError,
    RandomLinearMDP,
    RiverSwim,
    TablePolicy,
    Trajectory,
)
from belated.agents import CompiledSettings
from belated.agents._base import ALL, Arrival
from belated.agents._regression import (
    cache_aligned,
    largest_values,
    learn_visits,
    make_regression,
    make_table,
    make_work,
)
from belated.types import TableProblem


def whole(played: Trajectory) -> Arrival:
    return Arrival(0, 0, played.rows, played.actions, played.rewards, False, ALL)


@pytest.mark.parametrize("shape", [(1,), (7, 3), (10, 100), (2, 3, 5)])
def test_cache_aligned(shape: tuple[int, ...]) -> None:
    found = [cache_aligned(*shape) for _ in range(8)]
    for each in found:
        assert each.shape == shape
        assert each.flags.c_contiguous
        assert each.ctypes.data % 64 == 0
        assert not each.any()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 23])
@pytest.mark.parametrize("first", [0, 3])
def test_largest_values(d: int, first: int) -> None:
    rng = np.random.default_rng(d)
    rows, weights = rng.standard_normal((43, d)), rng.standard_normal((4, d))
    columns, wanted = np.ascontiguousarray(rows.T), rows[first : first + 40] @ weights.T
    for count in (1, 2, 3, 4):
        q, other = rng.standard_normal((2, 40))  # what was there before must not matter
        largest_values(columns, weights[:count], first, q, other)
        np.testing.assert_allclose(q, wanted[:, :count].max(axis=1), rtol=1e-12, atol=1e-13)


def test_the_layout_is_that_of_the_problem() -> None:
    problem = RandomLinearMDP(states=3, actions=2, dimension=4, horizon=5).problem
    table = make_table(problem)
    assert (table.states, table.actions, table.horizon) == (3, 2, 5)
    for state, action in np.ndindex(3, 2):
        np.testing.assert_array_equal(table.rows[2 * state + action], problem.features[state, action])
    np.testing.assert_array_equal(table.columns, table.rows.T)


def test_learning_adds_to_precision_and_moments() -> None:
    """Ω_h = λI + Σφφᵀ/σ², Σφr/σ² and Σφ/σ² over the visits that went on to s', by their definitions."""
    world, ridge, noise = RandomLinearMDP(states=3, actions=2, dimension=4, horizon=5), 0.7, 0.3
    problem, rng = world.problem, np.random.default_rng(1)
    table, learned, work = make_table(problem), make_regression(problem, ridge), make_work(problem)
    precision = np.tile(ridge * np.eye(4), (5, 1, 1))
    rewarded, following = np.zeros((5, 4)), np.zeros((5, 3, 4))
    for _ in range(30):
        played = world.rollout(TablePolicy(rng.integers(2, size=(5, 3))), rng)
        learn_visits(table, learned, work, noise, whole(played))
        for h in range(5):
            phi = problem.features[played.rows[h], played.actions[h]]
            precision[h] += np.outer(phi, phi) / noise**2
            rewarded[h] += phi * played.rewards[h] / noise**2
            following[h, played.rows[h + 1]] += phi / noise**2
    np.testing.assert_allclose(learned.factor.transpose(0, 2, 1) @ learned.factor, precision, rtol=1e-10)
    np.testing.assert_allclose(learned.reward_moment, rewarded, rtol=1e-10)
    np.testing.assert_allclose(learned.next_moment, following, rtol=1e-10)


def test_a_shared_regression_has_the_statistics_of_all_steps_together() -> None:
    world, ridge, noise = RiverSwim(states=3, horizon=5), 0.7, 0.3
    problem, rng = world.problem, np.random.default_rng(1)
    table, work = make_table(problem), make_work(problem)
    each, shared = make_regression(problem, ridge), make_regression(problem, ridge, shared=True)
    for _ in range(30):
        played = world.rollout(TablePolicy(rng.integers(2, size=(5, 3))), rng)
        for learned in (each, shared):
            learn_visits(table, learned, work, noise, whole(played))
    prior = ridge * np.eye(6)
    gram, grams = (learned.factor.transpose(0, 2, 1) @ learned.factor - prior for learned in (shared, each))
    np.testing.assert_allclose(gram, [grams.sum(axis=0)], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(shared.reward_moment, [each.reward_moment.sum(axis=0)], rtol=1e-10)
    np.testing.assert_allclose(shared.next_moment, [each.next_moment.sum(axis=0)], rtol=1e-10)


SHARING: list[CompiledSettings] = [
    DelayedPSVI(shared=True),
    DelayedLPSVI(shared=True),
    DelayedUCBVI(shared=True),
    EpsilonGreedy(shared=True),
    Greedy(shared=True),
]


@pytest.mark.parametrize("settings", SHARING, ids=lambda settings: settings.kind)
def test_steps_share_only_where_the_problem_says_that_they_are_alike(settings: CompiledSettings) -> None:
    with pytest.raises(
        InvalidInputError, match=r"^shared must be False, since the problem is not homogeneous: its dyn"
    ):
        settings.start(RandomLinearMDP(horizon=2).problem)
    settings.start(TableProblem(np.ones((2, 2, 1)), 1))  # a single step is like itself
    with pytest.raises(InvalidInputError, match=r"^shared must be True or False, got 1$"):
        replace(settings, shared=1)  # type: ignore[call-arg]
