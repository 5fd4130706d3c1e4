"""Delayed-PSVI with variance weights against its transcription, and what the weights do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import NaiveWeightedPSVI
from side_by_side import ENVIRONMENTS, HOMOGENEOUS, MDPS, play

from belated.agents import VarianceWeightedPSVI
from belated.delays import Constant, DelayDistribution, Lossy, Poisson
from belated.environments import FiniteMDP
from belated.errors import InvalidInputError
from belated.types import Feedback, Trajectory


@MDPS
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Poisson(5), {}),
        (Constant(0), {"draws": 3, "scale": 0.3, "noise": 2.0, "ridge": 0.1}),
        (Lossy(Poisson(2), 0.5), {"draws": 1, "scale": 0.05, "noise": 0.5}),
    ],
)
def test_it_is_its_transcription(environment: str, distribution: DelayDistribution, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaiveWeightedPSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, VarianceWeightedPSVI(**settings), naive, distribution, seed=1):
        factor = agent.record.work.factor
        np.testing.assert_allclose(factor.T @ factor, naive.precision[0], rtol=1e-8, atol=1e-8)


@HOMOGENEOUS
def test_steps_that_share_one_regression(mdp: FiniteMDP) -> None:
    settings: dict[str, Any] = {"shared": True, "scale": 0.2, "ridge": 0.3}
    naive = NaiveWeightedPSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, VarianceWeightedPSVI(**settings), naive, Poisson(5), seed=1):
        assert len(agent.record.learned.factor) == 1


def test_an_arm_that_always_pays_the_same_is_known_sooner_than_one_that_does_not() -> None:
    """With n visits of a pair Ω = λ + n/v: v is v_max/n where nothing varied, and near 1/4 where half is won."""
    arms = FiniteMDP(np.ones((1, 2, 1)), rewards=[[0.5, 0.5]], horizon=1)
    agent = VarianceWeightedPSVI(ridge=1e-9).start(arms.problem)
    batch = [
        Feedback(2 * k + a, Trajectory(np.zeros(2, np.int64), np.array([a]), np.array([reward])))
        for k in range(50)
        for a, reward in ((0, 0.5), (1, float(k % 2)))
    ]
    agent.learn(batch)
    agent.plan(np.random.default_rng(0))
    sure, varied = np.diag(agent.record.work.factor) ** 2
    assert sure == pytest.approx(50 / ((0.25 / 50) / (1 + 1 / 50)), rel=1e-6)
    assert varied == pytest.approx(50 / 0.25, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "said"), [({"scale": -1.0}, "scale"), ({"noise": 0.0}, "noise"), ({"shared": 1}, "shared")]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        VarianceWeightedPSVI(**settings)
