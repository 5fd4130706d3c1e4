"""Delayed value iteration by perturbed histories: posterior draws without a d × d matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse.linalg

from belated._kernels.conjugate_gradient import perturb, solve_by_products
from belated._kernels.jit import copy, kernel
from belated._kernels.normals import standard_normals
from belated._kernels.planning import greedy, linear_values, raise_to, target_moment
from belated._util.validate import check_room, flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import learns, plans_states
from belated.agents._regression import SampledRegression, Table, Work, add_to_moments, make_table, make_work
from belated.agents._sparse import Regression as SparseRegression
from belated.agents._sparse import WeightRule
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class DelayedPHE(SampledRegression):
    """LSVI-PHE (Ishfaq et al., 2021) on the feedback that has arrived.

    Each of the M weight vectors solves a regression whose targets have been perturbed with N(0, ν²σ²) and whose prior
    mean with N(0, ν²I/λ). Its distribution is N(ŵ, ν²Ω⁻¹), that of Delayed-PSVI with the same settings. The regressions are
    solved by conjugate gradients, which need only products with the features: what is kept grows like d, not d².
    It is the agent for dimensions where d² numbers a step are too many.

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
    """When conjugate gradients stop: at this size of the residual, relative to the right-hand side."""
    cap: bool = True
    """Whether action values are capped at the steps that remain, as rewards within [0, 1] allow."""

    @property
    def plays(self) -> Plays:
        return "both"

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        super().__post_init__()
        flag("cap", self.cap)
        real("scale", self.scale, at_least=0)
        real("tolerance", self.tolerance, above=0, below=1)

    def record(self, problem: TableProblem) -> PHERecord:
        """Return the record of an agent that has seen nothing yet."""
        horizon, d, pairs = problem.horizon, problem.dimension, problem.states * problem.actions
        check_room("the moments of horizon × states × d", horizon, problem.states, d)
        learned = PHELearned(
            visits=np.zeros((horizon, pairs), np.int64),
            reward_moment=np.zeros((horizon, d)),
            next_moment=np.zeros((horizon, problem.states, d)),
        )
        return PHERecord(
            table=make_table(problem),
            learned=learned,
            work=make_work(problem),
            gradients=Gradients(
                visited=np.zeros(pairs, np.int64), shares=np.zeros(pairs), direction=np.zeros(d), image=np.zeros(d)
            ),
            draws=int(self.draws),
            scale=float(self.scale),
            noise=float(self.noise),
            ridge=float(self.ridge),
            tolerance=float(self.tolerance),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(
            draw=self._draw_weights,
            draws=self.draws,
            noise=self.noise,
            ridge=self.ridge,
            capped=self.cap,
            first=self.ties == "first",
        )

    def _draw_weights(
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
            weights[m, active] = solve_sparse(phi, shares, self.ridge, self.tolerance, b[active])
        return weights

    def check_learned(self, learned: PHELearned, problem: TableProblem) -> None:
        """Require counts."""
        invariants.counts("visits", learned.visits)


def solve_sparse(phi: scipy.sparse.csr_array, shares: Floats, ridge: float, tolerance: float, b: Floats) -> Floats:
    """Return Ω⁻¹b for Ω = ΦᵀSΦ + λI, by products with Φ alone."""
    product = scipy.sparse.linalg.LinearOperator(
        (b.size, b.size), matvec=lambda x: phi.T @ (shares * (phi @ x)) + ridge * x, dtype=np.float64
    )
    found, failed = scipy.sparse.linalg.cg(product, b, rtol=tolerance, maxiter=10 * b.size + 100)
    if failed:
        raise InvalidInputError("tolerance is too small: conjugate gradients do not get there with 64-bit floats")
    return np.asarray(found, np.float64)


class PHELearned(NamedTuple):
    """What feedback changes."""

    visits: Ints
    """n_j of every pair, shape (H, S·A)."""
    reward_moment: Floats
    """Σφr/σ², shape (H, d)."""
    next_moment: Floats
    """Σφ/σ² over visits that went on to s', shape (H, S, d)."""


class Gradients(NamedTuple):
    """Scratch space of conjugate gradients."""

    visited: Ints
    shares: Floats
    direction: Floats
    image: Floats


class PHERecord(NamedTuple):
    """Arrays of one Delayed-PHE agent."""

    table: Table
    learned: PHELearned
    work: Work
    gradients: Gradients
    draws: int
    scale: float
    noise: float
    ridge: float
    tolerance: float
    cap: bool
    first: bool


@kernel
def list_visited(visits: Ints, noise: float, visited: Ints, shares: Floats) -> int:
    """List the pairs that were visited and their n_j/σ²; return how many they are."""
    count = 0
    for j in range(visits.size):
        if visits[j] > 0:
            visited[count] = j
            shares[count] = visits[j] / (noise * noise)
            count += 1
    return count


@plans_states(PHERecord)
@kernel
def plan_states(agent: PHERecord, rng: np.random.Generator, first: int, last: int, policy: Ints) -> None:
    """Plan for the states from `first` to `last - 1`."""
    table, learned, work, gradients = agent.table, agent.learned, agent.work, agent.gradients
    horizon, pair, pairs = table.horizon, first * table.actions, (last - first) * table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        target_moment(learned.reward_moment[h], learned.next_moment[h], work.values[h + 1], work.moment)  # Φy/σ²
        count = list_visited(learned.visits[h], agent.noise, gradients.visited, gradients.shares)
        visited, shares = gradients.visited[:count], gradients.shares[:count]
        for m in range(agent.draws):
            copy(work.moment, work.vector)
            perturb(table.rows, visited, shares, agent.ridge, agent.scale, rng, work.vector)
            solve_by_products(  # w ~ N(ŵ, ν²Ω⁻¹)
                table.rows,
                visited,
                shares,
                agent.ridge,
                agent.tolerance,
                work.vector,
                work.weights,
                gradients.direction,
                gradients.image,
            )
            linear_values(table.columns, work.weights, pair, q if m == 0 else other)  # Qᵐ = φᵀwᵐ
            if m > 0:
                raise_to(q, other)  # Q = max_m Qᵐ
        cap = float(horizon - h) if agent.cap else np.inf
        greedy(q, cap, agent.first, rng, work.values[h, first:last], policy[h, first:last])


@learns(PHERecord)
@kernel
def learn(agent: PHERecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Count one late trajectory and add it to the moments of every step."""
    table, learned = agent.table, agent.learned
    weight = 1.0 / (agent.noise * agent.noise)
    for h in range(table.horizon):
        pair = states[h] * table.actions + actions[h]
        learned.visits[h, pair] += 1
        add_to_moments(
            learned.reward_moment[h], learned.next_moment[h], table.rows[pair], rewards[h], states[h + 1], weight
        )
