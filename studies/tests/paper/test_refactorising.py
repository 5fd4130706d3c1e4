"""The variant that is only there to be timed draws what the other draws."""

from __future__ import annotations

import numpy as np

import belated
from belated.types import Feedback
from belated_studies.paper.refactorising import RefactorisingPSVI


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
