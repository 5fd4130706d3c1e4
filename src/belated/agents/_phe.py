"""Delayed value iteration with perturbed histories: posterior draws without a d × d matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from belated._kernels.conjugate_gradient import perturb, solve_by_products
from belated._kernels.jit import copy, kernel
from belated._kernels.normals import standard_normals
from belated._kernels.sparse_ridge import Singles
from belated._util.validate import check_room, real
from belated.agents import _invariants as invariants
from belated.agents._base import REWARDS, Arrival
from belated.agents._regression import (
    SampledValueIteration,
    Table,
    Work,
    add_to_moments,
    largest_values,
    make_table,
    make_work,
    regression_of,
    sweep,
)
from belated.agents._row_regression import RowRegression, RowStep
from belated.agents._sparse import SparseRegression, check_shared
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class DelayedPHE(SampledValueIteration):
    """LSVI-PHE (Ishfaq et al., 2021) on the feedback that has arrived.

    Each of the M weight vectors solves a regression with targets perturbed by N(0, ν²σ²) and prior mean perturbed by
    N(0, ν²I/λ). Its distribution is N(ŵ, ν²Ω⁻¹), that of Delayed-PSVI with the same settings. The regressions are
    solved by conjugate gradients, which only need products with the features: memory grows with d, not d². Use this
    agent in dimensions where d² numbers per step are too many.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedPHE(scale=2.0).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "phe"

    scale: float = 1.0
    """ν, the width of the perturbations in standard deviations; 0 perturbs nothing."""
    tolerance: float = 1e-8
    """Conjugate gradients stop at this residual, relative to the right-hand side."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("scale", self.scale, at_least=0)
        real("tolerance", self.tolerance, above=0, below=1)

    def record(self, problem: TableProblem) -> PHERecord:
        check_shared(self.shared, problem)
        slots, d, pairs = 1 if self.shared else problem.horizon, problem.dimension, problem.states * problem.actions
        check_room("the moments of horizon × states × d", slots, problem.states, d)
        learned = PHELearned(
            visits=np.zeros((slots, pairs), np.int64),
            reward_moment=np.zeros((slots, d)),
            next_moment=np.zeros((slots, problem.states, d)),
        )
        return PHERecord(
            table=make_table(problem),
            learned=learned,
            work=make_work(problem),
            gradients=Gradients(
                visited=np.zeros(pairs, np.int64), shares=np.zeros(pairs), direction=np.zeros(d), image=np.zeros(d)
            ),
            weights=np.zeros((self.draws, d)),
            scale=float(self.scale),
            noise=float(self.noise),
            ridge=float(self.ridge),
            tolerance=float(self.tolerance),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """wᵐ solves Ωw = Φy/σ² + ν√λ·ζ + Σ ν√n/σ·ξφ by conjugate gradients."""
        phi, shares, active = regression.phi, regression.shares, regression.active
        order = regression.pair_order
        weights = np.empty((self.draws, moment.size))
        for m in range(self.draws):
            b = moment + self.scale * math.sqrt(self.ridge) * standard_normals(rng, moment.shape)
            noise = np.empty(len(shares))
            noise[order] = standard_normals(rng, shares.shape)
            b[active] += phi.T @ (self.scale * np.sqrt(shares) * noise)
            weights[m] = b / self.ridge
            weights[m, active] = solve_sparse(
                lambda x: phi.T @ (shares * (phi @ x)) + self.ridge * x, self.tolerance, b[active]
            )
        return weights

    def draw_rows(self, regression: RowRegression, step: RowStep, rng: np.random.Generator) -> tuple[Singles, float]:
        """Draw in the same way, on the features that occur in the rows."""
        phi, shares, spread = regression.compact, regression.shares, self.scale / math.sqrt(self.ridge)
        moment, weights = regression.moment(step.targets), regression.prior_of(step.place, spread)
        for m in range(self.draws):
            b = moment + self.scale * math.sqrt(self.ridge) * standard_normals(rng, moment.shape)
            b += phi.T @ (self.scale * np.sqrt(shares) * standard_normals(rng, shares.shape))
            weights[regression.active, m] = solve_sparse(regression.multiply, self.tolerance, b)
        return weights, spread

    def check_learned(self, learned: PHELearned, problem: TableProblem) -> None:
        invariants.counts("visits", learned.visits)


def solve_sparse(multiply: Callable[[Floats], Floats], tolerance: float, b: Floats) -> Floats:
    """Return Ω⁻¹b by conjugate gradients; `multiply` computes products with Ω."""
    product = scipy.sparse.linalg.LinearOperator((b.size, b.size), matvec=multiply, dtype=np.float64)
    found, failed = scipy.sparse.linalg.cg(product, b, rtol=tolerance, maxiter=10 * b.size + 100)
    if failed:
        raise InvalidInputError("tolerance is too small: conjugate gradients do not reach it in 64-bit floats")
    return np.asarray(found, np.float64)


class PHELearned(NamedTuple):
    """What feedback changes."""

    visits: Ints
    """n_j of every pair, shape (T, S·A) for T regressions."""
    reward_moment: Floats
    """Σφr/σ², shape (T, d)."""
    next_moment: Floats
    """Σφ/σ² over visits followed by s', shape (T, S, d)."""


