"""Delayed Posterior Sampling Value Iteration: exact Gaussian draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated.algorithms.agent import Settings, learns, plans, plans_from
from belated.algorithms.regression import (
    Regression,
    Table,
    Work,
    learn_trajectory,
    make_regression,
    make_table,
    make_work,
)
from belated.compiled import kernel
from belated.planning import TIES, greedy, linear_values, raise_to, target_moment
from belated.posterior.gaussian import draw, solve_transposed
from belated.types import Floats, Ints, Problem
from belated.validate import choice, flag, integer, real


@dataclass(frozen=True, kw_only=True)
class DelayedPSVI(Settings):
    """Delayed-PSVI (Kuang et al., 2023, Algorithm 1).

    At each step, backwards, it regresses r + V(s') on the features of what has arrived, draws M weight vectors
    from the posterior N(ŵ, ν²Ω⁻¹), acts greedily on the largest of the M action values, capped at the
    steps that remain.

    Scaling σ and ν together changes little: only νσ and λσ² matter. The theorem's ν is far larger than what
    works best in practice.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedPSVI(scale=2.0).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "psvi"

    draws: int = 2
    """M, the number of posterior draws of which the largest counts."""
    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    noise: float = 1.0
    """σ, the standard deviation of the regression targets."""
    ridge: float = 1.0
    """λ, the prior precision of the weights."""
    cap: bool = True
    """Whether action values are capped at the steps that remain, as rewards within [0, 1] allow."""
    ties: str = "random"
    """How equal action values are decided: at "random", or the "first" action, as `numpy.argmax` does."""

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        choice("ties", self.ties, TIES)
        flag("cap", self.cap)
        integer("draws", self.draws, at_least=1)
        real("scale", self.scale, at_least=0)
        real("noise", self.noise, above=0)
        real("ridge", self.ridge, above=0)

    def record(self, problem: Problem) -> PSVIRecord:
        """Return the record of an agent that has seen nothing yet."""
        return PSVIRecord(
            make_table(problem),
            make_regression(problem, float(self.ridge)),
            make_work(problem),
            int(self.draws),
            float(self.scale),
            float(self.noise),
            bool(self.cap),
            self.ties == "first",
        )


class PSVIRecord(NamedTuple):
    """Arrays of one Delayed-PSVI agent."""

    table: Table
    learned: Regression
    work: Work
    draws: int
    scale: float
    noise: float
    cap: bool
    first: bool


@kernel
def plan_states(agent: PSVIRecord, rng: np.random.Generator, first: int, last: int, policy: Ints) -> None:
    """Lines 4-16 of Algorithm 1 for the states from `first` to `last - 1`."""
    learned, work, horizon = agent.learned, agent.work, agent.table.horizon
    pair, pairs = first * agent.table.actions, (last - first) * agent.table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        # Φy/σ² with y = r + V(s')                                            (lines 5-6)
        target_moment(learned.reward_moment[h], learned.next_moment[h], work.values[h + 1], work.moment)
        # half of ŵ = Ω⁻¹Φy/σ²: U⁻ᵀ now, U⁻¹ together with the noise          (line 7)
        solve_transposed(learned.factor[h], work.moment)
        for m in range(agent.draws):
            draw(learned.factor[h], work.moment, agent.scale, rng, work.weights)  # w ~ N(ŵ, ν²Ω⁻¹)  (line 10)
            if m == 0:
                linear_values(agent.table.columns, work.weights, pair, q)  # Qᵐ = φᵀwᵐ           (line 11)
            else:
                linear_values(agent.table.columns, work.weights, pair, other)
                raise_to(q, other)  # Q = max_m Qᵐ                                               (line 13)
        cap = float(horizon - h) if agent.cap else np.inf
        greedy(q, cap, agent.first, rng, work.values[h, first:last], policy[h, first:last])  # (lines 14-15)


@plans(PSVIRecord)
@kernel
def plan(agent: PSVIRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Plan for all states."""
    plan_states(agent, rng, 0, agent.table.states, policy)


@plans_from(PSVIRecord)
@kernel
def plan_from(agent: PSVIRecord, rng: np.random.Generator, state: int, policy: Ints) -> None:
    """Plan for all states, but with a single step for the first one only."""
    if agent.table.horizon == 1:
        plan_states(agent, rng, state, state + 1, policy)
    else:
        plan_states(agent, rng, 0, agent.table.states, policy)


@learns(PSVIRecord)
@kernel
def learn(agent: PSVIRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the posterior of every step with one late trajectory."""
    learn_trajectory(agent.table, agent.learned, agent.work, agent.noise, states, actions, rewards)
