"""An observer sees the numbers behind every plan, and the run is the one that nobody looked at."""

from __future__ import annotations

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.agents import Settings
from belated.runner import Observed, Run, Simulation

WORLD = belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=4, bernoulli=True)
BANDIT = belated.LinearBandit(dimension=3, actions=3, sets="random", contexts=6)
DRAWING: dict[str, Settings] = {
    "psvi": belated.DelayedPSVI(scale=2.0, noise=0.5, draws=3),
    "psvi beyond the cap": belated.DelayedPSVI(scale=50.0),  # where actions are equal and chance decides
    "chains": belated.DelayedLPSVI(steps=5, warm_start="step"),
    "chains that go on": belated.DelayedLPSVI(steps=5, warm_start="episode"),
    "collapsed": belated.DelayedLPSVI(sampler="collapsed", warm_start="cold"),
    "preconditioned": belated.DelayedLPSVI(sampler="preconditioned"),
}


def observed(world: belated.FiniteMDP, algorithm: Settings, episodes: int = 40) -> list[Observed]:
    seen: list[Observed] = []
    rows = belated.simulate(world, algorithm, belated.Poisson(4), episodes=episodes, seed=1, observe=seen.append)
    alone = belated.simulate(world, algorithm, belated.Poisson(4), episodes=episodes, seed=1)
    assert_frame_equal(rows, alone, check_exact=True)
    assert [each.episode for each in seen] == list(range(episodes))
    assert [each.start for each in seen] == rows["start"].to_list()
    assert [each.trajectory.rewards.sum() for each in seen] == pytest.approx(rows["sampled_return"].to_list())
    return seen


IN_FLOAT32 = belated.DelayedPSVI(storage="float32")  # kernels of its own, which take long to compile


@pytest.mark.parametrize(
    "algorithm",
    [*DRAWING.values(), pytest.param(IN_FLOAT32, marks=pytest.mark.slow)],
    ids=[*DRAWING, "psvi in float32"],
)
def test_the_plan_is_the_one_that_was_played(algorithm: Settings) -> None:
    """Greedy in min{Q, steps left}, with V its maximum, and Q the largest of φᵀw over the weights drawn."""
    left = WORLD.horizon - np.arange(WORLD.horizon)
    for each in observed(WORLD, algorithm):
        assert each.plan is not None
        q, values, weights = each.plan
        capped = np.minimum(q, left[:, None, None])
        np.testing.assert_array_equal(capped.max(axis=2), values[:-1])
        np.testing.assert_array_equal(values[-1], 0.0)
        chosen = np.take_along_axis(capped, each.policy.actions[:, :, None], axis=2)[:, :, 0]
        np.testing.assert_allclose(chosen, values[:-1], rtol=1e-11)
        np.testing.assert_allclose(np.einsum("sad,hmd->hsam", WORLD.features, weights).max(axis=3), q, atol=1e-9)
        assert weights.shape == (4, getattr(algorithm, "draws"), 3)  # noqa: B009


def test_the_values_are_those_of_the_agent_s_own_plan() -> None:
    looked = []

    def look(seen: Observed) -> None:
        assert seen.plan is not None
        assert isinstance(seen.agent, belated.agents.Learner)
        np.testing.assert_array_equal(seen.agent.record.work.values, seen.plan.values)
        np.testing.assert_array_equal(seen.agent.record.work.q, seen.plan.q[0].ravel())
        looked.append(seen.episode)

    belated.simulate(WORLD, belated.DelayedPSVI(), belated.Poisson(4), episodes=30, seed=1, observe=look)
    assert looked == list(range(30))


def test_the_weights_are_normal_around_the_regression_of_what_has_arrived() -> None:
    """Before any feedback the draws of every step are νz/√λ, with the numbers of the agent's stream in their order."""
    (each,) = observed(WORLD, belated.DelayedPSVI(scale=2.0, ridge=4.0, draws=2), episodes=1)
    assert each.plan is not None
    normal = belated._kernels.streams.stream(1, "agent").standard_normal((4, 2, 3))[::-1]
    np.testing.assert_allclose(each.plan.weights, normal, rtol=1e-12)


def test_all_contexts_of_a_bandit_are_seen_though_it_plans_for_one() -> None:
    for each in observed(BANDIT, belated.DelayedPSVI(ties="first")):
        assert each.plan is not None
        assert each.policy.actions[0, each.start] == each.plan.q[0, each.start].argmax()
        assert (each.plan.q != 0.0).all()


@pytest.mark.parametrize(
    "algorithm", [belated.RandomPolicy(), belated.DelayedUCBVI(), belated.BOLD(base=belated.Greedy())]
)
def test_agents_that_draw_no_weights_are_observed_without(algorithm: Settings) -> None:
    world = BANDIT if isinstance(algorithm, belated.BOLD) else WORLD
    assert {each.plan for each in observed(world, algorithm, episodes=5)} == {None}


def test_a_run_that_is_observed_is_played_in_python() -> None:
    run = Run(WORLD, belated.DelayedPSVI(), belated.Constant(0), episodes=9, seed=0)
    assert Simulation(run).compiled
    observed = Simulation(run, observe=lambda seen: None)
    assert not observed.compiled
    assert not observed.can_be_saved
