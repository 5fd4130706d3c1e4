"""A watched run, against a loop of its own that plans in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from belated import (
    Constant,
    DelayDistribution,
    DelayedLPSVI,
    DelayedPSVI,
    Feedback,
    FiniteMDP,
    Poisson,
    RandomLinearMDP,
    TablePolicy,
    Trajectory,
    simulate,
)
from belated._kernels.planning import TIE
from belated._kernels.streams import stream
from belated.agents._base import Learner
from belated.delays import FeedbackQueue
from belated.types import Floats
from belated_studies.lemmas.watch import precisions, watch

WORLD = RandomLinearMDP(states=3, actions=2, dimension=2, horizon=3, seed=4)
SETTINGS = [
    DelayedPSVI(draws=3, scale=0.7, noise=0.8, ridge=0.5),
    DelayedPSVI(draws=2, scale=50.0),  # beyond the cap, where actions are equal and chance decides
    DelayedLPSVI(draws=3, steps=7, temperature=0.5, step_ratio=0.25, sampler="collapsed", warm_start="cold"),
]


def drawn(agent: Learner, h: int, moment: Floats, rng: np.random.Generator) -> Floats:
    """Return the M weight vectors of step h, shape (M, d), from their distribution."""
    settings, omega = agent.settings, precisions(agent)[h]
    assert isinstance(settings, DelayedPSVI | DelayedLPSVI)
    normal = rng.standard_normal((settings.draws, moment.size))
    if isinstance(settings, DelayedPSVI):
        factor: Floats = np.linalg.cholesky(omega).T  # Ω = UᵀU, w = U⁻¹(U⁻ᵀm + νz)
        half: Floats = np.linalg.solve(factor.T, moment) + settings.scale * normal
        exact: Floats = np.asarray(np.linalg.solve(factor, half.T).T, dtype=np.float64)
        return exact
    eigenvalues, vectors = np.linalg.eigh(omega)
    contraction = 1 - 2 * settings.step_ratio * eigenvalues / eigenvalues[-1]  # A = I − 2ηΩ
    kept = contraction**settings.steps
    mean = (1 - kept) * (moment @ vectors) / eigenvalues
    variance = settings.temperature * (1 - kept**2) / (eigenvalues * (1 + contraction))  # Θ
    found: Floats = (mean + np.sqrt(variance) * normal) @ vectors.T
    return found


def plan(agent: Learner, rng: np.random.Generator) -> tuple[TablePolicy, Floats, Floats]:
    """Return a plan with its action values before the cap and its values."""
    features, horizon = agent.problem.features, agent.problem.horizon
    states, actions, _ = features.shape
    learned = agent.record.learned
    q, values = np.zeros((horizon, states, actions)), np.zeros((horizon + 1, states))
    policy = np.zeros((horizon, states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        moment = learned.reward_moment[h] + values[h + 1] @ learned.next_moment[h]
        q[h] = (features @ drawn(agent, h, moment, rng).T).max(axis=-1)
        for s in range(states):
            best = values[h, s] = min(q[h, s].max(), horizon - h)
            ties = np.flatnonzero(q[h, s] >= best - TIE * max(1.0, abs(best)))
            policy[h, s] = ties[int(rng.random() * ties.size)] if ties.size > 1 else ties[0]
    return TablePolicy(policy), q, values


def slowly(
    world: FiniteMDP, settings: DelayedPSVI | DelayedLPSVI, delay: DelayDistribution, *, episodes: int, seed: int
) -> tuple[float, float, float]:
    """Return gap, optimistic share and deviation of the run of `simulate`, state by state."""
    rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
    delays, buffer = delay.sample(rngs["delay"], episodes), FeedbackQueue[Trajectory]()
    agent, optimal = settings.start(world.problem), world.optimal_values()
    assert isinstance(agent, Learner)
    gaps, deviations = [], [0.0]
    for episode in range(episodes):
        agent.learn([Feedback(*late) for late in buffer.arrived(episode)])
        start = world.first_state(rngs["environment"], episode=episode)
        policy, q, values = plan(agent, rngs["agent"])
        for h, s, a in np.ndindex(q.shape):
            phi, reward, onwards = world.features[s, a], world.rewards[h, s, a], world.transitions[h, s, a]
            gaps.append(q[h, s, a] - reward - onwards @ optimal[h + 1])
            norm = np.sqrt(phi @ np.linalg.solve(precisions(agent)[h], phi))
            deviations.append((abs(q[h, s, a] - reward - onwards @ values[h + 1]) - 1 / episodes**3) / norm)
        played = world.rollout(policy, rngs["environment"], episode=episode, start=start)
        buffer.add(episode, int(delays[episode]), played)
    return min(gaps), float(np.mean(np.array(gaps) >= 0)), max(deviations)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_watched_run_is_that_of_the_runner_and_of_a_slow_loop(settings: DelayedPSVI | DelayedLPSVI) -> None:
    watched = watch(WORLD, settings, Poisson(3), episodes=30, seed=5)
    rows = simulate(WORLD, settings, Poisson(3), episodes=30, seed=5)
    assert watched.delays.tolist() == rows["delay"].to_list()
    found = (watched.gap, watched.optimistic, watched.deviation)
    assert found == pytest.approx(slowly(WORLD, settings, Poisson(3), episodes=30, seed=5), abs=1e-9)
    omegas = np.tile(settings.ridge * np.eye(2), (3, 1, 1))
    for h in range(3):
        arrived = watched.features[np.arange(30) + watched.delays < 29, h]
        omegas[h] += arrived.T @ arrived / settings.noise**2
    np.testing.assert_allclose(watched.precisions, omegas, atol=1e-9)


def test_gap_and_deviation_by_hand() -> None:
    """One state, one action, one step: Q* is the reward 1/2, and the only plan has Q = νz over √λ."""
    world = RandomLinearMDP(states=1, actions=1, dimension=1, horizon=1)
    reward = float(world.rewards[0, 0, 0])
    settings = DelayedPSVI(draws=1, scale=2.0, ridge=4.0)
    watched = watch(world, settings, Constant(0), episodes=1, seed=3)
    q = 2.0 * stream(3, "agent").standard_normal() / 2.0
    assert watched.gap == pytest.approx(q - reward)
    assert watched.optimistic == float(q >= reward)
    assert watched.deviation == pytest.approx(max(0.0, (abs(q - reward) - 1.0) * 2.0))
