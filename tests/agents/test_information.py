"""Information is the logarithm of the determinant of Ω."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from visits import visits

import belated
from belated._kernels.streams import stream
from belated.agents import CompiledSettings, RareSwitching
from belated.agents._information import measure
from belated.types import Feedback

WORLD = belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True)
BASES: dict[str, CompiledSettings] = {
    "psvi": belated.DelayedPSVI(),
    "lpsvi": belated.DelayedLPSVI(steps=5),
    "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned"),
    "ucbvi": belated.DelayedUCBVI(bonus=0.5),
    "tabular-ucbvi": belated.TabularUCBVI(),
    "greedy": belated.Greedy(),
    "epsilon-greedy": belated.EpsilonGreedy(),
}


def late(count: int) -> list[Feedback]:
    rng = stream(3, "environment")
    policies = stream(4, "agent").integers(3, size=(count, 3, 4))
    return [Feedback(k, WORLD.rollout(belated.TablePolicy(table), rng)) for k, table in enumerate(policies)]


@pytest.mark.parametrize("name", BASES)
def test_information_is_the_log_determinant(name: str) -> None:
    agent = BASES[name].start(WORLD.problem)
    feedback = late(20)
    agent.learn(feedback)
    found = np.zeros(3)
    measure(agent.record, found)
    for h in range(3):
        pairs = [(one.trajectory.rows[h], one.trajectory.actions[h]) for one in feedback]
        if name == "tabular-ucbvi":
            phi = np.array([np.eye(12)[s * 3 + a] for s, a in pairs])
        else:
            phi = np.array([WORLD.features[s, a] for s, a in pairs])
        assert found[h] == pytest.approx(np.linalg.slogdet(np.eye(phi.shape[1]) + phi.T @ phi)[1])


@pytest.mark.parametrize("base", [base for base in BASES.values() if hasattr(base, "shared")], ids=str)
def test_steps_that_share_a_regression_share_its_information(base: Any) -> None:
    world = belated.RiverSwim(states=3, horizon=4)
    agent = replace(base, shared=True).start(world.problem)
    feedback = visits(world, 20)
    agent.learn(feedback)
    found = np.zeros(4)
    measure(agent.record, found)
    pairs = [2 * one.trajectory.rows[:-1] + one.trajectory.actions for one in feedback]
    counts = np.bincount(np.concatenate(pairs), minlength=6)
    np.testing.assert_allclose(found, np.log1p(counts).sum())


@pytest.mark.slow
def test_the_information_of_a_bandit_is_that_of_its_only_step() -> None:
    bandit = belated.LinearBandit(actions=4, dimension=3)
    agent = RareSwitching(base=belated.DelayedOFU()).start(bandit.problem)
    rng = stream(0, "agent")
    agent.learn([Feedback(k, bandit.rollout(agent.plan(rng), rng)) for k in range(3)])
    found = np.zeros(1)
    measure(agent.record.base, found)
    factor = agent.record.base.learned.factor
    np.testing.assert_allclose(found, [np.linalg.slogdet(factor.T @ factor).logabsdet])
