"""Delayed-LPSVI against its transcription, the distributions of its three samplers, and step sizes that diverge."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution
from naive import NaiveLPSVI
from side_by_side import ENVIRONMENTS, HOMOGENEOUS, MDPS, fed, play, values_of

from belated._kernels.streams import stream
from belated.agents import (
    DelayedLPSVI,
    RandomPolicy,
)
from belated.delays import DelayDistribution, Lossy, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.errors import InvalidInputError
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
WORLDS = pytest.mark.parametrize(
    "mdp",
    [
        SyntheticLinearMDP(actions=6, horizon=6),
        RiverSwim(states=4, horizon=6),
        RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5),
    ],
    ids=lambda mdp: mdp.label,
)


@MDPS
@pytest.mark.parametrize("sampler", ["plain", "preconditioned"])
@pytest.mark.parametrize("warm_start", ["episode", "step", "cold"])
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Poisson(5), {"draws": 2, "steps": 7, "temperature": 0.5, "step_ratio": 0.4}),
        (
            Lossy(Poisson(3), 0.7),
            {"draws": 1, "steps": 3, "temperature": 2.0, "step_size": 0.003, "noise": 1.3, "ridge": 0.5},
        ),
    ],
)
def test_lpsvi(
    environment: str, distribution: DelayDistribution, sampler: str, warm_start: str, settings: dict[str, Any]
) -> None:
    mdp = ENVIRONMENTS[environment]()
    settings = {**settings, "sampler": sampler, "warm_start": warm_start}
    naive = NaiveLPSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, DelayedLPSVI(**settings), naive, distribution, seed=2):
        learned = agent.record.learned
        np.testing.assert_allclose(learned.samples, naive.weights, rtol=1e-8, atol=1e-8)
        if sampler == "plain":
            np.testing.assert_allclose(learned.precision, naive.precision, rtol=1e-12, atol=1e-12)
        else:
            precision = np.einsum("hki,hkj->hij", learned.factor, learned.factor)
            np.testing.assert_allclose(precision, naive.precision, rtol=1e-10, atol=1e-10)


@HOMOGENEOUS
@pytest.mark.parametrize("sampler", ["plain", "preconditioned"])
@pytest.mark.parametrize("warm_start", ["episode", "step"])
def test_steps_that_share_one_regression(mdp: FiniteMDP, sampler: str, warm_start: str) -> None:
    settings: dict[str, Any] = {"steps": 5, "temperature": 0.5, "sampler": sampler, "warm_start": warm_start}
    naive = NaiveLPSVI(mdp.features, mdp.horizon, shared=True, **settings)
    for agent, _, _ in play(mdp, DelayedLPSVI(shared=True, **settings), naive, Poisson(5), seed=2):
        learned = agent.record.learned
        np.testing.assert_allclose(learned.samples, naive.weights, rtol=1e-8, atol=1e-8)
        (precision,) = learned.precision if sampler == "plain" else learned.factor.swapaxes(1, 2) @ learned.factor
        np.testing.assert_allclose(precision, naive.precision[0], rtol=1e-10, atol=1e-10)


@HOMOGENEOUS
def test_collapsed_chains_of_a_shared_regression_are_the_plain_ones(mdp: FiniteMDP) -> None:
    plain, collapsed = fed(
        mdp, *(DelayedLPSVI(shared=True, temperature=0.0, steps=9, sampler=each) for each in ("plain", "collapsed"))
    )
    np.testing.assert_allclose(values_of(plain, 0), values_of(collapsed, 1), rtol=1e-8, atol=1e-9)


def test_lpsvi_with_the_published_settings() -> None:
    mdp = ENVIRONMENTS["synthetic"]()
    settings = {"draws": 2, "steps": 40, "temperature": 0.02, "step_ratio": 0.5}
    naive = NaiveLPSVI(mdp.features, mdp.horizon, **settings)  # type: ignore[arg-type]
    for agent, _, _ in play(mdp, DelayedLPSVI(**settings), naive, Poisson(5), 3):  # type: ignore[arg-type]
        np.testing.assert_allclose(agent.record.learned.samples, naive.weights, rtol=1e-8, atol=1e-8)


@WORLDS
@pytest.mark.parametrize("warm_start", ["episode", "step", "cold"])
@pytest.mark.parametrize("step", [{"step_ratio": 0.3}, {"step_size": 0.004}])
def test_without_noise_collapsed_and_plain_chains_are_the_same(
    mdp: FiniteMDP, warm_start: str, step: dict[str, Any]
) -> None:
    settings = {"temperature": 0.0, "steps": 9, "warm_start": warm_start, "ridge": 0.8, "noise": 1.2, **step}
    plain, collapsed = fed(
        mdp, DelayedLPSVI(sampler="plain", **settings), DelayedLPSVI(sampler="collapsed", **settings)
    )
    world = stream(1, "world")
    for episode in range(8):
        # Without noise some actions tie, which rounding must not decide: only the values are compared.
        np.testing.assert_allclose(values_of(plain, 0), values_of(collapsed, 1), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(plain.record.learned.samples, collapsed.record.learned.samples, rtol=1e-8, atol=1e-9)
        policy = TablePolicy(plain.plan(np.random.default_rng(episode)).actions)
        collapsed.plan(np.random.default_rng(episode))
        batch = [Feedback(1000 + episode, mdp.rollout(policy, world))]
        plain.learn(batch)
        collapsed.learn(batch)


def one_step_problem() -> tuple[TableProblem, list[Feedback], Floats, Floats]:
    """Return a bandit, its feedback, and Ω and ŵ for σ = 0.5 and λ = 2."""
    mdp = RandomLinearMDP(states=3, actions=3, dimension=3, horizon=1, seed=5)
    explorer, rng = RandomPolicy().start(mdp.problem), stream(3, "explorer")
    batch = [Feedback(k, mdp.rollout(explorer.plan(rng), rng)) for k in range(25)]
    phi = np.array([mdp.features[b.trajectory.rows[0], b.trajectory.actions[0]] for b in batch])
    y = np.array([b.trajectory.rewards[0] for b in batch])
    precision = phi.T @ phi / 0.25 + 2.0 * np.eye(3)
    return mdp.problem, batch, precision, np.linalg.solve(precision, phi.T @ y / 0.25)


def drawn(settings: DelayedLPSVI, count: int = 20_000) -> Floats:
    problem, batch, _, _ = one_step_problem()
    agent, rng = settings.start(problem), np.random.default_rng(11)
    agent.learn(batch)
    draws = np.empty((count, 3))
    for draw in draws:
        agent.plan(rng)
        draw[:] = agent.record.learned.samples[0, 0]
    return draws


@pytest.mark.parametrize("steps", [1, 3])
def test_preconditioned_with_one_half_draws_from_the_posterior(steps: int) -> None:
    _, _, precision, mean = one_step_problem()
    settings = DelayedLPSVI(
        sampler="preconditioned",
        step_ratio=0.5,
        steps=steps,
        warm_start="cold",
        temperature=3.0,
        noise=0.5,
        ridge=2.0,
        draws=1,
    )
    assert_distribution(drawn(settings), mean, 3.0 * np.linalg.inv(precision))


def test_collapsed_draws_have_the_distribution_of_the_plain_chain() -> None:
    _, _, precision, mean = one_step_problem()
    settings = DelayedLPSVI(
        sampler="collapsed", steps=4, warm_start="cold", temperature=3.0, noise=0.5, ridge=2.0, draws=1
    )
    identity = np.eye(3)
    a = identity - 2 * 0.5 / np.linalg.eigvalsh(precision)[-1] * precision
    kept = np.linalg.matrix_power(a, 4)
    covariance = 3.0 * (identity - kept @ kept) @ np.linalg.inv(precision) @ np.linalg.inv(identity + a)
    assert_distribution(drawn(settings), (identity - kept) @ mean, covariance)


def test_collapsed_notices_what_has_arrived() -> None:
    """The spectrum is kept between plans, but never across an arrival."""
    problem, batch, precision, mean = one_step_problem()
    settings = DelayedLPSVI(
        sampler="collapsed", temperature=0.0, steps=10**6, noise=0.5, ridge=2.0, draws=1, warm_start="cold"
    )
    agent = settings.start(problem)
    agent.plan(np.random.default_rng(0))
    np.testing.assert_array_equal(agent.record.learned.samples, np.zeros((1, 1, 3)))
    agent.learn(batch)
    agent.plan(np.random.default_rng(0))
    np.testing.assert_allclose(agent.record.learned.samples[0, 0], mean, rtol=1e-9)
    np.testing.assert_allclose(agent.record.learned.precision[0], precision, rtol=1e-12)


def test_a_chain_stays_put_whatever_the_signs_of_the_features() -> None:
    """Features of ±1, as effects and their interaction have, with only one pair ever visited."""
    effects = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)]
    problem = TableProblem(np.array([[[1.0, a, b, a * b] for a, b in effects]]), 1)
    mdp = FiniteMDP(np.ones((1, 4, 1)), [[0.5] * 4], features=problem.features, horizon=1)
    for pair in range(4):
        agent = DelayedLPSVI(temperature=0.01).start(problem)
        played = mdp.rollout(TablePolicy(np.array([[pair]])), np.random.default_rng(0))
        agent.learn([Feedback(k, played) for k in range(10)])
        rng = np.random.default_rng(0)
        for _ in range(5):
            agent.plan(rng)
            assert np.abs(agent.record.learned.samples).max() < 10.0


@pytest.mark.parametrize("sampler", ["plain", "collapsed"])
def test_a_step_size_that_diverges_is_refused(sampler: str) -> None:
    mdp = RiverSwim(states=3, horizon=3)
    agent = DelayedLPSVI(step_size=0.3, sampler=sampler).start(mdp.problem)
    rng = np.random.default_rng(0)
    agent.plan(rng)
    # At the first step λ_max = 1 + 3, at the others 1 + 2: only the first one, planned last, diverges.
    states = np.zeros(4, np.int64)
    batch = [Feedback(k, Trajectory(states, np.array([0, k % 2, k % 2]), np.zeros(3))) for k in range(3)]
    agent.learn(batch)
    before = {name: values.copy() for name, values in agent.memory().items()}
    with pytest.raises(InvalidInputError, match="step_size"):
        agent.plan(rng)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, before[name], err_msg=name)


def test_the_largest_step_size_follows_the_ridge_and_the_sampler() -> None:
    problem, rng = RiverSwim(states=3, horizon=3).problem, np.random.default_rng(0)
    DelayedLPSVI(step_size=0.99).start(problem).plan(rng)
    DelayedLPSVI(step_size=0.99, ridge=50.0, sampler="preconditioned").start(problem).plan(rng)
    with pytest.raises(InvalidInputError, match="step_size"):
        DelayedLPSVI(step_size=1.0).start(problem).plan(rng)
    with pytest.raises(InvalidInputError, match="step_size"):
        DelayedLPSVI(step_size=0.51, ridge=2.0).start(problem).plan(rng)
    with pytest.raises(InvalidInputError, match="step_size"):
        DelayedLPSVI(step_size=1.0, sampler="preconditioned").start(problem).plan(rng)
