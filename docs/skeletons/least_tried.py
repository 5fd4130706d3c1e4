"""Plays the action that was tried least: no rewards needed. Copy this file to begin a compiled agent."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import kernel
from belated._util.validate import real
from belated.agents import CompiledSettings
from belated.agents._base import Arrival
from belated.types import Floats, Ints, Problem


@dataclass(frozen=True, kw_only=True)
class LeastTried(CompiledSettings):
    """The settings: frozen, validated, and able to make a record."""

    kind: ClassVar[str] = "least-tried"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        real("epsilon", self.epsilon, at_least=0, at_most=1)

    def record(self, problem: Problem) -> "LeastTriedRecord":
        count = np.zeros((problem.horizon, problem.states, problem.actions))
        return LeastTriedRecord(Visits(count), float(self.epsilon), problem.actions)


class Visits(NamedTuple):
    """What feedback changes. Everything in here is saved and restored."""

    count: Floats


class LeastTriedRecord(NamedTuple):
    """All arrays and numbers of one agent, and its compiled methods; the field `learned` is a must."""

    learned: Visits
    epsilon: float
    actions: int

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Fill policy[h, s]; all randomness comes from rng."""
        for h in range(policy.shape[0]):
            for s in range(policy.shape[1]):
                policy[h, s] = first_smallest(self.learned.count[h, s])
                if rng.random() < self.epsilon:
                    policy[h, s] = int(rng.random() * self.actions)

    def learn(self, arrival: Arrival) -> None:
        """Learn one trajectory; it has been checked already."""
        for h in range(arrival.actions.size):
            self.learned.count[h, arrival.states[h], arrival.actions[h]] += 1.0

    def settle(self) -> None:
        """Do what `learn` has put off until all of a batch is there: nothing here."""


@kernel
def first_smallest(values: Floats) -> int:
    """Functions that the methods call are kernels."""
    best = 0
    for i in range(1, values.size):
        if values[i] < values[best]:
            best = i
    return best
