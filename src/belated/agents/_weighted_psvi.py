"""Delayed-PSVI with visits weighted by the estimated variance of their targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.gaussian import dot, rank_one_update, solve_transposed
from belated._kernels.jit import inlined
from belated._kernels.planning import greedy
from belated._util.validate import check_room, flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import REWARDS, STATES, Arrival
from belated.agents._psvi import draw_weights
from belated.agents._regression import (
    SampledRegression,
    Table,
    add_to_factor,
    cache_aligned,
    largest_values,
    make_table,
    mean_weights,
    regression_of,
)
from belated.agents._sparse import check_shared
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class VarianceWeightedPSVI(SampledRegression):
    """Delayed-PSVI with variance weights, which the paper leaves to future work.

    Delayed-PSVI assumes the same noise σ for every target r + V(s'), which must be as large as the return. He et al.
    (2023, LSVI-UCB++) weight a visit by the inverse of the estimated variance of its target, and save a factor of √H in
    the regret of optimistic value iteration. Here the same is done to the posterior: at each step Ω = Σ φφᵀ/(σ²v) + λI,
    where v is the variance of the targets of a pair, estimated by regressing y and y² on the features. Variances are
    estimated again for each plan, from the values of that plan.

    Uncertain variances are treated as large: v = (v̂ + ℓ·v_max)/(1 + ℓ) with the leverage ℓ of a visit of the pair,
    about 1/n after n visits, and v_max = (H − h)²/4, the maximum variance of a target within [0, H − h].

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = VarianceWeightedPSVI(scale=0.5).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "weighted-psvi"

    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    noise: float = 1.0
    """σ, a factor on the estimated standard deviations of the targets."""
    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""
    cap: bool = True
    """Whether action values are capped at the maximum return of the remaining steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("scale", self.scale, at_least=0)
        flag("shared", self.shared)
        flag("cap", self.cap)

    def record(self, problem: TableProblem) -> WeightedRecord:
        check_shared(self.shared, problem)
        slots, states, d = 1 if self.shared else problem.horizon, problem.states, problem.dimension
        pairs = states * problem.actions
        check_room("the factors of horizon × d × d", slots, d, d)
        check_room("the counts of horizon × states × actions × states", slots, pairs, states)
        check_room("the draws × d weights", self.draws, d)
        return WeightedRecord(
            table=make_table(problem),
            learned=Outcomes(
                factor=np.tile(math.sqrt(self.ridge) * np.eye(d), (slots, 1, 1)),
                visits=np.zeros((slots, pairs)),
                reward_sums=np.zeros((slots, pairs)),
                reward_squares=np.zeros((slots, pairs)),
                next_visits=np.zeros((slots, pairs, states)),
                next_rewards=np.zeros((slots, pairs, states)),
            ),
            work=WeightedWork(
                values=np.zeros((problem.horizon + 1, states)),
                q=cache_aligned(pairs),
                other=cache_aligned(pairs),
                factor=np.zeros((d, d)),
                targets=np.zeros((2, pairs)),
                moments=np.zeros((3, d)),
                vector=np.zeros(d),
            ),
            drawn=np.zeros((self.draws, d)),
            scale=float(self.scale),
            noise=float(self.noise),
            ridge=float(self.ridge),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def check_learned(self, learned: Outcomes, problem: TableProblem) -> None:
        """Require counts, and a positive diagonal of every factor."""
        invariants.factor("factor", learned.factor)
        for name in ("visits", "next_visits", "reward_squares"):
            invariants.require(getattr(learned, name) >= 0.0, name, "not be negative")


class Outcomes(NamedTuple):
    """Outcomes of each pair, for each of T regressions: one for each step, or one for all."""

    factor: Floats
    """U with UᵀU = Σφφᵀ + λI, with unit weights, shape (T, d, d)."""
    visits: Floats
    """n(s, a), shape (T, S·A)."""
    reward_sums: Floats
    """Σr, shape (T, S·A)."""
    reward_squares: Floats
    """Σr², shape (T, S·A)."""
    next_visits: Floats
    """How often s' followed, shape (T, S·A, S)."""
    next_rewards: Floats
    """Σr on the way to s', shape (T, S·A, S)."""


class WeightedWork(NamedTuple):
    """Scratch space, allocated once so that kernels do not allocate."""

    values: Floats
    q: Floats
    other: Floats
    factor: Floats
    targets: Floats
    moments: Floats
    vector: Floats


class WeightedRecord(NamedTuple):
    table: Table
    learned: Outcomes
    work: WeightedWork
    drawn: Floats
    """The M draws of a step, shape (M, d)."""
    scale: float
    noise: float
    ridge: float
    cap: bool
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Plan backwards: targets of a step, their variances, the weighted regression, and draws of its weights."""
        work, table = self.work, self.table
        horizon = table.horizon
        work.values[horizon] = 0.0
        for h in range(horizon - 1, -1, -1):
            left = float(horizon - h)
            weigh(self, regression_of(h, self.learned.visits), work.values[h + 1], left)
            draw_weights(work.factor, work.moments[2], self.scale, rng, self.drawn)
            largest_values(table.columns, self.drawn, np.int64(0), work.q, work.other)
            greedy(work.q, left if self.cap else np.inf, self.first, rng, work.values[h], policy[h])

    def learn(self, arrival: Arrival) -> None:
        """Count the outcomes of each pair; rewards that arrive after their states count as 0 until then."""
        learned = self.learned
        for step in range(arrival.actions.size):
            g = regression_of(arrival.first + step, learned.visits)
            pair = int(arrival.states[step] * self.table.actions + arrival.actions[step])
            after, reward = arrival.states[step + 1], arrival.rewards[step]
            goes_on = not (arrival.terminated and step == arrival.actions.size - 1)
            if arrival.part != STATES:
                learned.reward_sums[g, pair] += reward
                learned.reward_squares[g, pair] += reward * reward
                if goes_on:
                    learned.next_rewards[g, pair, after] += reward
            if arrival.part != REWARDS:
                learned.visits[g, pair] += 1.0
                if goes_on:
                    learned.next_visits[g, pair, after] += 1.0
                add_to_factor(learned.factor[g], self.table.rows[pair], 1.0, self.work.vector)

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@inlined
def weigh(record: WeightedRecord, g: int, following: Floats, left: float) -> None:
    """Set `factor` to that of Ω = Σ nφφᵀ/(σ²v) + λI and `moments[2]` to Σφy/(σ²v), `left` steps before the end.

    With unweighted regressions ŵ₁ of y and ŵ₂ of y², v̂ = φᵀŵ₂ − (φᵀŵ₁)².
    """
    learned, work, rows, x = record.learned, record.work, record.table.rows, record.work.vector
    sums, squares, plain = work.targets[0], work.targets[1], learned.factor[g]
    work.moments[:] = 0.0
    for pair in range(sums.size):
        sums[pair], squares[pair] = learned.reward_sums[g, pair], learned.reward_squares[g, pair]
        if learned.visits[g, pair] == 0.0:
            continue
        for s in range(following.size):  # Σy and Σy² of y = r + V(s')
            value, often = following[s], learned.next_visits[g, pair, s]
            sums[pair] += often * value
            squares[pair] += value * (2.0 * learned.next_rewards[g, pair, s] + often * value)
        for i in range(x.size):
            work.moments[0, i] += rows[pair, i] * sums[pair]
            work.moments[1, i] += rows[pair, i] * squares[pair]
    mean_weights(plain, work.moments[0])
    mean_weights(plain, work.moments[1])
    most = left * left / 4.0
    work.factor[:] = 0.0
    for i in range(x.size):
        work.factor[i, i] = math.sqrt(record.ridge)
    for pair in range(sums.size):
        n = learned.visits[g, pair]
        if n == 0.0:
            continue
        phi = rows[pair]
        mean = dot(phi, work.moments[0])
        variance = min(max(dot(phi, work.moments[1]) - mean * mean, 0.0), most)
        for i in range(x.size):
            x[i] = phi[i]
        solve_transposed(plain, x)
        leverage = dot(x, x)  # ℓ = φᵀ(Σφφᵀ + λI)⁻¹φ
        variance = (variance + leverage * most) / (1.0 + leverage)
        weight = 1.0 / (record.noise * record.noise * variance)
        for i in range(x.size):
            work.moments[2, i] += weight * phi[i] * sums[pair]
            x[i] = math.sqrt(weight * n) * phi[i]
        rank_one_update(work.factor, x)
