"""Draws each weight by itself, as if Ω were diagonal. Copy this file to begin a compiled agent.

It plays in tables, compiled, and in simulators.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated.compiled import (
    Arrival,
    Regression,
    RegressionSettings,
    SparseRegression,
    Table,
    WeightRule,
    Work,
    learn_visits,
    linear_values,
    make_regression,
    make_table,
    make_work,
    mean_weights,
    regression_of,
    standard_normal,
    standard_normals,
    sweep,
)
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class DiagonalSampling(RegressionSettings):
    """The settings: frozen, validated, and able to begin an agent in a table or in a simulator."""

    kind: ClassVar[str] = "diagonal-sampling"
    scale: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not (self.scale >= 0 and self.ridge > 0):
            raise ValueError(f"scale must be >= 0 and ridge > 0, got {self.scale} and {self.ridge}")

    @property
    def plays(self) -> Plays:
        return "both"  # "tables" if you leave weight_rule out

    def record(self, problem: TableProblem) -> "DiagonalRecord":
        learned = make_regression(problem, float(self.ridge))
        return DiagonalRecord(make_table(problem), learned, make_work(problem), float(self.scale), True, False)

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(draw=self.draw, ridge=float(self.ridge))

    def draw(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """In a simulator: w = ŵ + ν·z/√Ω_ii, shape (1, d)."""
        noise = standard_normals(rng, moment.shape) / np.sqrt(regression.diagonal)
        return (regression.mean(moment) + self.scale * noise)[np.newaxis]


class DiagonalRecord(NamedTuple):
    """All arrays and numbers of one agent on a table, and its compiled methods; `learned` is what is saved."""

    table: Table
    learned: Regression
    work: Work
    scale: float
    cap: bool
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        sweep(self, rng, start, policy)  # backward induction; asks action_values for every step

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """In a table: the same draw, where Ω = UᵀU; `work.moment` holds Φy of this step."""
        factor, weights = self.learned.factor[regression_of(h, self.learned.reward_moment)], self.work.moment
        mean_weights(factor, weights)
        for i in range(weights.size):
            precision = 0.0
            for k in range(i + 1):
                precision += factor[k, i] * factor[k, i]
            weights[i] += self.scale * standard_normal(rng) / np.sqrt(precision)
        linear_values(self.table.columns, weights, pair, q)

    def learn(self, arrival: Arrival) -> None:
        learn_visits(self.table, self.learned, self.work, 1.0, arrival)

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""
