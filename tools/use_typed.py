"""What a user with a type checker writes: `make dist-test` checks it strictly against the installed package."""

from __future__ import annotations

import numpy as np

import belated
from belated import DelayedPSVI, Feedback, Poisson, RiverSwim, TablePolicy
from belated.delays import DelayDistribution

distribution: DelayDistribution = Poisson(5)
world = RiverSwim()
agent = DelayedPSVI(scale=1.0).start(world.problem)
policy: TablePolicy = agent.plan(np.random.default_rng(0))
batch: list[Feedback] = []
agent.learn(batch)
results = belated.run(world, {"psvi": DelayedPSVI()}, distribution, episodes=20, seeds=2, progress=False)
regret: float = float(results.regret(agent="psvi")[:, -1].mean())
version: str = belated.__version__
assert policy.actions.shape == (world.horizon, world.states)
assert regret >= 0
