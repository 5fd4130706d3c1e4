"""Uniformly random actions: the floor that every learner must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, overload

import numpy as np

from belated._util.validate import check_generator
from belated.agents._auto.sparse import check_batch, check_problem, check_trajectory
from belated.agents._base import Arrival, CompiledSettings, Learner, Nothing
from belated.sampled import SampledProblem, SparseVector
from belated.types import Feedback, Ints, Problem


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
    needs_table: ClassVar[bool] = False

    def record(self, problem: Problem) -> RandomRecord:
        """Return the record of an agent that has seen nothing yet."""
        return RandomRecord(learned=Nothing(np.zeros(0)), actions=problem.actions)

    @overload
    def start(self, problem: Problem) -> Learner: ...
    @overload
    def start(self, problem: SampledProblem) -> RandomSampler: ...
    def start(self, problem: Problem | SampledProblem) -> Learner | RandomSampler:
        """Return a new agent for a finite or a sampled problem."""
        return RandomSampler(self, problem) if isinstance(problem, SampledProblem) else Learner(self, problem)


class RandomRecord(NamedTuple):
    """Arrays of one random agent."""

    learned: Nothing
    actions: int

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Draw every entry of the table."""
        for h in range(policy.shape[0]):
            for s in range(policy.shape[1]):
                policy[h, s] = int(rng.random() * self.actions)

    def learn(self, arrival: Arrival) -> None:
        """Learn nothing."""

    def settle(self) -> None:
        """Nothing is put off."""


class RandomSampler:
    """The same on an environment that can only be sampled."""

    def __init__(self, settings: RandomPolicy, problem: SampledProblem) -> None:
        check_problem(problem)
        self.settings, self.problem = settings, problem

    def plan(self, rng: np.random.Generator) -> RandomActions:
        """Return the policy of the next episode."""
        check_generator("rng", rng)
        return RandomActions(np.random.default_rng(int(rng.integers(2**63))), self.problem.actions)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn nothing of a batch that is as it should be."""
        for feedback in check_batch(batch):
            check_trajectory(feedback, self.problem)


class RandomActions(NamedTuple):
    """Any action alike, in every step."""

    rng: np.random.Generator
    actions: int

    def act(self, step: int, state: SparseVector) -> int:
        """Return an action."""
        return int(self.rng.integers(self.actions))
