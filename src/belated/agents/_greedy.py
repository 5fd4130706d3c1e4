"""Least-squares value iteration without exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.planning import linear_values
from belated.agents import _invariants as invariants
from belated.agents._base import ANYWHERE, Arrival
from belated.agents._information import factor_information
from belated.agents._regression import (
    Regression,
    Table,
    ValueIterationSettings,
    Work,
    learn_visits,
    make_regression,
    make_table,
    make_work,
    mean_weights,
    regression_of,
    sweep,
)
from belated.agents._row_regression import row_mean
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import Floats, Ints, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class Greedy(ValueIterationSettings):
    """Acts greedily on the least-squares estimate; explores only by breaking ties at random.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = Greedy().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "greedy"

    def record(self, problem: TableProblem) -> GreedyRecord:
        return GreedyRecord(
            table=make_table(problem),
            learned=make_regression(problem, float(self.ridge), self.shared),
            work=make_work(problem),
        )

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(draw=mean_draw, draw_rows=row_mean, ridge=self.ridge, shared=self.shared)

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)


class GreedyRecord(NamedTuple):
    """Arrays of one greedy agent, or of one that explores with probability ε."""

    table: Table
    learned: Regression
    work: Work
    epsilon: float = 0.0
    cap: bool = True
    first: bool = False

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Act on the estimate; then replace each action of the table by a random one with probability ε."""
        sweep(self, rng, ANYWHERE, policy)
        if self.epsilon > 0.0:
            for h in range(self.table.horizon):
                for s in range(self.table.states):
                    if rng.random() < self.epsilon:
                        policy[h, s] = int(rng.random() * self.table.actions)

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        mean_weights(self.learned.factor[regression_of(h, self.learned.reward_moment)], self.work.moment)
        linear_values(self.table.columns, self.work.moment, pair, q)

    def learn(self, arrival: Arrival) -> None:
        learn_visits(self.table, self.learned, self.work, 1.0, arrival)

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""

    def information(self, log_determinants: Floats) -> None:
        factor_information(self.learned.factor, log_determinants)
