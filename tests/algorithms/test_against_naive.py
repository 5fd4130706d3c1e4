"""Each published algorithm plans exactly what its line-by-line transcription plans, over many delayed episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from naive import NaiveAgent, NaiveLPSVI, NaivePSVI, NaiveUCBVI

from belated.algorithms import CompiledSettings, DelayedLPSVI, DelayedPSVI, DelayedUCBVI, EpsilonGreedy, Greedy
from belated.algorithms.agent import Learner
from belated.delays import Constant, DelayBuffer, DelayLaw, Lossy, Pareto, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.rng import stream
from belated.types import Feedback, Policy, Trajectory

EPISODES = 60

ENVIRONMENTS: dict[str, Callable[[], FiniteMDP]] = {
    "synthetic": lambda: SyntheticLinearMDP(actions=6, horizon=8),
    "synthetic-20": lambda: SyntheticLinearMDP(actions=20, horizon=5),
    "riverswim": lambda: RiverSwim(states=4, horizon=6),
    "random-linear": lambda: RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True),
}
MDPS = pytest.mark.parametrize("environment", list(ENVIRONMENTS))


def play(
    environment: FiniteMDP,
    settings: CompiledSettings,
    naive: NaiveAgent,
    law: DelayLaw,
    seed: int,
    episodes: int = EPISODES,
) -> Iterator[tuple[Learner, np.random.Generator, np.random.Generator]]:
    """Play both agents on the same trajectories, compare every policy, and yield after each plan."""
    agent = settings.start(environment.problem)
    buffer: DelayBuffer[Trajectory] = DelayBuffer()
    world, mine, other = stream(seed, "environment"), stream(seed, "agent"), stream(seed, "agent")
    delays = law.sample(stream(seed, "delay"), episodes)
    arrived = 0
    for k, delay in enumerate(delays):
        batch = [Feedback(origin, trajectory) for origin, trajectory in buffer.arrived(k)]
        arrived += len(batch)
        agent.learn(batch)
        policy = agent.plan(mine)
        np.testing.assert_array_equal(policy.actions, naive.plan(k, other), err_msg=f"policy of episode {k}")
        np.testing.assert_allclose(
            agent.record.work.values, naive.values, rtol=1e-8, atol=1e-8, err_msg=f"V of episode {k}"
        )
        yield agent, mine, other
        trajectory = environment.rollout(Policy(policy.actions), world)
        buffer.add(k, int(delay), trajectory)
        naive.observe(k, int(delay), trajectory.states, trajectory.actions, trajectory.rewards)
    assert mine.bit_generator.state == other.bit_generator.state
    assert 0 < arrived < episodes


@MDPS
@pytest.mark.parametrize(
    ("law", "settings"),
    [
        (Poisson(5), {}),
        (Poisson(5), {"draws": 1, "scale": 5.0, "noise": 0.1}),
        (Constant(0), {"draws": 3, "scale": 0.3, "noise": 2.0, "ridge": 0.1}),
        (Pareto(shape=1.0, scale=3), {"draws": 2, "scale": 2.0, "noise": 1.13, "ridge": 4.0}),
        (Lossy(Poisson(2), 0.5), {"draws": 2, "scale": 0.05, "noise": 0.5, "ridge": 1.0}),
    ],
)
def test_psvi(environment: str, law: DelayLaw, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaivePSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, DelayedPSVI(**settings), naive, law, seed=1):
        np.testing.assert_allclose(agent.record.work.weights, naive.weights[0, -1], rtol=1e-8, atol=1e-8)
        factor = agent.record.learned.factor
        precision = np.einsum("hki,hkj->hij", factor, factor)
        np.testing.assert_allclose(precision, naive.precision, rtol=1e-10, atol=1e-10)


@MDPS
@pytest.mark.parametrize("sampler", ["plain", "preconditioned"])
@pytest.mark.parametrize("warm_start", ["episode", "step", "cold"])
@pytest.mark.parametrize(
    ("law", "settings"),
    [
        (Poisson(5), {"draws": 2, "steps": 7, "temperature": 0.5, "step_ratio": 0.4}),
        (
            Lossy(Poisson(3), 0.7),
            {"draws": 1, "steps": 3, "temperature": 2.0, "step_size": 0.003, "noise": 1.3, "ridge": 0.5},
        ),
    ],
)
def test_lpsvi(environment: str, law: DelayLaw, sampler: str, warm_start: str, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    settings = {**settings, "sampler": sampler, "warm_start": warm_start}
    naive = NaiveLPSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, DelayedLPSVI(**settings), naive, law, seed=2):
        learned = agent.record.learned
        np.testing.assert_allclose(learned.samples, naive.weights, rtol=1e-8, atol=1e-8)
        if sampler == "plain":
            np.testing.assert_allclose(learned.precision, naive.precision, rtol=1e-12, atol=1e-12)
        else:
            precision = np.einsum("hki,hkj->hij", learned.factor, learned.factor)
            np.testing.assert_allclose(precision, naive.precision, rtol=1e-10, atol=1e-10)


def test_lpsvi_with_the_published_settings() -> None:
    mdp = ENVIRONMENTS["synthetic"]()
    settings = {"draws": 2, "steps": 40, "temperature": 0.02, "step_ratio": 0.5}
    naive = NaiveLPSVI(mdp.features, mdp.horizon, **settings)  # type: ignore[arg-type]
    for agent, _, _ in play(mdp, DelayedLPSVI(**settings), naive, Poisson(5), 3):  # type: ignore[arg-type]
        np.testing.assert_allclose(agent.record.learned.samples, naive.weights, rtol=1e-8, atol=1e-8)


@MDPS
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bonus_ratio": 0.02, "ridge": 0.3},
        {"bonus_form": "growing", "bonus_ratio": 0.04},
        {"bonus": 0.7, "bonus_form": "growing"},
        {"bonus": 0.05, "ridge": 2.0},
        {"bonus": 0.0},
    ],
)
@pytest.mark.parametrize("law", [Constant(0), Poisson(5)])
def test_ucbvi(environment: str, law: DelayLaw, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaiveUCBVI(mdp.features, mdp.horizon, **settings)
    features = mdp.features.reshape(-1, mdp.dimension)
    for agent, _, _ in play(mdp, DelayedUCBVI(**settings), naive, law, seed=4):
        widths = np.einsum("ji,hik,jk->hj", features, np.linalg.inv(naive.precision), features)
        np.testing.assert_allclose(agent.record.learned.widths, widths, rtol=1e-9)
    assert agent.record.learned.planned[0] == EPISODES


@MDPS
@pytest.mark.parametrize("settings", [Greedy(ridge=0.7), EpsilonGreedy(epsilon=0.0, ridge=0.7)])
def test_greedy_is_the_optimistic_algorithm_without_a_bonus(environment: str, settings: CompiledSettings) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaiveUCBVI(mdp.features, mdp.horizon, bonus=0.0, ridge=0.7)
    for _, _, other in play(mdp, settings, naive, Poisson(5), seed=5):
        if isinstance(settings, EpsilonGreedy):  # one coin a pair (h, s), all of them heads
            other.random(mdp.horizon * mdp.states)
