"""Each named baseline plans what its published definition plans, episode by episode, with the same random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from belated.agents import CompiledSettings
from belated.agents._baselines import lmc_lsvi, lsvi_phe, lsvi_ucb, rlsvi
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.types import Feedback, Trajectory

Floats = npt.NDArray[np.float64]
Rule = Callable[[int, Floats, Floats, list[int], np.random.Generator], Floats]
EPISODES, RIDGE = 25, 0.7

WORLDS = pytest.mark.parametrize(
    "world",
    [
        RandomLinearMDP(states=5, actions=3, dimension=4, horizon=3, seed=3, bernoulli=True),
        RiverSwim(states=3, horizon=4),
    ],
    ids=lambda world: world.label,
)


def assert_is(world: FiniteMDP, settings: CompiledSettings, rule: Rule, *, capped: bool = True) -> None:
    """Play `settings` without delay against least-squares value iteration in which `rule` gives Q from the data."""
    agent, played = settings.start(world.problem), list[Trajectory]()
    mine, other, dynamics = (np.random.default_rng(seed) for seed in (1, 1, 2))
    for episode in range(EPISODES):
        policy = agent.plan(mine)
        values = np.zeros((world.horizon + 1, world.states))
        wanted = np.zeros((world.horizon, world.states), np.int64)
        for h in reversed(range(world.horizon)):
            phi = np.array([world.features[t.rows[h], t.actions[h]] for t in played]).reshape(-1, world.dimension)
            y = np.array([t.rewards[h] + values[h + 1, t.rows[h + 1]] for t in played])
            pairs = [int(t.rows[h] * world.actions + t.actions[h]) for t in played]
            q = rule(h, phi, y, pairs, other)
            q = np.minimum(q, world.horizon - h) if capped else q
            values[h] = q.max(axis=1)
            for s in range(world.states):
                ties = np.flatnonzero(q[s] >= values[h, s] - 1e-12 * max(1.0, abs(values[h, s])))
                wanted[h, s] = ties[int(other.random() * ties.size)] if ties.size > 1 else ties[0]
        np.testing.assert_allclose(agent.record.work.values, values, rtol=1e-7, atol=1e-7, err_msg=f"V of {episode}")
        np.testing.assert_array_equal(policy.actions, wanted, err_msg=f"policy of episode {episode}")
        played.append(world.rollout(policy, dynamics))
        agent.learn([Feedback(episode, played[-1])])
    assert mine.bit_generator.state == other.bit_generator.state


@WORLDS
def test_lsvi_ucb(world: FiniteMDP) -> None:
    d, horizon = world.dimension, world.horizon
    # β = c·dH√ι with ι = log(2dT/p), T = KH, as in Theorem 3.1
    beta = 0.01 * d * horizon * math.sqrt(math.log(2 * d * EPISODES * horizon / 0.1))

    def rule(h: int, phi: Floats, y: Floats, pairs: list[int], rng: np.random.Generator) -> Floats:
        gram = phi.T @ phi + RIDGE * np.eye(d)
        w = np.linalg.solve(gram, phi.T @ y)
        width = np.einsum("sai,ij,saj->sa", world.features, np.linalg.inv(gram), world.features)
        q: Floats = world.features @ w + beta * np.sqrt(width)
        return q

    assert_is(world, lsvi_ucb(world.problem, EPISODES, bonus_scale=0.01, failure=0.1, ridge=RIDGE), rule)


@WORLDS
def test_rlsvi(world: FiniteMDP) -> None:
    noise, d = 0.4, world.dimension

    def rule(h: int, phi: Floats, y: Floats, pairs: list[int], rng: np.random.Generator) -> Floats:
        covariance = np.linalg.inv(phi.T @ phi / noise**2 + RIDGE * np.eye(d))
        mean = covariance @ phi.T @ y / noise**2
        lower = np.linalg.cholesky(np.linalg.inv(covariance))
        q: Floats = world.features @ (mean + np.linalg.solve(lower.T, rng.standard_normal(d)))
        return q

    assert_is(world, rlsvi(noise=noise, ridge=RIDGE), rule, capped=False)


@WORLDS
def test_lsvi_phe(world: FiniteMDP) -> None:
    sigma, draws, d = 0.6, 3, world.dimension

    def rule(h: int, phi: Floats, y: Floats, pairs: list[int], rng: np.random.Generator) -> Floats:
        """Minimise Σ(y + ε − φᵀw)² + λ‖w − ζ‖² for perturbed targets and a perturbed prior mean ζ ~ N(0, σ²I/λ)."""
        drawn = []
        for _ in range(draws):
            prior = sigma / math.sqrt(RIDGE) * rng.standard_normal(d)
            shared = {pair: sigma * rng.standard_normal() for pair in sorted(set(pairs))}
            # n independent N(0, σ²) of one pair act through their mean only, which is N(0, σ²/n)
            epsilon = np.array([shared[pair] / math.sqrt(pairs.count(pair)) for pair in pairs])
            rows = np.vstack([phi, math.sqrt(RIDGE) * np.eye(d)])
            targets = np.concatenate([y + epsilon, math.sqrt(RIDGE) * prior])
            drawn.append(np.linalg.lstsq(rows, targets)[0])
        q: Floats = np.max([world.features @ w for w in drawn], axis=0)
        return q

    assert_is(world, lsvi_phe(perturbation=sigma, draws=draws, ridge=RIDGE), rule)


@WORLDS
def test_lmc_lsvi(world: FiniteMDP) -> None:
    beta, steps, eta, d = 20.0, 6, 0.004, world.dimension
    chains = np.zeros((world.horizon, d))

    def rule(h: int, phi: Floats, y: Floats, pairs: list[int], rng: np.random.Generator) -> Floats:
        w = chains[h]
        for _ in range(steps):
            gradient = 2 * RIDGE * w
            for row, target in zip(phi, y, strict=True):
                gradient = gradient - 2 * (target - row @ w) * row  # ∇ of Σ(y − φᵀw)² + λ‖w‖²
            w = w - eta * gradient + math.sqrt(2 * eta / beta) * rng.standard_normal(d)
        chains[h] = w
        q: Floats = world.features @ w
        return q

    assert_is(world, lmc_lsvi(inverse_temperature=beta, steps=steps, step_size=eta, ridge=RIDGE), rule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lsvi_ucb("world", 10), "problem must be of type Problem"),  # type: ignore[arg-type]
        (lambda: lsvi_ucb(RiverSwim().problem, 0), "episodes must be"),
        (lambda: lsvi_ucb(RiverSwim().problem, 10, failure=1.0), "failure must be"),
        (lambda: lsvi_ucb(RiverSwim().problem, 10, bonus_scale=-1.0), "bonus_scale must be"),
        (lambda: lmc_lsvi(inverse_temperature=0.0), "inverse_temperature must be"),
    ],
)
def test_bad_values_are_named(make: Callable[[], CompiledSettings], message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        make()
