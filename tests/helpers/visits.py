"""Trajectories of random policies, as late feedback."""

from __future__ import annotations

import numpy as np

from belated.environments import FiniteMDP
from belated.types import Feedback, TablePolicy


def visits(world: FiniteMDP, count: int, seed: int = 0) -> list[Feedback]:
    """Return trajectories of random policies."""
    choices, dynamics = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    tables = choices.integers(world.actions, size=(count, world.horizon, world.states))
    return [Feedback(k, world.rollout(TablePolicy(table), dynamics)) for k, table in enumerate(tables)]
