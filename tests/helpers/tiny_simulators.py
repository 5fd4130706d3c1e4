"""A tiny world as a simulator, whose features are explicit, so that everything can be computed densely beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated import FiniteMDP
from belated._kernels.streams import stream
from belated.types import Feedback, Floats, SimulatorProblem, SparseRows, SparseVector, TablePolicy, Trajectory

STATES, ACTIONS, HORIZON = 4, 3, 3


def _world() -> FiniteMDP:
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
    return FiniteMDP(transitions, rng.uniform(0.0, 0.2, size=(STATES, ACTIONS)), horizon=HORIZON)


WORLD = _world()


class Stacked:
    """ψ(s), with zeros."""

    size = 3
    table = np.array([[1.0, 0.0, 0.5], [0.0, 0.8, 0.0], [0.6, 0.6, 0.0], [0.0, 0.3, 1.0]])

    def encode(self, observation: Any) -> SparseVector:
        row = self.table[observation]
        kept = np.flatnonzero(row)
        return SparseVector(kept, row[kept])


class Pairs:
    """φ(s, a) of all actions, with zeros."""

    size, actions = 4, ACTIONS
    table = np.random.default_rng(1).uniform(-0.5, 0.8, size=(STATES, ACTIONS, 4)) * (
        np.random.default_rng(2).random((STATES, ACTIONS, 4)) < 0.7
    )

    def encode(self, observation: Any) -> SparseRows:
        kept = [np.flatnonzero(row) for row in self.table[observation]]
        values = [row[each] for row, each in zip(self.table[observation], kept, strict=True)]
        return SparseRows(np.cumsum([0, *map(len, kept)]), np.concatenate(kept), np.concatenate(values))


MAPS: dict[str, Stacked | Pairs] = {"stacked": Stacked(), "joint": Pairs()}


def dense_features(features: Stacked | Pairs) -> Floats:
    """Return φ(s, a), shape (S, A, d): ψ(s) in the block of action a, or φ itself."""
    if isinstance(features, Pairs):
        return features.table
    phi = np.zeros((STATES, ACTIONS, ACTIONS * features.size))
    for action in range(ACTIONS):
        phi[:, action, action * features.size : (action + 1) * features.size] = features.table
    return phi


def problem_of(features: Stacked | Pairs) -> SimulatorProblem:
    return SimulatorProblem(features, HORIZON, actions=ACTIONS)


def encoded(features: Stacked | Pairs, played: Trajectory) -> Trajectory:
    return Trajectory([features.encode(row) for row in played.rows], played.actions, played.rewards)


def random_episodes(count: int, seed: int = 0) -> list[Trajectory]:
    """Return trajectories of random policies, on rows."""
    rng, dynamics = stream(seed, "agent"), stream(seed, "environment")
    tables = [rng.integers(ACTIONS, size=(HORIZON, STATES)) for _ in range(count)]
    return [WORLD.rollout(TablePolicy(table), dynamics) for table in tables]


def feedback_of(features: Stacked | Pairs, episodes: list[Trajectory]) -> list[Feedback]:
    return [Feedback(k, encoded(features, played)) for k, played in enumerate(episodes)]
