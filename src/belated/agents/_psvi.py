"""Delayed Posterior Sampling Value Iteration: exact Gaussian draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.block_update import BLOCK_FROM, add_few_visits, add_visits
from belated._kernels.gaussian import draw_many, solve_transposed
from belated._kernels.jit import kernel, layer
from belated._kernels.normals import standard_normals
from belated._kernels.planning import greedy, target_moment
from belated._util.validate import check_room, choice, flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import learns, plans_states, settles
from belated.agents._information import information_of_factor, informs
from belated.agents._regression import (
    Regression,
    SampledRegression,
    Table,
    Work,
    add_to_moments,
    largest_values,
    make_regression,
    make_table,
    make_work,
    regression_of,
)
from belated.agents._sparse import Regression as SparseRegression
from belated.agents._sparse import WeightRule
from belated.theory._constants import psvi_concentration, rounds
from belated.theory._settings import accepted, warn_of_width
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem

STORAGES = ("float64", "float32")
#: Trajectories that are learned together at most.
QUEUE = 256


@dataclass(frozen=True, kw_only=True)
class DelayedPSVI(SampledRegression):
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

    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    cap: bool = True
    """Whether action values are capped at the steps that remain, as rewards within [0, 1] allow."""
    storage: str = "float64"
    """How the factors, the only arrays of size d², are kept: "float64", or "float32" in half the memory."""
    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""

    @property
    def plays(self) -> Plays:
        return "both"

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        super().__post_init__()
        real("scale", self.scale, at_least=0)
        flag("cap", self.cap)
        choice("storage", self.storage, STORAGES)
        flag("shared", self.shared)

    @classmethod
    def from_theory(cls, problem: TableProblem, episodes: int, delta: float) -> Self:
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

    def record(self, problem: TableProblem) -> PSVIRecord:
        """Return the record of an agent that has seen nothing yet."""
        regression = make_regression(problem, float(self.ridge), self.shared)
        check_room("the draws × d weights", self.draws, problem.dimension)
        check_room(f"the queue of horizon × {QUEUE} pairs", problem.horizon, QUEUE)
        drawn = np.zeros((self.draws, problem.dimension))
        return PSVIRecord(
            table=make_table(problem),
            learned=regression._replace(factor=regression.factor.astype(self.storage)),
            work=make_work(problem)._replace(weights=drawn[-1]),
            queue=Queue(pairs=np.zeros((problem.horizon, QUEUE), np.int64), size=np.zeros(1, np.int64)),
            drawn=drawn,
            draws=int(self.draws),
            scale=float(self.scale),
            noise=float(self.noise),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(
            draw=self._draw_weights,
            draws=self.draws,
            noise=self.noise,
            ridge=self.ridge,
            shared=self.shared,
            capped=self.cap,
            first=self.ties == "first",
        )

    def _draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """wᵐ ~ N(ŵ, ν²Ω⁻¹) (line 10)."""
        noise = standard_normals(rng, (self.draws, regression.dimension))
        return regression.solve(regression.solve_transposed(moment) + self.scale * noise)

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        """Require a positive diagonal of every factor."""
        invariants.factor("factor", learned.factor)


class Queue(NamedTuple):
    """Visits that are in the moments, but not settled: not yet in the factors."""

    pairs: Ints
    """Numbers of the pairs visited, shape (H, QUEUE)."""
    size: Ints
    """How many they are, shape (1,)."""


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

    def for_batches(self, most: int) -> PSVIRecord:
        """Return the record for batches of at most `most` trajectories: a small one needs no blocks, nor their code."""
        return FewRecord(*self) if most < BLOCK_FROM else self


class FewRecord(PSVIRecord):
    """The same arrays where fewer trajectories than make a block arrive together."""

    __slots__ = ()


informs(PSVIRecord)(information_of_factor)


@settles(PSVIRecord)
@kernel
def settle(agent: PSVIRecord) -> None:
    """Bring the visits of the queue into the factors: Ω_h ← Ω_h + Σφφᵀ/σ²."""
    size = agent.queue.size[0]
    if size > 0:
        for h in range(agent.table.horizon):
            visits = agent.queue.pairs[h, :size]
            factor = agent.learned.factor[regression_of(h, agent.learned.reward_moment)]
            add_visits(factor, agent.table.rows, visits, agent.noise, agent.work.vector)
        agent.queue.size[0] = 0


@settles(FewRecord)
@kernel
def settle_few(agent: FewRecord) -> None:
    """Do the same without blocks."""
    size = agent.queue.size[0]
    if size > 0:
        for h in range(agent.table.horizon):
            visits = agent.queue.pairs[h, :size]
            factor = agent.learned.factor[regression_of(h, agent.learned.reward_moment)]
            add_few_visits(factor, agent.table.rows, visits, agent.noise, agent.work.vector)
        agent.queue.size[0] = 0


@plans_states(FewRecord)
@plans_states(PSVIRecord)
@layer
def plan_states(agent: PSVIRecord, rng: np.random.Generator, first: int, last: int, policy: Ints) -> None:
    """Lines 4-16 of Algorithm 1 for the states from `first` to `last - 1`."""
    learned, work, horizon = agent.learned, agent.work, agent.table.horizon
    pair, pairs = first * agent.table.actions, (last - first) * agent.table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        g = regression_of(h, learned.reward_moment)
        # Φy/σ² with y = r + V(s')                                            (lines 5-6)
        target_moment(learned.reward_moment[g], learned.next_moment[g], work.values[h + 1], work.moment)
        # half of ŵ = Ω⁻¹Φy/σ²: U⁻ᵀ now, U⁻¹ together with the noise          (line 7)
        solve_transposed(learned.factor[g], work.moment)
        draw_many(learned.factor[g], work.moment, agent.scale, rng, agent.drawn)  # wᵐ ~ N(ŵ, ν²Ω⁻¹)  (line 10)
        largest_values(agent.table.columns, agent.drawn, pair, q, other)  # Q = max_m φᵀwᵐ     (lines 11-13)
        cap = float(horizon - h) if agent.cap else np.inf
        greedy(q, cap, agent.first, rng, work.values[h, first:last], policy[h, first:last])  # (lines 14-15)


@learns(FewRecord)
@layer
def learn_few(agent: PSVIRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the posterior of every step with one late trajectory: the moments now, the factors when it is settled.

    So the trajectories of a batch are brought into the factors together.
    """
    table, learned, queue = agent.table, agent.learned, agent.queue
    weight = 1.0 / (agent.noise * agent.noise)
    for h in range(table.horizon):
        g, pair = regression_of(h, learned.reward_moment), states[h] * table.actions + actions[h]
        queue.pairs[h, queue.size[0]] = pair
        add_to_moments(
            learned.reward_moment[g], learned.next_moment[g], table.rows[pair], rewards[h], states[h + 1], weight
        )
    queue.size[0] += 1


@learns(PSVIRecord)
@layer
def learn(agent: PSVIRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Do the same, and settle a queue that is full."""
    learn_few(agent, episode, states, actions, rewards)
    if agent.queue.size[0] == agent.queue.pairs.shape[1]:
        settle(agent)
