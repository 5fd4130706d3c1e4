"""Least-squares value iteration that takes a random action now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._util.validate import real
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival
from belated.agents._greedy import Greedy, GreedyRecord
from belated.agents._regression import Regression, ValueIterationSettings
from belated.agents._row_regression import row_mean
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import Floats, Ints, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(ValueIterationSettings):
    """Acts greedily on the least-squares estimate, but at random with probability ε at every step.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = EpsilonGreedy(epsilon=0.1).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "epsilon-greedy"

    epsilon: float = 0.1
    """ε, the probability of a random action."""

    def __post_init__(self) -> None:
        real("epsilon", self.epsilon, at_least=0, at_most=1)
        super().__post_init__()

    def record(self, problem: TableProblem) -> EpsilonGreedyRecord:
        """Return the record of an agent that has seen nothing yet."""
        return EpsilonGreedyRecord(Greedy(ridge=self.ridge, shared=self.shared).record(problem), float(self.epsilon))

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(
            draw=mean_draw, draw_rows=row_mean, ridge=self.ridge, shared=self.shared, epsilon=self.epsilon
        )

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        """Require a positive diagonal of every factor."""
        invariants.factor("factor", learned.factor)


class EpsilonGreedyRecord(NamedTuple):
    """The record of a greedy agent, and ε."""

    greedy: GreedyRecord
    epsilon: float

    @property
    def learned(self) -> Regression:
        """What the greedy agent has learned."""
        return self.greedy.learned

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Plan greedily, then replace each entry of the table by a random action with probability ε."""
        table = self.greedy.table
        self.greedy.plan(rng, start, policy)
        for h in range(table.horizon):
            for s in range(table.states):
                if rng.random() < self.epsilon:
                    policy[h, s] = int(rng.random() * table.actions)

    def learn(self, arrival: Arrival) -> None:
        """Update the regression of each step."""
        self.greedy.learn(arrival)

    def settle(self) -> None:
        """Nothing is put off."""

    def information(self, log_determinants: Floats) -> None:
        """From the factors."""
        self.greedy.information(log_determinants)
