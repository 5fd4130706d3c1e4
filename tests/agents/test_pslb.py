"""Delayed-PSLB is Delayed-PSVI or Delayed-LPSVI with one step: the same plans, the posterior of ridge regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution
from polars.testing import assert_frame_equal

from belated._kernels.streams import stream
from belated.agents import CompiledSettings, DelayedLPSVI, DelayedPSVI, RandomPolicy
from belated.agents._base import Learner
from belated.agents._pslb import DelayedPSLB
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import FiniteMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHAINS = ["plain", "collapsed", "preconditioned"]


def bandit(contexts: int, actions: int = 5, dimension: int = 3, seed: int = 0) -> FiniteMDP:
    """Return a linear bandit with rewards of 0 or 1 and contexts drawn uniformly."""
    rng = np.random.default_rng(seed)
    features = rng.dirichlet(np.ones(dimension), size=(contexts, actions))
    transitions = np.full((contexts, actions, contexts), 1 / contexts)
    start = np.full(contexts, 1 / contexts)
    means = features @ rng.uniform(size=dimension)
    return FiniteMDP(transitions, means, features=features, start=start, horizon=1, bernoulli=True)


def play(
    mdp: FiniteMDP, settings: CompiledSettings, distribution: DelayDistribution, rounds: int
) -> Iterator[tuple[Learner, Ints, Trajectory]]:
    """Play late rounds; yield after each the agent, the table it planned and what was seen."""
    agent = settings.start(mdp.problem)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    rng, world = stream(1, "agent"), stream(1, "environment")
    for k, delay in enumerate(distribution.sample(stream(1, "delay"), rounds)):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        policy = agent.plan(rng)
        trajectory = mdp.rollout(policy, world)
        buffer.add(k, int(delay), trajectory)
        yield agent, policy.actions, trajectory


def feedback(mdp: FiniteMDP, count: int) -> list[Feedback]:
    rng = stream(3, "explorer")
    tables = (TablePolicy(rng.integers(mdp.actions, size=(1, mdp.states))) for _ in range(count))
    return [Feedback(k, mdp.rollout(table, rng)) for k, table in enumerate(tables)]


def design(mdp: FiniteMDP, batch: list[Feedback]) -> tuple[Floats, Floats]:
    """Return the features and rewards of all rounds of `batch`."""
    seen = [each.trajectory for each in batch]
    return np.array([mdp.features[t.rows[0], t.actions[0]] for t in seen]), np.array([t.rewards[0] for t in seen])


EQUAL: dict[str, tuple[DelayedPSLB, CompiledSettings]] = {
    "default": (DelayedPSLB(), DelayedPSVI(cap=False)),
    "exact": (
        DelayedPSLB(draws=3, scale=0.4, noise=0.3, ridge=2.0, ties="first"),
        DelayedPSVI(draws=3, scale=0.4, noise=0.3, ridge=2.0, ties="first", cap=False),
    ),
    **{
        sampler: (
            DelayedPSLB(draws=1, scale=0.5, noise=0.7, ridge=0.5, sampler=sampler, steps=6, step_ratio=0.3),
            DelayedLPSVI(
                draws=1, temperature=0.25, noise=0.7, ridge=0.5, sampler=sampler, steps=6, step_ratio=0.3, cap=False
            ),
        )
        for sampler in CHAINS
    },
}


@pytest.mark.parametrize(("settings", "general"), EQUAL.values(), ids=EQUAL.keys())
@pytest.mark.parametrize("contexts", [1, 4])
@pytest.mark.parametrize("distribution", [Constant(0), Lossy(Poisson(5), 0.3)], ids=["at-once", "late"])
def test_it_is_the_general_algorithm_with_one_step(
    settings: DelayedPSLB, general: CompiledSettings, contexts: int, distribution: DelayDistribution
) -> None:
    mdp = bandit(contexts)
    mine, agent = settings.start(mdp.problem), general.start(mdp.problem)
    assert (type(mine), type(mine.record)) == (type(agent), type(agent.record))
    assert mine.settings is settings
    for (ours, plan, _), (theirs, other, _) in zip(
        play(mdp, settings, distribution, 40), play(mdp, general, distribution, 40), strict=True
    ):
        np.testing.assert_array_equal(plan, other)
        for name, values in theirs.memory().items():
            np.testing.assert_array_equal(ours.memory()[name], values, err_msg=name)


@pytest.mark.parametrize(("settings", "general"), EQUAL.values(), ids=EQUAL.keys())
def test_whole_runs_are_those_of_the_general_algorithm(settings: DelayedPSLB, general: CompiledSettings) -> None:
    mdp = bandit(4)
    rows = simulate(mdp, settings, Poisson(6), episodes=300, seed=2)
    assert_frame_equal(rows, simulate(mdp, general, Poisson(6), episodes=300, seed=2))


def test_values_above_one_are_not_capped() -> None:
    """With a cap of 1 both actions would be a tie; without one the better is played."""
    problem = TableProblem(np.array([[[2.0], [3.0]]]), 1, reward_range=(0.0, 10.0))
    agent, rng = DelayedPSLB(scale=0.0, ridge=1e-6).start(problem), np.random.default_rng(0)
    agent.learn([Feedback(0, Trajectory(np.zeros(2, int), np.zeros(1, int), np.array([8.0])))])  # θ̂ = 4
    assert [int(agent.plan(rng).actions[0, 0]) for _ in range(20)] == [1] * 20


def test_the_posterior_is_ridge_regression() -> None:
    mdp, noise, ridge = bandit(3), 0.4, 1.5
    batch = feedback(mdp, 30)
    agent = DelayedPSLB(scale=0.0, noise=noise, ridge=ridge).start(mdp.problem)
    agent.learn(batch)
    phi, y = design(mdp, batch)
    precision = phi.T @ phi / noise**2 + ridge * np.eye(3)
    factor = agent.memory()["factor"][0]
    np.testing.assert_allclose(factor.T @ factor, precision, rtol=1e-12)
    policy = agent.plan(np.random.default_rng(0)).actions[0]  # ν = 0: every draw is the mean
    mean = np.linalg.solve(precision, phi.T @ y / noise**2)
    np.testing.assert_allclose(agent.record.work.weights, mean, rtol=1e-10)
    np.testing.assert_array_equal(policy, np.argmax(mdp.features @ mean, axis=1))


@pytest.mark.parametrize("sampler", ["exact", "preconditioned"])
def test_draws_have_the_distribution_of_the_posterior(sampler: str) -> None:
    mdp, noise, ridge, scale = bandit(1), 0.4, 1.5, 0.6
    batch = feedback(mdp, 25)
    settings = DelayedPSLB(draws=1, scale=scale, noise=noise, ridge=ridge, sampler=sampler, steps=1)
    agent, rng = settings.start(mdp.problem), np.random.default_rng(4)
    agent.learn(batch)
    draws = np.empty((8000, 3))
    for draw in draws:
        agent.plan(rng)
        draw[:] = agent.record.work.weights if sampler == "exact" else agent.record.learned.samples[0, 0]
    phi, y = design(mdp, batch)
    covariance = np.linalg.inv(phi.T @ phi / noise**2 + ridge * np.eye(3))
    assert_distribution(draws, covariance @ phi.T @ y / noise**2, scale**2 * covariance)


def test_the_largest_of_the_draws_counts() -> None:
    """Of two actions x = 1 and x = −1, M draws play x = 1 unless the largest |θ| belongs to a negative draw."""
    mdp = FiniteMDP(np.ones((1, 2, 1)), [[0.0, 0.0]], features=[[[1.0], [-1.0]]], horizon=1)
    agent, rng, copy = DelayedPSLB(draws=3).start(mdp.problem), np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(200):
        drawn = copy.standard_normal(3)
        assert agent.plan(rng).actions[0, 0] == (0 if drawn.max() > (-drawn).max() else 1)


@pytest.mark.parametrize("sampler", ["exact", *CHAINS])
def test_planning_from_the_only_context_is_planning(sampler: str) -> None:
    mdp = bandit(1)
    agents = [DelayedPSLB(sampler=sampler, steps=5).start(mdp.problem) for _ in range(2)]
    rngs = [np.random.default_rng(7) for _ in range(2)]
    for each in feedback(mdp, 20):
        whole, only = agents[0].plan(rngs[0]).actions, agents[1].plan_from(rngs[1], 0).actions
        np.testing.assert_array_equal(whole, only)
        for agent in agents:
            agent.learn([each])
    assert rngs[0].bit_generator.state == rngs[1].bit_generator.state


@pytest.mark.parametrize("sampler", ["exact", "plain"])
def test_ties_are_decided_as_told(sampler: str) -> None:
    problem, rng = bandit(1).problem, np.random.default_rng(0)
    first, chance = (DelayedPSLB(sampler=sampler, scale=0.0, ties=ties).start(problem) for ties in ("first", "random"))
    assert [first.plan(rng).actions[0, 0] for _ in range(10)] == [0] * 10  # all values are 0
    assert len({int(chance.plan(rng).actions[0, 0]) for _ in range(40)}) > 2


def test_it_learns() -> None:
    mdp = bandit(2, actions=8, seed=3)
    late: dict[str, Any] = {"delay": Poisson(10), "episodes": 3000, "seed": 0}
    ours, random = (simulate(mdp, each, **late)["regret"] for each in (DelayedPSLB(noise=0.5), RandomPolicy()))
    assert ours[-1] < 0.15 * random[-1]
    assert ours[-1] - ours[1499] < 0.5 * ours[1499]  # sub-linear


@pytest.mark.parametrize("sampler", ["exact", "plain"])
def test_more_than_one_step_is_refused(sampler: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^the problem's horizon must be 1, since DelayedPSLB is .*, got 20$"):
        DelayedPSLB(sampler=sampler).start(RiverSwim().problem)
