"""The part shared by linear algorithms: settings, the feature table, and the regressions with their updates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from belated._kernels.gaussian import rank_one_update, solve, solve_transposed
from belated._kernels.jit import inlined, record_method
from belated._kernels.planning import TIES, greedy, larger_values, linear_values, raise_to, target_moment
from belated._kernels.sparse_ridge import Singles
from belated._util.validate import check_room, choice, flag, integer, real
from belated.agents._base import REWARDS, STATES, Arrival, CompiledSettings, Record
from belated.agents._row_regression import RowRegression, RowStep
from belated.agents._sparse import SparseRegression, WeightRule, check_shared
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class RegressionSettings(CompiledSettings):
    """Base class of the settings of regression algorithms, which learn any part of an episode, in any order."""

    whole_episodes: ClassVar[bool] = False

    ridge: float = 1.0
    """λ, the prior precision of the weights."""

    def __post_init__(self) -> None:
        real("ridge", self.ridge, above=0)


@dataclass(frozen=True, kw_only=True)
class ValueIterationSettings(RegressionSettings):
    """Base class of the settings of least-squares value iteration, in tables and simulators."""

    discounts: ClassVar[bool] = True
    plays: ClassVar[Plays] = "both"

    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("shared", self.shared)


@dataclass(frozen=True, kw_only=True)
class SampledRegression(RegressionSettings):
    """Base class of the settings of algorithms that draw regression weights."""

    draws: int = 2
    """M, the number of weight vectors drawn; the maximum of their action values counts."""
    noise: float = 1.0
    """σ, the standard deviation of the regression targets."""
    ties: str = "random"
    """How ties between action values are broken: at "random", or by the "first" action, like `numpy.argmax`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("draws", self.draws, at_least=1)
        real("noise", self.noise, above=0)
        choice("ties", self.ties, TIES)


@dataclass(frozen=True, kw_only=True)
class SampledValueIteration(SampledRegression, ValueIterationSettings):
    """Base class of the settings of value iteration with drawn weights."""

    cap: bool = True
    """Whether action values are capped at the maximum return of the remaining steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("cap", self.cap)

    def draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """Draw the weights (M, d) of a step in a simulator; the arguments are those of `WeightRule.draw`."""
        raise TypeError(f"{type(self).__name__} must define draw_weights")

    def draw_rows(self, regression: RowRegression, step: RowStep, rng: np.random.Generator) -> tuple[Singles, float]:
        """Draw the weights of a step from the rows of a regression: see `WeightRule.draw_rows`."""
        raise TypeError(f"{type(self).__name__} must define draw_rows")

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        kept_by_rows = type(self).draw_rows is not SampledValueIteration.draw_rows
        return WeightRule(
            draw=self.draw_weights,
            draw_rows=self.draw_rows if kept_by_rows else None,
            draws=self.draws,
            noise=self.noise,
            ridge=self.ridge,
            shared=self.shared,
            capped=self.cap,
            first=self.ties == "first",
        )


class Table(NamedTuple):
    """The features in row and column order, and the sizes."""

    rows: Floats
    """φ(s, a) as row s·A + a, shape (S·A, d)."""
    columns: Floats
    """The transpose, (d, S·A): one pass over a row adds one weight's contribution to every action value."""
    states: int
    actions: int
    horizon: int
    discount: float
    """γ of the problem."""


class Regression(NamedTuple):
    """Sufficient statistics of T regressions, one for each step or one for all steps."""

    factor: Floats
    """U_h with Ω_h = U_hᵀU_h, shape (T, d, d)."""
    reward_moment: Floats
    """Σφr/σ², shape (T, d)."""
    next_moment: Floats
    """Σφ/σ² over visits followed by s', shape (T, S, d)."""


class Work(NamedTuple):
    """Scratch space, allocated once so that kernels do not allocate."""

    values: Floats
    q: Floats
    other: Floats
    moment: Floats
    weights: Floats
    vector: Floats


def cache_aligned(*shape: int) -> Floats:
    """Return zeros aligned to a cache line of 64 bytes, so that vector loads never straddle two lines."""
    size = math.prod(shape)
    room = np.zeros(size + 7)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + size].reshape(shape)


def make_table(problem: TableProblem) -> Table:
    """Return the features of `problem` in the layout of the kernels."""
    rows = np.array(problem.features).reshape(-1, problem.dimension)
    columns = cache_aligned(problem.dimension, len(rows))
    columns[:] = rows.T
    sizes = problem.states, problem.actions, problem.horizon
    return Table(rows, columns, *sizes, discount=problem.discount)


def make_regression(problem: TableProblem, ridge: float, shared: bool = False) -> Regression:
    """Return the statistics before any feedback: Ω = λI and empty moments."""
    check_shared(shared, problem)
    count, d = 1 if shared else problem.horizon, problem.dimension
    check_room("the factors of horizon × d × d", count, d, d)
    check_room("the moments of horizon × states × d", count, problem.states, d)
    return Regression(
        factor=np.tile(np.sqrt(ridge) * np.eye(d), (count, 1, 1)),
        reward_moment=np.zeros((count, d)),
        next_moment=np.zeros((count, problem.states, d)),
    )


