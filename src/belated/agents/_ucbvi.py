"""Delayed least-squares value iteration with upper confidence bounds: the optimistic baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.gaussian import dot, solve, solve_transposed
from belated._kernels.jit import copy, inlined, kernel
from belated._kernels.planning import TIES, linear_values
from belated._util.validate import choice, real
from belated.agents import _invariants as invariants
from belated.agents._base import ANYWHERE, REWARDS, Arrival
from belated.agents._information import factor_information
from belated.agents._regression import (
    Table,
    ValueIterationSettings,
    Work,
    add_to_factor,
    add_to_moments,
    make_regression,
    make_table,
    make_work,
    mean_weights,
    regression_of,
    sweep,
)
from belated.agents._sparse import WeightRule, mean_draw
from belated.types import Floats, Ints, Problem, SimulatorProblem, TableProblem

#: Number of pairs whose widths are computed together, so that the data stays in a fast cache.
TILE = 64


@dataclass(frozen=True, kw_only=True)
class DelayedUCBVI(ValueIterationSettings):
    """Delayed-UCBVI: LSVI-UCB (Jin et al., 2020) on the feedback that has arrived.

    Plays greedily on φᵀŵ + β‖φ‖_{Ω⁻¹}, capped at the remaining steps. β is `bonus` if given. Otherwise it is derived
    from `bonus_ratio` c_β by `bonus_form`:

    * ``"constant"``: β = c_β/2 · d·H·√log(dH);
    * ``"growing"``: β = c_β/2 · d·√k·(remaining steps after this one) in the k-th episode, k = 1, 2, ...

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedUCBVI(bonus=1.0).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "ucbvi"

    bonus: float | None = None
    """β, the width of the confidence bound; None derives it from `bonus_ratio`."""
    bonus_ratio: float = 0.1
    """c_β."""
    bonus_form: str = "constant"
    """How β is derived from c_β: "constant" or "growing"."""
    ties: str = "random"
    """How ties between action values are broken: at "random", or by the "first" action, like `numpy.argmax`."""

    def __post_init__(self) -> None:
        choice("ties", self.ties, TIES)
        if self.bonus is not None:
            real("bonus", self.bonus, at_least=0)
        real("bonus_ratio", self.bonus_ratio, at_least=0)
        choice("bonus_form", self.bonus_form, ("constant", "growing"))
        super().__post_init__()

    def record(self, problem: TableProblem) -> UCBVIRecord:
        table = make_table(problem)
        regression = make_regression(problem, float(self.ridge), self.shared)
        prior_widths = (table.rows**2).sum(axis=1) / self.ridge  # φᵀ(λI)⁻¹φ
        widths = np.tile(prior_widths, (len(regression.factor), 1))
        learned = UCBVILearned(
            **regression._asdict(), widths=widths, arrived=np.zeros(1, np.int64), planned=np.zeros(1, np.int64)
        )
        beta, growing = self._beta(problem)
        return UCBVIRecord(
            table=table,
            learned=learned,
            work=make_work(problem),
            beta=float(beta),
            growing=growing,
            first=self.ties == "first",
        )

    def _beta(self, problem: Problem) -> tuple[float, bool]:
        """Return β, and whether it grows by √k times the remaining steps."""
        d, horizon = problem.dimension, problem.horizon
        if self.bonus is not None:
            return float(self.bonus), False
        if self.bonus_form == "growing":
            return self.bonus_ratio / 2 * d, True
        return self.bonus_ratio / 2 * d * horizon * float(np.sqrt(np.log(max(d * horizon, 1)))), False

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        beta, growing = self._beta(problem)
        return WeightRule(
            draw=mean_draw,
            ridge=self.ridge,
            shared=self.shared,
            first=self.ties == "first",
            bonus=lambda episode, after: beta * (float(np.sqrt(episode)) * after if growing else 1.0),
        )

    def check_learned(self, learned: UCBVILearned, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
        invariants.require(learned.widths >= 0, "widths", "not be negative")
        invariants.counts("arrived", learned.arrived)
        invariants.counts("planned", learned.planned)


class UCBVILearned(NamedTuple):
    """What feedback changes."""

    factor: Floats
    reward_moment: Floats
    next_moment: Floats
    widths: Floats
    """φᵀΩ_h⁻¹φ of every pair, shape (T, S·A) for T regressions."""
    arrived: Ints
    """Number of trajectories that have arrived."""
    planned: Ints
    """Number of episodes planned."""


class UCBVIRecord(NamedTuple):
    table: Table
    learned: UCBVILearned
    work: Work
    beta: float
    growing: bool
    first: bool
    cap: bool = True

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Backward induction on upper confidence bounds."""
        self.learned.planned[0] += 1
        sweep(self, rng, ANYWHERE, policy)

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """Set Q = φᵀŵ + β‖φ‖_{Ω⁻¹}."""
        g = regression_of(h, self.learned.reward_moment)
        mean_weights(self.learned.factor[g], self.work.moment)
        linear_values(self.table.columns, self.work.moment, pair, q)
        beta = self.beta
        if self.growing:
            beta *= np.sqrt(float(self.learned.planned[0])) * (self.table.horizon - h - 1)
        add_bonus(q, beta, self.learned.widths[g, pair : pair + q.size])

    def learn(self, arrival: Arrival) -> None:
        """Update Ω, the moments and the confidence widths of each step."""
        learned, table = self.learned, self.table
        # The widths are updated in O(S·A·d) each time and recomputed from the factor when the number of arrivals
        # doubles, so that rounding errors do not accumulate.
        if arrival.part != REWARDS:
            learned.arrived[0] += 1
        refresh = arrival.part != REWARDS and learned.arrived[0] & (learned.arrived[0] - 1) == 0
        for step in range(arrival.actions.size):
            pair = add_to_moments(learned.reward_moment, learned.next_moment, table, arrival, step, 1.0)
            if arrival.part != REWARDS:
                g = regression_of(arrival.first + step, learned.reward_moment)
                if not refresh:
                    shrink_widths(table, self.work, learned.factor[g], table.rows[pair], learned.widths[g])
                add_to_factor(learned.factor[g], table.rows[pair], 1.0, self.work.vector)
        if refresh:
            for g in range(len(learned.factor)):
                fill_widths(learned.factor[g], table.columns, learned.widths[g])

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""

    def information(self, log_determinants: Floats) -> None:
        factor_information(self.learned.factor, log_determinants)


@inlined
def add_bonus(q: Floats, beta: float, widths: Floats) -> None:
    """Add β‖φ‖_{Ω⁻¹} to the action values, given the `widths` ‖φ‖²."""
    for j in range(q.size):
        q[j] += beta * np.sqrt(widths[j])


@inlined
def shrink_widths(table: Table, work: Work, factor: Floats, phi: Floats, widths: Floats) -> None:
    """Update the widths for one more visit of φ, by Sherman-Morrison: φ'ᵀΩ⁻¹φ' falls by (φ'ᵀg)²/(1 + φᵀg)."""
    direction = work.weights
    copy(phi, direction)
    solve_transposed(factor, direction)
    shrink = 1.0 / (1.0 + dot(direction, direction))
    solve(factor, direction)  # g = Ω⁻¹φ of the old Ω
    linear_values(table.columns, direction, 0, work.q)
    for j in range(widths.size):
        widths[j] = max(widths[j] - work.q[j] * work.q[j] * shrink, 0.0)


@kernel
def fill_widths(factor: Floats, columns: Floats, widths: Floats) -> None:
    """Set the widths to ‖U⁻ᵀφ‖² of every pair, by forward substitution of `TILE` pairs at a time."""
    d = factor.shape[0]
    solved = np.empty((d, TILE))  # U⁻ᵀΦ
    widths[:] = 0.0
    for first in range(0, widths.size, TILE):
        size = min(TILE, widths.size - first)
        for k in range(d):
            here, given = solved[k, :size], columns[k, first : first + size]
            for j in range(size):
                here[j] = given[j]
            for i in range(k):
                above, share = solved[i, :size], factor[i, k]
                for j in range(size):
                    here[j] -= share * above[j]
            part = widths[first : first + size]
            for j in range(size):
                here[j] /= factor[k, k]
                part[j] += here[j] * here[j]
