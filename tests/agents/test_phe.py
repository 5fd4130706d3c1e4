"""Perturbed regressions, solved by products, are Delayed-PSVI in distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution
from visits import visits

import belated
from belated.environments import FiniteMDP, RandomLinearMDP
from belated.errors import InvalidInputError
from belated.types import Feedback

Floats = npt.NDArray[np.float64]
NOISE, RIDGE, SCALE = 0.5, 2.0, 1.7


def bandit(d: int = 3) -> FiniteMDP:
    return RandomLinearMDP(states=3, actions=3, dimension=d, horizon=1, seed=5)


def posterior(world: FiniteMDP, batch: list[Feedback]) -> tuple[Floats, Floats]:
    """Return Ω and ŵ of the only step."""
    phi = np.array([world.features[b.trajectory.rows[0], b.trajectory.actions[0]] for b in batch])
    y = np.array([b.trajectory.rewards[0] for b in batch])
    precision = phi.T @ phi / NOISE**2 + RIDGE * np.eye(world.dimension)
    return precision, np.linalg.solve(precision, phi.T @ y / NOISE**2)


def test_draws_have_the_distribution_of_psvi() -> None:
    world = bandit()
    batch = visits(world, 25)
    agent = belated.DelayedPHE(draws=1, scale=SCALE, noise=NOISE, ridge=RIDGE).start(world.problem)
    agent.learn(batch)
    rng, draws = np.random.default_rng(11), np.empty((20_000, 3))
    for draw in draws:
        agent.plan(rng)
        draw[:] = agent.record.weights[0]
    precision, mean = posterior(world, batch)
    assert_distribution(draws, mean, SCALE**2 * np.linalg.inv(precision))


@pytest.mark.parametrize("d", [3, 20])
def test_a_draw_is_linear_in_its_normals_with_covariance_of_the_posterior(d: int) -> None:
    """The weights are ŵ + νΩ⁻¹Rz for the normals z, where RRᵀ = Ω: their covariance is ν²Ω⁻¹."""
    world = bandit(d)
    batch = visits(world, 12)
    precision, mean = posterior(world, batch)
    pairs = sorted({int(b.trajectory.rows[0] * 3 + b.trajectory.actions[0]) for b in batch})
    counts = [sum(int(b.trajectory.rows[0] * 3 + b.trajectory.actions[0]) == pair for b in batch) for pair in pairs]
    rows = world.features.reshape(-1, d)[pairs]
    root = np.hstack([np.sqrt(RIDGE) * np.eye(d), rows.T * np.sqrt(counts) / NOISE])
    np.testing.assert_allclose(root @ root.T, precision, rtol=1e-12, atol=1e-12)
    solution = np.linalg.solve(precision, root)
    for scale in (0.0, 1.0, SCALE):
        settings = belated.DelayedPHE(draws=1, scale=scale, noise=NOISE, ridge=RIDGE, tolerance=1e-12)
        agent = settings.start(world.problem)
        agent.learn(batch)
        agent.plan(np.random.default_rng(3))
        normals = np.random.default_rng(3).standard_normal(d + len(pairs))
        np.testing.assert_allclose(agent.record.weights[0], mean + scale * solution @ normals, rtol=1e-8, atol=1e-9)


def test_of_scale_zero_it_is_greedy() -> None:
    world = RandomLinearMDP(states=5, actions=3, dimension=4, horizon=4)
    phe, greedy = belated.DelayedPHE(scale=0.0).start(world.problem), belated.Greedy().start(world.problem)
    for agent in (phe, greedy):
        agent.learn(visits(world, 30))
        agent.plan(np.random.default_rng(0))
    np.testing.assert_allclose(phe.record.work.values, greedy.record.work.values, rtol=1e-7)


def test_what_is_kept_grows_like_d() -> None:
    small, large = (RandomLinearMDP(states=3, actions=2, dimension=d, horizon=2) for d in (10, 1000))
    sizes = [
        sum(array.size for array in belated.DelayedPHE().start(world.problem).memory().values())
        for world in (small, large)
    ]
    assert sizes == [12 + 2 * (10 + 3 * 10), 12 + 2 * (1000 + 3 * 1000)]


def test_plan_from_needs_only_the_first_state() -> None:
    world = bandit()
    whole, single = (belated.DelayedPHE().start(world.problem) for _ in range(2))
    for agent in (whole, single):
        agent.learn(visits(world, 10))
    for state in range(3):
        full = whole.plan(np.random.default_rng(state)).actions
        part = single.plan_from(np.random.default_rng(state), state).actions
        assert full[0, state] == part[0, state]


def test_rewards_too_large_for_floats_are_refused() -> None:
    world = bandit()
    problem = belated.TableProblem(world.features, 1, reward_range=(0.0, np.inf))
    agent = belated.DelayedPHE().start(problem)
    late = visits(world, 1)[0].trajectory
    with pytest.raises(InvalidInputError, match=r"trajectory.rewards must be of magnitude at most 1e\+12"):
        agent.learn([Feedback(0, belated.Trajectory(late.rows, late.actions, np.array([1e300])))])
    agent.plan(np.random.default_rng(0))
