"""CompiledSettings that ought to make two algorithms the same do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_law

from belated.algorithms import (
    CompiledSettings,
    DelayedLPSVI,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    Greedy,
    RandomPolicy,
)
from belated.algorithms.agent import Learner
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.rng import stream
from belated.types import Feedback, Policy, Problem

Floats = npt.NDArray[np.float64]

ENVIRONMENTS = pytest.mark.parametrize(
    "mdp",
    [
        SyntheticLinearMDP(actions=6, horizon=6),
        RiverSwim(states=4, horizon=6),
        RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5),
    ],
    ids=lambda mdp: mdp.label,
)


def fed(mdp: FiniteMDP, *settings: CompiledSettings, episodes: int = 30) -> list[Learner]:
    """Start agents and let each learn the same trajectories of a random policy."""
    agents = [setting.start(mdp.problem) for setting in settings]
    explorer, rng, world = RandomPolicy().start(mdp.problem), stream(0, "explorer"), stream(0, "world")
    batch = [Feedback(k, mdp.rollout(explorer.plan(rng), world)) for k in range(episodes)]
    for agent in agents:
        agent.learn(batch)
    return agents


def values_of(agent: Learner, seed: int) -> Floats:
    agent.plan(np.random.default_rng(seed))
    values: Floats = agent.record.work.values.copy()
    return values


@ENVIRONMENTS
def test_psvi_of_scale_zero_is_greedy(mdp: FiniteMDP) -> None:
    greedy, *others = fed(
        mdp,
        Greedy(ridge=0.5),
        DelayedPSVI(scale=0.0, ridge=0.5),
        DelayedPSVI(scale=0.0, ridge=0.5, draws=3),
        EpsilonGreedy(epsilon=0.0, ridge=0.5),
        EpsilonGreedy(epsilon=1.0, ridge=0.5),
        DelayedUCBVI(bonus=0.0, ridge=0.5),
        DelayedLPSVI(sampler="preconditioned", temperature=0.0, ridge=0.5),
        # N(ŵ, γΩ⁻¹) of a chain that has long forgotten its start
        DelayedLPSVI(sampler="collapsed", temperature=0.0, steps=10**6, ridge=0.5),
    )
    wanted = values_of(greedy, 0)
    assert wanted[0].max() > 0
    for agent in others:
        np.testing.assert_allclose(values_of(agent, 1), wanted, rtol=1e-9, atol=1e-9, err_msg=str(agent.settings))


def test_greedy_policies_are_the_same_where_there_is_no_tie() -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5)
    greedy, psvi, epsilon, ucb = fed(
        mdp, Greedy(), DelayedPSVI(scale=0.0), EpsilonGreedy(epsilon=0.0), DelayedUCBVI(bonus=0.0)
    )
    wanted = greedy.plan(np.random.default_rng(0)).actions
    for seed, agent in enumerate((greedy, psvi, epsilon, ucb)):
        np.testing.assert_array_equal(agent.plan(np.random.default_rng(seed)).actions, wanted)


@ENVIRONMENTS
@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_only_the_products_of_noise_with_scale_and_ridge_matter(mdp: FiniteMDP, factor: float) -> None:
    one, other, unscaled = fed(
        mdp,
        DelayedPSVI(noise=0.7, scale=2.0, ridge=0.9),
        DelayedPSVI(noise=0.7 * factor, scale=2.0 / factor, ridge=0.9 / factor**2),
        DelayedPSVI(noise=0.7 * factor, scale=2.0, ridge=0.9),
    )
    for seed in range(5):
        np.testing.assert_array_equal(
            one.plan(np.random.default_rng(seed)).actions, other.plan(np.random.default_rng(seed)).actions
        )
        np.testing.assert_allclose(values_of(one, seed), values_of(other, seed), rtol=1e-9)
    assert np.abs(values_of(one, 0) - values_of(unscaled, 0)).max() > 1e-3


@ENVIRONMENTS
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
        policy = Policy(plain.plan(np.random.default_rng(episode)).actions)
        collapsed.plan(np.random.default_rng(episode))
        batch = [Feedback(episode, mdp.rollout(policy, world))]
        plain.learn(batch)
        collapsed.learn(batch)


def one_step_problem() -> tuple[Problem, list[Feedback], Floats, Floats]:
    """Return a bandit, its feedback, and Ω and ŵ for σ = 0.5 and λ = 2."""
    mdp = RandomLinearMDP(states=3, actions=3, dimension=3, horizon=1, seed=5)
    explorer, rng = RandomPolicy().start(mdp.problem), stream(3, "explorer")
    batch = [Feedback(k, mdp.rollout(explorer.plan(rng), rng)) for k in range(25)]
    phi = np.array([mdp.features[b.trajectory.states[0], b.trajectory.actions[0]] for b in batch])
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
    assert_law(drawn(settings), mean, 3.0 * np.linalg.inv(precision))


def test_collapsed_draws_have_the_law_of_the_plain_chain() -> None:
    _, _, precision, mean = one_step_problem()
    settings = DelayedLPSVI(
        sampler="collapsed", steps=4, warm_start="cold", temperature=3.0, noise=0.5, ridge=2.0, draws=1
    )
    identity = np.eye(3)
    a = identity - 2 * 0.5 / np.linalg.eigvalsh(precision)[-1] * precision
    kept = np.linalg.matrix_power(a, 4)
    covariance = 3.0 * (identity - kept @ kept) @ np.linalg.inv(precision) @ np.linalg.inv(identity + a)
    assert_law(drawn(settings), (identity - kept) @ mean, covariance)


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


def test_epsilon_greedy_takes_random_actions_that_often() -> None:
    mdp = RandomLinearMDP(states=6, actions=4, dimension=4, horizon=5)
    greedy, epsilon = fed(mdp, Greedy(), EpsilonGreedy(epsilon=0.4))
    wanted, rng = greedy.plan(np.random.default_rng(0)).actions, np.random.default_rng(1)
    plans = np.array([epsilon.plan(rng).actions for _ in range(2000)])
    differ = (plans != wanted).mean()
    chance = 0.4 * 3 / 4  # one of the four random actions is the greedy one
    assert differ == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / plans.size))
    shares = np.bincount(plans[plans != wanted], minlength=4) / (plans != wanted).sum()
    away = np.array([(wanted != action).sum() for action in range(4)]) / (3 * wanted.size)
    np.testing.assert_allclose(shares, away, atol=0.02)


def test_a_chain_stays_put_whatever_the_signs_of_the_features() -> None:
    """Features of ±1, as effects and their interaction have, with only one pair ever visited."""
    effects = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)]
    problem = Problem(np.array([[[1.0, a, b, a * b] for a, b in effects]]), 1)
    mdp = FiniteMDP(np.ones((1, 4, 1)), [[0.5] * 4], features=problem.features, horizon=1)
    for pair in range(4):
        agent = DelayedLPSVI(temperature=0.01).start(problem)
        played = mdp.rollout(Policy(np.array([[pair]])), np.random.default_rng(0))
        agent.learn([Feedback(k, played) for k in range(10)])
        rng = np.random.default_rng(0)
        for _ in range(5):
            agent.plan(rng)
            assert np.abs(agent.record.learned.samples).max() < 10.0
