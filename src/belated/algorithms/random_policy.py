"""Uniformly random actions: the floor that every learner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated.algorithms.agent import CompiledSettings, Nothing, learns, plans
from belated.compiled import layer
from belated.types import Floats, Ints, Problem


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(CompiledSettings):
    """Takes every action with the same probability and learns nothing.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = RandomPolicy().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "random"

    def record(self, problem: Problem) -> RandomRecord:
        """Return the record of an agent that has seen nothing yet."""
        return RandomRecord(learned=Nothing(np.zeros(0)), actions=problem.actions)


class RandomRecord(NamedTuple):
    """Arrays of one random agent."""

    learned: Nothing
    actions: int


@plans(RandomRecord)
@layer
def plan(agent: RandomRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Draw every entry of the table."""
    for h in range(policy.shape[0]):
        for s in range(policy.shape[1]):
            policy[h, s] = int(rng.random() * agent.actions)


@learns(RandomRecord)
@layer
def learn(agent: RandomRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Learn nothing."""
