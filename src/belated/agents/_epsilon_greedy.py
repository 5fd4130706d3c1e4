"""Least-squares value iteration that takes a random action now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import layer
from belated._util.validate import flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import CompiledSettings, learns, plans
from belated.agents._greedy import Greedy, plan_greedily
from belated.agents._information import information_of_factor, informs
from belated.agents._regression import Regression, Table, Work, learn_trajectory
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(CompiledSettings):
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
    ridge: float = 1.0
    """λ, the regularisation."""
    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""

    @property
    def plays(self) -> Plays:
        return "both"

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        real("epsilon", self.epsilon, at_least=0, at_most=1)
        real("ridge", self.ridge, above=0)
        flag("shared", self.shared)

    def record(self, problem: TableProblem) -> EpsilonGreedyRecord:
        """Return the record of an agent that has seen nothing yet."""
        greedy = Greedy(ridge=self.ridge, shared=self.shared).record(problem)
        return EpsilonGreedyRecord(**greedy._asdict(), epsilon=float(self.epsilon))

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(draw=mean_draw, ridge=self.ridge, shared=self.shared, epsilon=self.epsilon)

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        """Require a positive diagonal of every factor."""
        invariants.factor("factor", learned.factor)


class EpsilonGreedyRecord(NamedTuple):
    """Arrays of one ε-greedy agent."""

    table: Table
    learned: Regression
    work: Work
    epsilon: float


informs(EpsilonGreedyRecord)(information_of_factor)


@plans(EpsilonGreedyRecord)
@layer
def plan(agent: EpsilonGreedyRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Plan greedily, then replace each entry of the table by a random action with probability ε."""
    plan_greedily(agent.table, agent.learned, agent.work, rng, policy)
    for h in range(agent.table.horizon):
        for s in range(agent.table.states):
            if rng.random() < agent.epsilon:
                policy[h, s] = int(rng.random() * agent.table.actions)


@learns(EpsilonGreedyRecord)
@layer
def learn(agent: EpsilonGreedyRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the regression of every step with one late trajectory."""
    learn_trajectory(agent.table, agent.learned, agent.work, 1.0, states, actions, rewards)
