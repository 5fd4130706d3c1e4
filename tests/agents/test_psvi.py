"""Delayed-PSVI against its transcription, and what its queue and factors in float32 change: little."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from in_python import InPython
from naive import NaivePSVI
from side_by_side import ENVIRONMENTS, HOMOGENEOUS, MDPS, fed, play, values_of
from visits import visits

import belated
from belated._kernels.block_update import BLOCK_FROM
from belated.agents import (
    DelayedPSVI,
)
from belated.agents._base import BATCH
from belated.delays import Constant, DelayDistribution, Fixed, Lossy, Pareto, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP

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
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Poisson(5), {}),
        (Poisson(5), {"draws": 1, "scale": 5.0, "noise": 0.1}),
        (Constant(0), {"draws": 3, "scale": 0.3, "noise": 2.0, "ridge": 0.1}),
        (Pareto(shape=1.0, scale=3), {"draws": 2, "scale": 2.0, "noise": 1.13, "ridge": 4.0}),
        (Lossy(Poisson(2), 0.5), {"draws": 2, "scale": 0.05, "noise": 0.5, "ridge": 1.0}),
    ],
)
def test_psvi(environment: str, distribution: DelayDistribution, settings: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaivePSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, DelayedPSVI(**settings), naive, distribution, seed=1):
        np.testing.assert_allclose(agent.record.work.weights, naive.weights[0, -1], rtol=1e-8, atol=1e-8)
        factor = agent.record.learned.factor
        precision = np.einsum("hki,hkj->hij", factor, factor)
        np.testing.assert_allclose(precision, naive.precision, rtol=1e-10, atol=1e-10)


@HOMOGENEOUS
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Poisson(5), {"shared": True}),
        (Lossy(Poisson(2), 0.5), {"shared": True, "draws": 3, "scale": 0.2, "noise": 0.5, "ridge": 0.3}),
    ],
)
def test_steps_that_share_one_regression(
    mdp: FiniteMDP, distribution: DelayDistribution, settings: dict[str, Any]
) -> None:
    naive = NaivePSVI(mdp.features, mdp.horizon, **settings)
    for agent, _, _ in play(mdp, DelayedPSVI(**settings), naive, distribution, seed=1):
        np.testing.assert_allclose(agent.record.work.weights, naive.weights[0, -1], rtol=1e-8, atol=1e-8)
        factor = agent.record.learned.factor
        assert len(factor) == 1
        np.testing.assert_allclose(factor[0].T @ factor[0], naive.precision[0], rtol=1e-10, atol=1e-10)


@WORLDS
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


def dense(horizon: int = 2) -> FiniteMDP:
    return RandomLinearMDP(states=20, actions=5, dimension=24, horizon=horizon)


@pytest.mark.parametrize("count", [3, 4 * BLOCK_FROM, BATCH, BATCH + 40])
def test_a_batch_learned_together_is_what_it_is_one_by_one(count: int) -> None:
    world, settings = dense(), belated.DelayedPSVI(noise=0.3)
    together, apart = settings.start(world.problem), settings.start(world.problem)
    batch = visits(world, count)
    together.learn(batch)
    for each in batch:
        apart.learn([each])
    for name, values in together.memory().items():
        np.testing.assert_allclose(values, apart.memory()[name], rtol=1e-9, atol=1e-9, err_msg=name)
    assert together.record.queue.size[0] == 0
    plans = [agent.plan(np.random.default_rng(0)).actions for agent in (together, apart)]
    np.testing.assert_array_equal(plans[0], plans[1])


def test_bursts_give_the_same_rows_compiled_and_in_python() -> None:
    """Sixty trajectories arrive at once, again and again."""
    world, settings, distribution = dense(), belated.DelayedPSVI(), Fixed([60 - k % 60 for k in range(240)])
    compiled, asked = (
        belated.simulate(world, algorithm, distribution, episodes=240, seed=0)
        for algorithm in (settings, InPython(settings))
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
def test_constant_delays_leave_nothing_to_settle(storage: str) -> None:
    world = dense()
    rows = belated.simulate(world, belated.DelayedPSVI(storage=storage), Constant(3), episodes=50, seed=1)
    assert rows["arrived"].to_list()[:6] == [0, 0, 0, 0, 1, 1]


def test_small_batches_have_kernels_of_their_own_with_the_same_bits() -> None:
    """Only what can arrive together decides which of them are compiled."""
    world = dense()
    few, whole = (DelayedPSVI(noise=0.3).start(world.problem) for _ in range(2))
    assert type(few.record_for(BLOCK_FROM - 1)) is not type(few.record_for(BLOCK_FROM))
    whole.record_for = lambda most: whole.record  # type: ignore[method-assign]
    rng = np.random.default_rng(0)
    for size in (1, 2, min(BLOCK_FROM, 40) - 1):
        batch = [belated.Feedback(k, world.rollout(few.plan(rng), rng)) for k in range(size)]
        few.learn(batch)
        whole.learn(batch)
    for name, values in few.memory().items():
        np.testing.assert_array_equal(values, whole.memory()[name], err_msg=name)
