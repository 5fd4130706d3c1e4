"""Delayed-UCBVI against its transcription; with one-hot features it is a table of counts; widths do not drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from naive import NaiveUCBVI
from side_by_side import ENVIRONMENTS, EPISODES, HOMOGENEOUS, MDPS, play

from belated._kernels.streams import stream
from belated.agents import DelayedUCBVI
from belated.delays import Constant, DelayDistribution, Poisson
from belated.environments import FiniteMDP, RiverSwim
from belated.types import Feedback, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("ridge", [1.0, 0.25])
def test_ucbvi_on_one_hot_features_is_tabular(ridge: float) -> None:
    mdp = RiverSwim(states=4, horizon=5)
    agent, beta = DelayedUCBVI(bonus=0.4, ridge=ridge).start(mdp.problem), 0.4
    rng, world = stream(0, "agent"), stream(0, "environment")
    visits = np.zeros((5, 4, 2))
    following = np.zeros((5, 4, 2, 4))
    reward_sums = np.zeros((5, 4, 2))
    for episode in range(70):
        policy = agent.plan(rng)
        values = np.zeros((6, 4))
        for h in range(4, -1, -1):
            targets = reward_sums[h] + following[h] @ values[h + 1]
            q = targets / (visits[h] + ridge) + beta / np.sqrt(visits[h] + ridge)
            values[h] = np.minimum(q.max(axis=1), 5 - h)
            chosen = np.take_along_axis(q, policy.actions[h][:, np.newaxis], axis=1)[:, 0]
            np.testing.assert_allclose(np.minimum(chosen, 5 - h), values[h], rtol=1e-10)
        np.testing.assert_allclose(agent.record.work.values, values, rtol=1e-10, atol=1e-12)
        widths = np.sqrt(agent.record.learned.widths.reshape(5, 4, 2))
        np.testing.assert_allclose(widths, 1.0 / np.sqrt(visits + ridge), rtol=1e-12)
        played = mdp.rollout(policy, world)
        agent.learn([Feedback(episode, played)])
        for h in range(5):
            pair = h, played.rows[h], played.actions[h]
            visits[pair] += 1
            reward_sums[pair] += played.rewards[h]
            following[pair][played.rows[h + 1]] += 1
    assert agent.record.learned.arrived[0] == 70


def pairs(kind: str) -> Floats:
    rng = np.random.default_rng(1)
    if kind == "one-hot":
        return np.eye(5)
    if kind == "nearly collinear":
        return np.ones(4) + 1e-3 * rng.standard_normal((6, 4))
    return rng.standard_normal((6, 4))


@pytest.mark.parametrize("ridge", [1.0, 1e-2])
@pytest.mark.parametrize("kind", ["one-hot", "nearly collinear", "dense"])
def test_widths_do_not_drift(kind: str, ridge: float) -> None:
    features = pairs(kind)
    count = len(features)
    agent = DelayedUCBVI(bonus=1.0, ridge=ridge).start(TableProblem(features[np.newaxis], 1))
    # Some pairs are seen only late. Widths are made afresh at every power of two: these are the longest waits.
    early, late = 2**13 + 1, 2**14 - 1
    rng = np.random.default_rng(0)
    visits = np.concatenate([rng.integers(count - 2, size=early), rng.integers(count, size=late - early)])
    done = 0
    for arrivals in (early, early + 1, late):
        agent.learn(
            [
                Feedback(k, Trajectory(np.zeros(2, np.int64), visits[k : k + 1], np.array([0.5])))
                for k in range(done, arrivals)
            ]
        )
        done = arrivals
        seen = np.bincount(visits[:done], minlength=count)
        precision = (features.T * seen) @ features + ridge * np.eye(features.shape[1])
        widths = np.einsum("ji,ij->j", features, np.linalg.solve(precision, features.T))
        np.testing.assert_allclose(agent.record.learned.widths[0], widths, rtol=1e-8)


def test_widths_after_many_arrivals() -> None:
    features = pairs("dense")
    agent = DelayedUCBVI(bonus=1.0).start(TableProblem(features[np.newaxis], 1))
    visits = np.random.default_rng(2).integers(len(features), size=2**15 - 1)
    for block in np.array_split(np.arange(len(visits)), 16):
        agent.learn([Feedback(k, Trajectory(np.zeros(2, np.int64), visits[k : k + 1], np.array([0.5]))) for k in block])
    precision = (features.T * np.bincount(visits)) @ features + np.eye(features.shape[1])
    widths = np.einsum("ji,ij->j", features, np.linalg.solve(precision, features.T))
    np.testing.assert_allclose(agent.record.learned.widths[0], widths, rtol=1e-8)


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
@pytest.mark.parametrize("distribution", [Constant(0), Poisson(5)])
def test_ucbvi(environment: str, distribution: DelayDistribution, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaiveUCBVI(mdp.features, mdp.horizon, **settings)
    features = mdp.features.reshape(-1, mdp.dimension)
    for agent, _, _ in play(mdp, DelayedUCBVI(**settings), naive, distribution, seed=4):
        widths = np.einsum("ji,hik,jk->hj", features, np.linalg.inv(naive.precision), features)
        np.testing.assert_allclose(agent.record.learned.widths, widths, rtol=1e-9)
    assert agent.record.learned.planned[0] == EPISODES


@HOMOGENEOUS
@pytest.mark.parametrize("settings", [{"bonus": 0.7}, {"bonus_form": "growing", "bonus_ratio": 0.04, "ridge": 0.3}])
def test_steps_that_share_one_regression(mdp: FiniteMDP, settings: dict[str, Any]) -> None:
    naive = NaiveUCBVI(mdp.features, mdp.horizon, shared=True, **settings)
    features = mdp.features.reshape(-1, mdp.dimension)
    for agent, _, _ in play(mdp, DelayedUCBVI(shared=True, **settings), naive, Poisson(5), seed=4):
        widths = np.einsum("ji,ik,jk->j", features, np.linalg.inv(naive.precision[0]), features)
        np.testing.assert_allclose(agent.record.learned.widths, [widths], rtol=1e-9)
