"""Delayed OFU: optimism in the face of uncertainty for linear and logistic bandits with late rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.exp_log import exp, log
from belated._kernels.gaussian import dot, solve, solve_transposed
from belated._kernels.jit import copy, kernel
from belated._kernels.planning import TIES, greedy, linear_values
from belated._util.validate import check_room, choice, real, refuse
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival, CompiledSettings
from belated.agents._information import factor_information
from belated.agents._regression import Table, Work, add_to_factor, make_table, make_work, mean_weights
from belated.types import Floats, Ints, TableProblem

LINKS = ("linear", "logistic")

#: A logistic fit has converged once no xᵀθ of a visited pair moves by more than this.
SETTLED = 1e-10
#: The factor of the Hessian is reused while no xᵀθ has moved by more than this since it was computed. Up to the end of
#: an equally small step, μ' changes at most by the factor e^0.2, so such a step leaves less than a quarter of the
#: error.
REUSED = 0.1
#: Maximum number of steps of a fit; no step moves any xᵀθ by more than 1.
STEPS = 1000


@dataclass(frozen=True, kw_only=True)
class DelayedOFU(CompiledSettings):
    """Delayed OFU (Howson et al., 2023): upper confidence bounds for linear and logistic bandits.

    With W = λI + Σxxᵀ over the rounds whose rewards have arrived, it plays the largest xᵀθ̂ + √β‖x‖_{W⁻¹}, where

        √β = √λ·m₁ + R/κ · √(2·log(det(W)^½/(δλ^{d/2}))).

    With the link ``"linear"``, E y = xᵀθ, θ̂ is ridge regression and κ = 1. With ``"logistic"``, E y = μ(xᵀθ) with
    μ(z) = 1/(1 + e⁻ᶻ) and rewards within [0, 1], θ̂ solves Σ(y − μ(xᵀθ))x = κλθ, and κ is the minimum slope μ' over ‖θ‖
    ≤ m₁: μ'(m₁), or μ'(m₁·max‖x‖) if there are features with a norm above 1.

    Examples
    --------
    >>> from belated import LinearBandit
    >>> bandit = LinearBandit(dimension=4, actions=20)
    >>> agent = DelayedOFU(bonus_scale=0.1).start(bandit.problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (1, 1)
    """

    kind: ClassVar[str] = "ofu"
    one_step: ClassVar[bool] = True

    norm_bound: float = 1.0
    """m₁, an upper bound on the norm of the true weights."""
    noise: float = 0.5
    """R, the sub-Gaussian scale of the rewards; 1/2 is valid for all rewards within [0, 1]."""
    delta: float = 0.05
    """δ, the probability that the confidence bounds fail."""
    ridge: float = 1.0
    """λ, the regularisation."""
    link: str = "linear"
    """How rewards depend on xᵀθ: "linear" or "logistic"."""
    bonus_scale: float = 1.0
    """Factor on √β; 1 is the theory's, which is wider than what works best in practice."""
    ties: str = "random"
    """How ties between action values are broken: at "random", or by the "first" action, like `numpy.argmax`."""

    def __post_init__(self) -> None:
        real("norm_bound", self.norm_bound, at_least=0)
        real("noise", self.noise, above=0)
        real("delta", self.delta, above=0, below=1)
        real("ridge", self.ridge, above=0)
        choice("link", self.link, LINKS)
        real("bonus_scale", self.bonus_scale, at_least=0)
        choice("ties", self.ties, TIES)

    def record(self, problem: TableProblem) -> OFURecord:
        table = make_table(problem)
        d, logistic = problem.dimension, self.link == "logistic"
        slope = self._least_slope(table.rows) if logistic else 1.0
        pairs = len(table.rows) if logistic else 0
        check_room("the factor of d × d", d, d)
        learned = OFULearned(
            factor=math.sqrt(self.ridge) * np.eye(d),
            moment=np.zeros(d),
            weights=np.zeros(d),
            visits=np.zeros(pairs, np.int64),
            visited=np.full(pairs, -1),
            distinct=np.zeros(1, np.int64),
            stale=np.zeros(1, np.int64),
        )
        return OFURecord(
            table=table,
            learned=learned,
            work=make_work(problem),
            hessian=np.zeros((d, d) if logistic else (0, 0)),
            solved=np.zeros((d, problem.actions)),
            ridge=float(self.ridge),
            slope=slope,
            bias=math.sqrt(self.ridge) * float(self.norm_bound),
            noise=float(self.noise) / slope,
            confidence=-math.log(self.delta) - d / 2 * math.log(self.ridge),
            bonus_scale=float(self.bonus_scale),
            logistic=logistic,
            first=self.ties == "first",
        )

    def _least_slope(self, rows: Floats) -> float:
        """Return κ, the minimum of μ'(xᵀθ) over ‖θ‖ ≤ m₁."""
        largest = float(np.linalg.norm(rows, axis=1).max())
        decay = math.exp(-self.norm_bound * max(1.0, largest))
        slope = decay / (1.0 + decay) ** 2  # μ'(z) = μ(z)(1 − μ(z)), even in z
        if slope < np.finfo(float).tiny:
            small = f"small enough for a positive slope μ' with features of norm {largest:g}"
            raise refuse("norm_bound", self.norm_bound, small)
        return slope

    def check_learned(self, learned: OFULearned, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
        invariants.counts("visits", learned.visits)
        invariants.within("stale", learned.stale, 2)
        pairs = np.flatnonzero(learned.visits)
        invariants.require(learned.distinct == pairs.size, "distinct", "count the pairs that have arrived")
        listed = np.concatenate([pairs, np.full(learned.visits.size - pairs.size, -1)])
        invariants.require(learned.visited == listed, "visited", "list the pairs that have arrived, ascending, then -1")


class OFULearned(NamedTuple):
    """What feedback and fits change; the visits are empty unless the link is logistic."""

    factor: Floats
    """U with W = UᵀU, shape (d, d)."""
    moment: Floats
    """Σxy, shape (d,)."""
    weights: Floats
    """θ̂ of the last plan, from which the next logistic fit starts, shape (d,)."""
    visits: Ints
    """Number of arrivals of each pair, shape (S·A,)."""
    visited: Ints
    """The pairs that have arrived, ascending, and then −1, shape (S·A,)."""
    distinct: Ints
    """Number of distinct pairs that have arrived."""
    stale: Ints
    """1 if something has arrived since θ̂ was fitted, else 0."""


class OFURecord(NamedTuple):
    table: Table
    learned: OFULearned
    work: Work
    hessian: Floats
    """Work space of a logistic fit: the Hessian, then its factor."""
    solved: Floats
    """Work space for U⁻ᵀ times the features of one context, shape (d, A)."""
    ridge: float
    slope: float
    """κ."""
    bias: float
    """√λ·m₁."""
    noise: float
    """R/κ."""
    confidence: float
    """log(1/(δλ^{d/2}))."""
    bonus_scale: float
    logistic: bool
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Play the largest upper confidence bound in the context `start`, or in all of them."""
        learned, work, actions = self.learned, self.work, self.table.actions
        if learned.stale[0]:
            learned.stale[0] = 0
            if self.logistic:
                fit_logistic(self)
            else:
                copy(learned.moment, learned.weights)
                mean_weights(learned.factor, learned.weights)  # θ̂ = W⁻¹Σxy
        scale = bonus(self)
        q, widths = work.q[:actions], work.other[:actions]
        first, last = (start, start + 1) if start >= 0 else (0, self.table.states)
        for s in range(first, last):
            linear_values(self.table.columns, learned.weights, s * actions, q)
            add_widths(learned.factor, self.table.columns, s * actions, scale, self.solved, widths, q)
            greedy(q, np.inf, self.first, rng, work.values[0, s : s + 1], policy[0, s : s + 1])

    def learn(self, arrival: Arrival) -> None:
        """Add one late round: W ← W + xxᵀ, Σxy and, for a logistic fit, the count of its pair."""
        learned = self.learned
        pair = arrival.states[0] * self.table.actions + arrival.actions[0]
        x = self.table.rows[pair]
        for i in range(x.size):
            learned.moment[i] += arrival.rewards[0] * x[i]
        add_to_factor(learned.factor, x, 1.0, self.work.vector)
        learned.stale[0] = 1
        if self.logistic:
            if learned.visits[pair] == 0:
                place = learned.distinct[0]
                while place > 0 and learned.visited[place - 1] > pair:  # sorted, whatever the order of arrival
                    learned.visited[place] = learned.visited[place - 1]
                    place -= 1
                learned.visited[place] = pair
                learned.distinct[0] += 1
            learned.visits[pair] += 1

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""

    def information(self, log_determinants: Floats) -> None:
        factor_information(self.learned.factor.reshape((1, *self.learned.factor.shape)), log_determinants)


@kernel
def bonus(agent: OFURecord) -> float:
    """Return √β times `bonus_scale`."""
    factor = agent.learned.factor
    growth = agent.confidence
    for k in range(factor.shape[0]):
        growth += log(factor[k, k])  # log det(W)^½, since W = UᵀU
    return float(agent.bonus_scale * (agent.bias + agent.noise * np.sqrt(2.0 * max(growth, 0.0))))


@kernel
def add_widths(
    factor: Floats, columns: Floats, first: int, scale: float, solved: Floats, widths: Floats, q: Floats
) -> None:
    """Add `scale`·‖x‖_{W⁻¹} to q for as many pairs as q has entries, from pair `first` on.

    ‖x‖²_{W⁻¹} = ‖U⁻ᵀx‖² by forward substitution, with one column per pair, over which the inner loops run.
    """
    widths[:] = 0.0
    for k in range(factor.shape[0]):
        row = solved[k]
        copy(columns[k, first : first + q.size], row)
        for i in range(k):
            share, other = factor[i, k], solved[i]
            for j in range(q.size):
                row[j] -= share * other[j]
        inverse = 1.0 / factor[k, k]
        for j in range(q.size):
            row[j] *= inverse
            widths[j] += row[j] * row[j]
    for j in range(q.size):
        q[j] += scale * np.sqrt(widths[j])


@kernel
def add_outer(matrix: Floats, x: Floats, weight: float) -> None:
    """Add weight·xxᵀ to the upper triangle of `matrix`."""
    for k in range(x.size):
        share, row, rest = weight * x[k], matrix[k, k:], x[k:]
        for j in range(rest.size):
            row[j] += share * rest[j]


@kernel
def factorise(matrix: Floats) -> None:
    """Replace the upper triangle of a positive definite `matrix` by its factor U: matrix = UᵀU."""
    for k in range(matrix.shape[0]):
        pivot = np.sqrt(matrix[k, k])
        row = matrix[k, k:]
        for j in range(row.size):
            row[j] /= pivot
        for i in range(1, row.size):
            share, rest, tail = row[i], matrix[k + i, k + i :], row[i:]
            for j in range(rest.size):
                rest[j] -= share * tail[j]


@kernel
def fit_logistic(agent: OFURecord) -> None:
    """Solve Σ(y − μ(xᵀθ))x = κλθ for θ̂ by Newton's method, starting from the last θ̂.

    Steps are shortened so that no xᵀθ moves by more than 1. On such a step μ' grows at most e-fold, which ensures that
    the likelihood grows: no line search is needed.
    """
    learned, rows, hessian = agent.learned, agent.table.rows, agent.hessian
    weights, step = learned.weights, agent.work.vector
    count, ridge = learned.distinct[0], agent.slope * agent.ridge
    values, moves = agent.work.q[:count], agent.work.other[:count]
    for i in range(count):
        values[i] = dot(rows[learned.visited[i]], weights)
    moved, before = np.inf, np.nan
    for _ in range(STEPS):
        renew = moved > REUSED
        for k in range(step.size):
            step[k] = learned.moment[k] - ridge * weights[k]
        if renew:
            moved = 0.0
            hessian[:] = 0.0
            for k in range(step.size):
                hessian[k, k] = ridge
        for i in range(count):  # the gradient Σxy − Σnμ(xᵀθ)x − κλθ, and the Hessian Σnμ'(xᵀθ)xxᵀ + κλI
            pair = learned.visited[i]
            mean = 1.0 / (1.0 + exp(-values[i]))
            expected = learned.visits[pair] * mean
            x = rows[pair]
            for k in range(step.size):
                step[k] -= expected * x[k]
            if renew:
                add_outer(hessian, x, expected * (1.0 - mean))
        if renew:
            factorise(hessian)
        solve_transposed(hessian, step)
        size = dot(step, step)  # the squared distance to the solution, in the norm of the Hessian
        if size >= before / 4.0:
            break  # after a small step, only rounding can leave half of the error
        solve(hessian, step)
        largest = 0.0
        for i in range(count):
            moves[i] = dot(rows[learned.visited[i]], step)
            largest = max(largest, abs(moves[i]))
        length = 1.0 / max(1.0, largest)
        for k in range(step.size):
            weights[k] += length * step[k]
        for i in range(count):
            values[i] += length * moves[i]
        moved += length * largest
        before = size if largest <= REUSED else np.nan
        if largest <= SETTLED:
            break
