"""The refactorising variant and the stopwatch."""

from __future__ import annotations

import numpy as np
import pytest
from belated.experiments.refactorising import RefactorisingPSVI
from belated.experiments.timing import Timing, exponent

import belated
from belated.experiments import timing
from belated.types import Feedback


def test_refactorising_draws_the_same_policies_as_rank_one_updates() -> None:
    world = belated.RandomLinearMDP(states=5, actions=3, dimension=6, horizon=4)
    agents = [kind(scale=2.0, noise=0.5).start(world.problem) for kind in (belated.DelayedPSVI, RefactorisingPSVI)]
    streams = [np.random.default_rng(0), np.random.default_rng(0)]
    dynamics = np.random.default_rng(1)
    for episode in range(30):
        policies = [agent.plan(rng) for agent, rng in zip(agents, streams, strict=True)]
        np.testing.assert_array_equal(policies[0].actions, policies[1].actions)
        late = [Feedback(episode, world.rollout(policies[0], dynamics))]
        for agent in agents:
            agent.learn(late)


@pytest.mark.slow
def test_every_variant_is_timed_at_every_dimension() -> None:
    ticks: list[None] = []
    timings = timing.measure(dimensions=(2, 3), repeats=2, least_seconds=1e-4, watch=lambda: ticks.append(None))
    assert [(each.variant, each.dimension) for each in timings] == [
        (variant, dimension) for dimension in (2, 3) for variant in timing.VARIANTS
    ]
    assert all(0 < each.low <= each.seconds <= each.high for each in timings)
    assert len(ticks) == len(timings)


def test_the_exponent_of_a_power_law_is_its_power() -> None:
    timings = [Timing("x", d, 3e-9 * d**2.5, 0.0, 0.0) for d in (10, 100, 316, 1000)]
    timings[0] = timings[0]._replace(seconds=1.0)  # below the fitted range
    assert exponent(timings, "x") == pytest.approx(2.5)
