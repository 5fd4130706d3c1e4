"""Delayed Posterior Sampling Value Iteration: exact Gaussian draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from belated.algorithms.agent import Learner, Settings, learns, plans_states
from belated.algorithms.regression import (
    Regression,
    Table,
    Work,
    add_to_moments,
    largest_values,
    make_regression,
    make_table,
    make_work,
)
from belated.compiled import kernel
from belated.planning import TIES, greedy, target_moment
from belated.posterior.block import add_visits
from belated.posterior.gaussian import draw_many, solve_transposed
from belated.theory.constants import psvi_concentration, rounds
from belated.theory.settings import accepted, warn_of_width
from belated.types import Feedback, Floats, Ints, Problem
from belated.validate import choice, flag, integer, real

STORAGES = ("float64", "float32")
#: Trajectories that wait at most before they are learned together.
QUEUE = 256


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
    storage: str = "float64"
    """How the factors, the only arrays of size d², are kept: "float64", or "float32" in half the memory."""

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        choice("storage", self.storage, STORAGES)
        choice("ties", self.ties, TIES)
        flag("cap", self.cap)
        integer("draws", self.draws, at_least=1)
        real("scale", self.scale, at_least=0)
        real("noise", self.noise, above=0)
        real("ridge", self.ridge, above=0)

    @classmethod
    def from_theory(cls, problem: Problem, episodes: int, delta: float) -> Self:
        """Return the settings of Theorem 1: λ = 1, σ = 1, M of `theory.rounds`, ν of `theory.psvi_concentration`.

        >>> import warnings
        >>> from belated import RiverSwim
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     DelayedPSVI.from_theory(RiverSwim().problem, episodes=1000, delta=0.05).draws
        908
        """
        dimension, horizon = accepted(problem)
        draws = rounds(delta, horizon, episodes)
        scale = psvi_concentration(dimension, horizon, episodes, delta).value
        warn_of_width(f"M = {draws} draws and ν = {scale:.3g}", scale, horizon)
        return cls(draws=draws, scale=scale, noise=1.0, ridge=1.0)

    def record(self, problem: Problem) -> PSVIRecord:
        """Return the record of an agent that has seen nothing yet."""
        regression = make_regression(problem, float(self.ridge))
        drawn = np.zeros((self.draws, problem.dimension))
        return PSVIRecord(
            make_table(problem),
            regression._replace(factor=regression.factor.astype(self.storage)),
            make_work(problem)._replace(weights=drawn[-1]),
            make_queue(problem.horizon, 1),
            drawn,
            int(self.draws),
            float(self.scale),
            float(self.noise),
            bool(self.cap),
            self.ties == "first",
        )

    def start(self, problem: Problem) -> PSVILearner:
        """Return a new agent for `problem` that has seen nothing yet."""
        return PSVILearner(self, problem)


class Queue(NamedTuple):
    """Visits that are in the moments, but not yet in the factors."""

    pairs: Ints
    """Numbers of the pairs visited, shape (H, capacity)."""
    size: Ints


def make_queue(horizon: int, capacity: int) -> Queue:
    """Return an empty queue; what is learned with a capacity of 1 does not wait."""
    return Queue(np.zeros((horizon, capacity), np.int64), np.zeros(1, np.int64))


class PSVIRecord(NamedTuple):
    """Arrays of one Delayed-PSVI agent."""

    table: Table
    learned: Regression
    work: Work
    queue: Queue
    drawn: Floats
    """The M draws of a step, shape (M, d); the last one is also `work.weights`."""
    draws: int
    scale: float
    noise: float
    cap: bool
    first: bool


@kernel
def settle(agent: PSVIRecord) -> None:
    """Bring the visits that wait into the factors: Ω_h ← Ω_h + Σφφᵀ/σ²."""
    size = agent.queue.size[0]
    if size > 0:
        for h in range(agent.table.horizon):
            visits = agent.queue.pairs[h, :size]
            add_visits(agent.learned.factor[h], agent.table.rows, visits, agent.noise, agent.work.vector)
        agent.queue.size[0] = 0


@plans_states(PSVIRecord)
@kernel
def plan_states(agent: PSVIRecord, rng: np.random.Generator, first: int, last: int, policy: Ints) -> None:
    """Lines 4-16 of Algorithm 1 for the states from `first` to `last - 1`."""
    settle(agent)
    learned, work, horizon = agent.learned, agent.work, agent.table.horizon
    pair, pairs = first * agent.table.actions, (last - first) * agent.table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        # Φy/σ² with y = r + V(s')                                            (lines 5-6)
        target_moment(learned.reward_moment[h], learned.next_moment[h], work.values[h + 1], work.moment)
        # half of ŵ = Ω⁻¹Φy/σ²: U⁻ᵀ now, U⁻¹ together with the noise          (line 7)
        solve_transposed(learned.factor[h], work.moment)
        draw_many(learned.factor[h], work.moment, agent.scale, rng, agent.drawn)  # wᵐ ~ N(ŵ, ν²Ω⁻¹)  (line 10)
        largest_values(agent.table.columns, agent.drawn, pair, q, other)  # Q = max_m φᵀwᵐ     (lines 11-13)
        cap = float(horizon - h) if agent.cap else np.inf
        greedy(q, cap, agent.first, rng, work.values[h, first:last], policy[h, first:last])  # (lines 14-15)


@learns(PSVIRecord)
@kernel
def learn(agent: PSVIRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the posterior of every step with one late trajectory: the moments now, the factors when they are needed.

    What arrives at once can then be learned together.
    """
    table, learned, queue = agent.table, agent.learned, agent.queue
    weight = 1.0 / (agent.noise * agent.noise)
    for h in range(table.horizon):
        pair = states[h] * table.actions + actions[h]
        queue.pairs[h, queue.size[0]] = pair
        add_to_moments(
            learned.reward_moment[h], learned.next_moment[h], table.rows[pair], rewards[h], states[h + 1], weight
        )
    queue.size[0] += 1
    if queue.size[0] == queue.pairs.shape[1]:
        settle(agent)


class PSVILearner(Learner):
    """Learns what arrives at once together; nothing waits outside of `learn`."""

    def __init__(self, settings: Settings, problem: Problem) -> None:
        super().__init__(settings, problem)
        self.record = self.record._replace(queue=make_queue(problem.horizon, QUEUE))

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Take in a batch of late trajectories; if one of them is bad, none is learned."""
        super().learn(batch)
        settle(self.record)

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what the agent has learned; arrays that do not fit are refused and change nothing."""
        super().restore(memory)
        self.record = self.record._replace(queue=make_queue(self.problem.horizon, QUEUE))
