"""Perturbed regressions, solved by products, are Delayed-PSVI in law; the queue and float32 factors change little."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from in_python import InPython
from moments import assert_law

import belated
from belated.algorithms.agent import Learner
from belated.algorithms.psvi import QUEUE
from belated.delays import Constant, Fixed
from belated.environments import FiniteMDP, RandomLinearMDP
from belated.errors import InvalidInputError
from belated.posterior.block import BLOCK_FROM
from belated.types import Feedback, Policy

Floats = npt.NDArray[np.float64]
NOISE, RIDGE, SCALE = 0.5, 2.0, 1.7


def visits(world: FiniteMDP, count: int, seed: int = 0) -> list[Feedback]:
    """Return trajectories of random policies."""
    choices, dynamics = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    tables = choices.integers(world.actions, size=(count, world.horizon, world.states))
    return [Feedback(k, world.rollout(Policy(table), dynamics)) for k, table in enumerate(tables)]


def bandit(d: int = 3) -> FiniteMDP:
    return RandomLinearMDP(states=3, actions=3, dimension=d, horizon=1, seed=5)


def posterior(world: FiniteMDP, batch: list[Feedback]) -> tuple[Floats, Floats]:
    """Return Ω and ŵ of the only step."""
    phi = np.array([world.features[b.trajectory.states[0], b.trajectory.actions[0]] for b in batch])
    y = np.array([b.trajectory.rewards[0] for b in batch])
    precision = phi.T @ phi / NOISE**2 + RIDGE * np.eye(world.dimension)
    return precision, np.linalg.solve(precision, phi.T @ y / NOISE**2)


def test_draws_have_the_law_of_psvi() -> None:
    world = bandit()
    batch = visits(world, 25)
    agent = belated.DelayedPHE(draws=1, scale=SCALE, noise=NOISE, ridge=RIDGE).start(world.problem)
    agent.learn(batch)
    rng, draws = np.random.default_rng(11), np.empty((20_000, 3))
    for draw in draws:
        agent.plan(rng)
        draw[:] = agent.record.work.weights
    precision, mean = posterior(world, batch)
    assert_law(draws, mean, SCALE**2 * np.linalg.inv(precision))


@pytest.mark.parametrize("d", [3, 20])
def test_a_draw_is_linear_in_its_normals_with_covariance_of_the_posterior(d: int) -> None:
    """The weights are ŵ + νΩ⁻¹Rz for the normals z, where RRᵀ = Ω: their covariance is ν²Ω⁻¹."""
    world = bandit(d)
    batch = visits(world, 12)
    precision, mean = posterior(world, batch)
    pairs = sorted({int(b.trajectory.states[0] * 3 + b.trajectory.actions[0]) for b in batch})
    counts = [sum(int(b.trajectory.states[0] * 3 + b.trajectory.actions[0]) == pair for b in batch) for pair in pairs]
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
        np.testing.assert_allclose(agent.record.work.weights, mean + scale * solution @ normals, rtol=1e-8, atol=1e-9)


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
    agent = belated.DelayedPHE().start(world.problem)
    late = visits(world, 1)[0].trajectory
    agent.learn([Feedback(0, belated.Trajectory(late.states, late.actions, np.array([1e300])))])
    with pytest.raises(InvalidInputError, match="not numbers"):
        agent.plan(np.random.default_rng(0))


def dense(horizon: int = 2) -> FiniteMDP:
    return RandomLinearMDP(states=20, actions=5, dimension=24, horizon=horizon)


@pytest.mark.parametrize("count", [3, 4 * BLOCK_FROM, QUEUE, QUEUE + 40])
def test_a_batch_learned_together_is_what_it_is_one_by_one(count: int) -> None:
    world, settings = dense(), belated.DelayedPSVI(noise=0.3)
    together, apart = settings.start(world.problem), settings.start(world.problem)
    eager = Learner(settings, world.problem)
    batch = visits(world, count)
    together.learn(batch)
    for each in batch:
        apart.learn([each])
    eager.learn(batch)  # its queue has no room
    for name, values in together.memory().items():
        np.testing.assert_allclose(values, apart.memory()[name], rtol=1e-9, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(values, eager.memory()[name], rtol=1e-9, atol=1e-9, err_msg=name)
    assert together.record.queue.size[0] == 0
    plans = [agent.plan(np.random.default_rng(0)).actions for agent in (together, apart, eager)]
    np.testing.assert_array_equal(plans[0], plans[1])
    np.testing.assert_array_equal(plans[0], plans[2])


def test_bursts_give_the_same_rows_compiled_and_in_python() -> None:
    """Sixty trajectories arrive at once, again and again."""
    world, settings, law = dense(), belated.DelayedPSVI(), Fixed([60 - k % 60 for k in range(240)])
    compiled, asked = (
        belated.simulate(world, algorithm, law, episodes=240, seed=0) for algorithm in (settings, InPython(settings))
    )
    assert compiled.equals(asked)
    assert compiled["arrived"].to_numpy().max() >= 2 * BLOCK_FROM


def test_a_restored_agent_still_learns_together() -> None:
    world, settings = dense(), belated.DelayedPSVI()
    agent, copy = settings.start(world.problem), settings.start(world.problem)
    batch = visits(world, 100)
    agent.learn(batch[:50])
    copy.restore({name: values.copy() for name, values in agent.memory().items()})
    agent.learn(batch[50:])
    copy.learn(batch[50:])
    for name, values in copy.memory().items():
        np.testing.assert_array_equal(values, agent.memory()[name])


@pytest.mark.slow  # it compiles for half a minute
def test_factors_in_single_precision_stay_close() -> None:
    """After 3000 arrivals draws differ from those of float64 by less than a hundredth of a posterior deviation."""
    world = dense(horizon=1)
    batch = visits(world, 3000)
    agents = {}
    for storage in ("float64", "float32"):
        agent = belated.DelayedPSVI(noise=0.2, storage=storage).start(world.problem)
        for k in range(0, 3000, 7):
            agent.learn(batch[k : k + 7])
        agents[storage] = agent
    exact, single = (agents[name].memory()["factor"][0] for name in ("float64", "float32"))
    assert single.dtype == np.float32
    assert single.nbytes == exact.nbytes // 2
    single = single.astype(np.float64)
    moment = agents["float64"].memory()["reward_moment"][0]
    np.testing.assert_array_equal(moment, agents["float32"].memory()["reward_moment"][0])
    z = np.random.default_rng(0).standard_normal((24, 50))
    draws = [np.linalg.solve(u, np.linalg.solve(u.T, moment)[:, None] + z) for u in (exact, single)]
    deviation = np.sqrt(np.diag(np.linalg.inv(exact.T @ exact)))
    assert 1e-9 < np.abs((draws[0] - draws[1]) / deviation[:, None]).max() < 1e-2


@pytest.mark.parametrize("storage", ["float64", pytest.param("float32", marks=pytest.mark.slow)])  # another half minute
def test_constant_delays_leave_nothing_waiting(storage: str) -> None:
    world = dense()
    rows = belated.simulate(world, belated.DelayedPSVI(storage=storage), Constant(3), episodes=50, seed=1)
    assert rows["arrived"].to_list()[:6] == [0, 0, 0, 0, 1, 1]
