"""Acting on the least-squares estimate alone: what other algorithms become without exploration."""

from __future__ import annotations

import numpy as np
import pytest
from naive import NaiveUCBVI
from side_by_side import ENVIRONMENTS, HOMOGENEOUS, MDPS, fed, play, values_of

from belated.agents import (
    CompiledSettings,
    DelayedLPSVI,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    Greedy,
)
from belated.delays import Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP

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
@pytest.mark.parametrize("settings", [Greedy(ridge=0.7), EpsilonGreedy(epsilon=1e-12, ridge=0.7)])
def test_greedy_is_the_optimistic_algorithm_without_a_bonus(environment: str, settings: CompiledSettings) -> None:
    mdp = ENVIRONMENTS[environment]()
    naive = NaiveUCBVI(mdp.features, mdp.horizon, bonus=0.0, ridge=0.7)
    for _, _, other in play(mdp, settings, naive, Poisson(5), seed=5):
        if isinstance(settings, EpsilonGreedy):  # one coin a pair (h, s), all of them heads
            other.random(mdp.horizon * mdp.states)


@HOMOGENEOUS
@pytest.mark.parametrize(
    "settings", [Greedy(ridge=0.7, shared=True), EpsilonGreedy(epsilon=1e-12, ridge=0.7, shared=True)], ids=str
)
def test_steps_that_share_one_regression(mdp: FiniteMDP, settings: CompiledSettings) -> None:
    naive = NaiveUCBVI(mdp.features, mdp.horizon, bonus=0.0, ridge=0.7, shared=True)
    for _, _, other in play(mdp, settings, naive, Poisson(5), seed=5):
        if isinstance(settings, EpsilonGreedy):
            other.random(mdp.horizon * mdp.states)


@WORLDS
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