class Gradients(NamedTuple):
    """Scratch space of conjugate gradients."""

    visited: Ints
    shares: Floats
    direction: Floats
    image: Floats


class PHERecord(NamedTuple):
    table: Table
    learned: PHELearned
    work: Work
    gradients: Gradients
    weights: Floats
    """The M draws of a step, shape (M, d)."""
    scale: float
    noise: float
    ridge: float
    tolerance: float
    cap: bool
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Plan with the maximum of M perturbed regressions."""
        sweep(self, rng, start, policy)

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """Draw w ~ N(ŵ, ν²Ω⁻¹) M times."""
        table, gradients = self.table, self.gradients
        count = list_visited(
            self.learned.visits[regression_of(h, self.learned.reward_moment)],
            self.noise,
            gradients.visited,
            gradients.shares,
        )
        visited, shares = gradients.visited[:count], gradients.shares[:count]
        work = self.work.vector, gradients.direction, gradients.image
        draw_perturbed(
            table.rows,
            visited,
            shares,
            self.work.moment,
            self.ridge,
            self.scale,
            self.tolerance,
            rng,
            self.weights,
            work,
        )
        largest_values(table.columns, self.weights, pair, q, other)

    def learn(self, arrival: Arrival) -> None:
        """Count the visits and add them to the moments of each step."""
        learned = self.learned
        weight = 1.0 / (self.noise * self.noise)
        for step in range(arrival.actions.size):
            pair = add_to_moments(learned.reward_moment, learned.next_moment, self.table, arrival, step, weight)
            if arrival.part != REWARDS:
                learned.visits[regression_of(arrival.first + step, learned.reward_moment), pair] += 1

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@kernel
def draw_perturbed(
    rows: Floats,
    visited: Ints,
    shares: Floats,
    moment: Floats,
    ridge: float,
    scale: float,
    tolerance: float,
    rng: np.random.Generator,
    weights: Floats,
    work: tuple[Floats, Floats, Floats],
) -> None:
    """Make every row of `weights` (M, d) a draw from N(ŵ, ν²Ω⁻¹): the solution for a perturbed `moment`.

    The observations are the `visited` rows of a table, each with its `shares` n/σ²; `work` holds three vectors (d,).
    """
    perturbed, direction, image = work
    for m in range(weights.shape[0]):
        copy(moment, perturbed)
        perturb(rows, visited, shares, ridge, scale, rng, perturbed)
        solve_by_products(rows, visited, shares, ridge, tolerance, perturbed, weights[m], direction, image)


@kernel
def list_visited(visits: Ints, noise: float, visited: Ints, shares: Floats) -> int:
    """List the visited pairs and their n_j/σ²; return their number."""
    count = 0
    for j in range(visits.size):
        if visits[j] > 0:
            visited[count] = j
            shares[count] = visits[j] / (noise * noise)
            count += 1
    return count
