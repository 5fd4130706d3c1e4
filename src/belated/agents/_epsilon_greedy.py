"""Least-squares value iteration with ε-greedy exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from belated._util.validate import real
from belated.agents import _invariants as invariants
from belated.agents._greedy import Greedy, GreedyRecord
from belated.agents._regression import Regression, ValueIterationSettings
from belated.agents._row_regression import row_mean
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(ValueIterationSettings):
    """Acts greedily on the least-squares estimate, and at random with probability ε at every step.

    Examples
    --------
    >>> import numpy as np
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

    def record(self, problem: TableProblem) -> GreedyRecord:
        return Greedy(ridge=self.ridge, shared=self.shared).record(problem)._replace(epsilon=float(self.epsilon))

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(
            draw=mean_draw, draw_rows=row_mean, ridge=self.ridge, shared=self.shared, epsilon=self.epsilon
        )

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
