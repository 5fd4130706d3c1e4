"""Least-squares value iteration without exploration: what happens when nobody looks around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.gaussian import solve, solve_transposed
from belated._kernels.jit import layer
from belated._kernels.planning import greedy, linear_values, target_moment
from belated._util.validate import flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import CompiledSettings, learns, plans
from belated.agents._information import information_of_factor, informs
from belated.agents._regression import (
    Regression,
    Table,
    Work,
    learn_trajectory,
    make_regression,
    make_table,
    make_work,
    regression_of,
)
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class Greedy(CompiledSettings):
    """Acts greedily on the least-squares estimate; explores only by breaking ties at random.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = Greedy().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "greedy"

    ridge: float = 1.0
    """λ, the regularisation."""
    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""

    @property
    def plays(self) -> Plays:
        return "both"

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        real("ridge", self.ridge, above=0)
        flag("shared", self.shared)

    def record(self, problem: TableProblem) -> GreedyRecord:
        """Return the record of an agent that has seen nothing yet."""
        return GreedyRecord(
            table=make_table(problem),
            learned=make_regression(problem, float(self.ridge), self.shared),
            work=make_work(problem),
        )

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(draw=mean_draw, ridge=self.ridge, shared=self.shared)

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        """Require a positive diagonal of every factor."""
        invariants.factor("factor", learned.factor)


class GreedyRecord(NamedTuple):
    """Arrays of one greedy agent."""

    table: Table
    learned: Regression
    work: Work


informs(GreedyRecord)(information_of_factor)


@layer
def plan_greedily(table: Table, learned: Regression, work: Work, rng: np.random.Generator, policy: Ints) -> None:
    """Backward induction on the least-squares estimate."""
    work.values[table.horizon] = 0.0
    for h in range(table.horizon - 1, -1, -1):
        g = regression_of(h, learned.reward_moment)
        target_moment(learned.reward_moment[g], learned.next_moment[g], work.values[h + 1], work.moment)
        solve_transposed(learned.factor[g], work.moment)
        solve(learned.factor[g], work.moment)  # ŵ = Ω⁻¹Φy
        linear_values(table.columns, work.moment, np.int64(0), work.q)
        greedy(work.q, float(table.horizon - h), np.bool_(False), rng, work.values[h], policy[h])


@plans(GreedyRecord)
@layer
def plan(agent: GreedyRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Act on the estimate alone."""
    plan_greedily(agent.table, agent.learned, agent.work, rng, policy)


@learns(GreedyRecord)
@layer
def learn(agent: GreedyRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the regression of every step with one late trajectory."""
    learn_trajectory(agent.table, agent.learned, agent.work, 1.0, states, actions, rewards)
