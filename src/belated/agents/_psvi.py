"""Delayed Posterior Sampling Value Iteration: exact Gaussian draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.block_update import add_visits
from belated._kernels.gaussian import draw_many, solve_transposed
from belated._kernels.jit import inlined
from belated._kernels.normals import standard_normals
from belated._kernels.sparse_ridge import Singles
from belated._util.validate import check_room, choice, real
from belated.agents import _invariants as invariants
from belated.agents._base import BATCH, REWARDS, Arrival
from belated.agents._information import factor_information
from belated.agents._regression import (
    Regression,
    SampledValueIteration,
    Table,
    Work,
    add_to_moments,
    largest_values,
    make_regression,
    make_table,
    make_work,
    regression_of,
    sweep,
)
from belated.agents._row_regression import RowRegression, RowStep
from belated.agents._sparse import SparseRegression
from belated.theory import accepted, psvi_concentration, rounds, warn_of_width
from belated.types import Floats, Ints, TableProblem

STORAGES = ("float64", "float32")


@dataclass(frozen=True, kw_only=True)
class DelayedPSVI(SampledValueIteration):
    """Delayed-PSVI (Kuang et al., 2023, Algorithm 1).

    At each step, backwards, it regresses r + V(s') on the features of the arrived transitions, draws M weight vectors
    from the posterior N(ŵ, ν²Ω⁻¹), and acts greedily on the maximum of the M action values, capped at the remaining
    steps.

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
    storage: str = "float64"
    """Type of the factors, the only arrays of size d²: "float64", or "float32" for half the memory."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("scale", self.scale, at_least=0)
        choice("storage", self.storage, STORAGES)

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
        regression = make_regression(problem, float(self.ridge), self.shared)
        check_room("the draws × d weights", self.draws, problem.dimension)
        check_room(f"the queue of horizon × {BATCH} pairs", problem.horizon, BATCH)
        drawn = np.zeros((self.draws, problem.dimension))
        return PSVIRecord(
            table=make_table(problem),
            learned=regression._replace(factor=regression.factor.astype(self.storage)),
            work=make_work(problem)._replace(weights=drawn[-1]),
            queue=Queue(pairs=np.zeros((problem.horizon, BATCH), np.int64), size=np.zeros(problem.horizon, np.int64)),
            drawn=drawn,
            scale=float(self.scale),
            noise=float(self.noise),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """wᵐ ~ N(ŵ, ν²Ω⁻¹) (line 10)."""
        noise = standard_normals(rng, (self.draws, regression.dimension))
        return regression.solve(regression.solve_transposed(moment) + self.scale * noise)

    def draw_rows(self, regression: RowRegression, step: RowStep, rng: np.random.Generator) -> tuple[Singles, float]:
        """wᵐ ~ N(ŵ, ν²Ω⁻¹) (line 10), as solutions of perturbed regressions."""
        mean, deviations = regression.mean(step.targets, step.duals), regression.deviations_of(step.place)
        return mean + np.float32(self.scale) * deviations, self.scale / math.sqrt(self.ridge)

    def check_learned(self, learned: Regression, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)


class Queue(NamedTuple):
    """Visits that are in the moments, but not in the factors yet."""

    pairs: Ints
    """Numbers of the pairs visited at each step, shape (H, BATCH)."""
    size: Ints
    """Their number at each step, shape (H,)."""


class PSVIRecord(NamedTuple):
    table: Table
    learned: Regression
    work: Work
    queue: Queue
    drawn: Floats
    """The M draws of a step, shape (M, d); the last one is also `work.weights`."""
    scale: float
    noise: float
    cap: bool
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Lines 4-16 of Algorithm 1."""
        sweep(self, rng, start, policy)

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """Lines 7-13."""
        factor = self.learned.factor[regression_of(h, self.learned.reward_moment)]
        draw_weights(factor, self.work.moment, self.scale, rng, self.drawn)
        largest_values(self.table.columns, self.drawn, pair, q, other)  # Q = max_m φᵀwᵐ      (lines 11-13)

    def learn(self, arrival: Arrival) -> None:
        """Update the posterior of each step: the moments now, the factors in `settle`."""
        learned, queue = self.learned, self.queue
        weight = 1.0 / (self.noise * self.noise)
        for step in range(arrival.actions.size):
            pair = add_to_moments(learned.reward_moment, learned.next_moment, self.table, arrival, step, weight)
            if arrival.part != REWARDS:
                h = arrival.first + step
                queue.pairs[h, queue.size[h]] = pair
                queue.size[h] += 1

    def settle(self) -> None:
        """Add the queued visits to the factors: Ω_h ← Ω_h + Σφφᵀ/σ²."""
        queue = self.queue
        for h in range(self.table.horizon):
            size = queue.size[h]
            if size > 0:
                factor = self.learned.factor[regression_of(h, self.learned.reward_moment)]
                add_visits(factor, self.table.rows, queue.pairs[h, :size], self.noise, self.work.vector)
                queue.size[h] = 0

    def information(self, log_determinants: Floats) -> None:
        factor_information(self.learned.factor, log_determinants)


@inlined
def draw_weights(factor: Floats, moment: Floats, scale: float, rng: np.random.Generator, weights: Floats) -> None:
    """Make every row of `weights` (M, d) a draw from N(ŵ, ν²Ω⁻¹), ŵ = Ω⁻¹·moment; `moment` is overwritten."""
    solve_transposed(factor, moment)  # half of ŵ: U⁻ᵀ now, U⁻¹ together with the noise  (line 7)
    draw_many(factor, moment, scale, rng, weights)  # wᵐ ~ N(ŵ, ν²Ω⁻¹)                  (line 10)