def make_work(problem: TableProblem) -> Work:
    """Allocate scratch space for `problem`."""
    d, pairs = problem.dimension, problem.states * problem.actions
    return Work(
        values=np.zeros((problem.horizon + 1, problem.states)),
        q=cache_aligned(pairs),
        other=cache_aligned(pairs),
        moment=np.zeros(d),
        weights=np.zeros(d),
        vector=np.zeros(d),
    )


class RegressionRecord(Record, Protocol):
    """What `sweep` requires of a record: its arrays, and how to compute action values from a regression."""

    @property
    def table(self) -> Table:
        """The features."""

    @property
    def work(self) -> Work:
        """Scratch space; `work.moment` is Φy/σ² of the step being planned."""

    @property
    def cap(self) -> bool:
        """Whether action values are capped at the remaining steps."""

    @property
    def first(self) -> bool:
        """Whether ties are broken by the first action instead of at random."""

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """Draw weights for step h and set q to the values of as many pairs as it has entries, from `pair` on.

        `other`, of the same size, is work space.
        """


@record_method
def action_values(
    record: RegressionRecord, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator
) -> None:
    record.action_values(h, pair, q, other, rng)


@inlined
def context_of(table: Table, start: int) -> int:
    """Return the state for which a bandit plans: `start`, or the only one."""
    if start < 0 and table.states > 1:
        raise InvalidInputError(
            "the context must be given, since there are several: use plan_from(rng, state) instead of plan"
        )
    return max(start, 0)


@inlined
def regression_of(h: int, moments: Floats) -> int:
    """Return the index of the regression of step h, given the `moments` of all: h, or 0 if all steps share one."""
    return min(h, len(moments) - 1)


@inlined
def sweep(record: RegressionRecord, rng: np.random.Generator, start: int, policy: Ints) -> None:
    """Plan by backward induction; called by `plan` of `record`.

    Plans for all states, or if an episode has a single step only for `start`, if it is known.
    """
    learned, work, table = record.learned, record.work, record.table
    horizon = table.horizon
    first, last = (start, start + 1) if horizon == 1 and start >= 0 else (0, table.states)
    pair, pairs = first * table.actions, (last - first) * table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        g = regression_of(h, learned.reward_moment)
        following = work.values[h + 1]
        target_moment(learned.reward_moment[g], learned.next_moment[g], following, table.discount, work.moment)
        action_values(record, h, pair, q, other, rng)
        cap = float(horizon - h) if record.cap else np.inf
        greedy(q, cap, record.first, rng, work.values[h, first:last], policy[h, first:last])


@inlined
def mean_weights(factor: Floats, moment: Floats) -> None:
    """Replace Φy/σ² by ŵ = Ω⁻¹Φy/σ²."""
    solve_transposed(factor, moment)
    solve(factor, moment)


@inlined
def largest_values(columns: Floats, weights: Floats, first: int | np.int64, q: Floats, other: Floats) -> None:
    """Set q_j = max_m φ_jᵀwᵐ over the M rows of `weights`, for as many pairs j as q has entries, from `first` on."""
    paired = 2 if weights.shape[0] > 1 else 0
    if paired:
        larger_values(columns, weights[0], weights[1], first, q, other)
    else:
        q[:] = -np.inf
    for m in range(paired, weights.shape[0]):
        linear_values(columns, weights[m], first, other)
        raise_to(q, other)


@inlined
def add_to_moments(
    reward_moment: Floats, next_moment: Floats, table: Table, arrival: Arrival, step: int, weight: float
) -> int:
    """Add a step of an arrival to the moments of its regression, Σφr/σ² and C[s']; return the index of its pair.

    `weight` is 1/σ². Nothing follows a terminal state.
    """
    g = regression_of(arrival.first + step, reward_moment)
    pair = int(arrival.states[step] * table.actions + arrival.actions[step])
    phi = table.rows[pair]
    if arrival.part != STATES:
        moment, reward = reward_moment[g], arrival.rewards[step]
        for i in range(phi.size):
            moment[i] += weight * phi[i] * reward
    if arrival.part != REWARDS and not (arrival.terminated and step == arrival.actions.size - 1):
        row = next_moment[g, arrival.states[step + 1]]
        for i in range(phi.size):
            row[i] += weight * phi[i]
    return pair


@inlined
def add_to_factor(factor: Floats, phi: Floats, noise: float, x: Floats) -> None:
    """Replace U by the factor of Ω + φφᵀ/σ²; `x` is work space."""
    for i in range(x.size):
        x[i] = phi[i] / noise
    rank_one_update(factor, x)


@inlined
def learn_visits(table: Table, learned: Regression, work: Work, noise: float, arrival: Arrival) -> None:
    """Learn an arrival: Ω_h ← Ω_h + φφᵀ/σ² and the moments, for each of its steps."""
    weight = 1.0 / (noise * noise)
    for step in range(arrival.actions.size):
        pair = add_to_moments(learned.reward_moment, learned.next_moment, table, arrival, step, weight)
        if arrival.part != REWARDS:
            factor = learned.factor[regression_of(arrival.first + step, learned.reward_moment)]
            add_to_factor(factor, table.rows[pair], noise, work.vector)
