"""What the linear algorithms share: the feature table, the regression of each step and its update, and settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from belated._kernels.gaussian import rank_one_update
from belated._kernels.jit import inlined_kernel, layer
from belated._kernels.planning import TIES, larger_values, linear_values, raise_to
from belated._util.validate import check_room, choice, integer, real, refuse
from belated.agents._base import CompiledSettings
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class SampledRegression(CompiledSettings):
    """Settings that all algorithms share that draw the weights of a regression."""

    draws: int = 2
    """M, the number of weight vectors that are drawn, of whose action values the largest counts."""
    noise: float = 1.0
    """σ, the standard deviation of the regression targets."""
    ridge: float = 1.0
    """λ, the prior precision of the weights."""
    ties: str = "random"
    """How equal action values are decided: at "random", or the "first" action, as `numpy.argmax` does."""

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        integer("draws", self.draws, at_least=1)
        real("noise", self.noise, above=0)
        real("ridge", self.ridge, above=0)
        choice("ties", self.ties, TIES)


class Table(NamedTuple):
    """The features, both ways round, and the sizes."""

    rows: Floats
    """φ(s, a) as row s·A + a, shape (S·A, d)."""
    columns: Floats
    """The same transposed, (d, S·A): one pass over a row adds one weight's share to every action value."""
    states: int
    actions: int
    horizon: int


class Regression(NamedTuple):
    """Sufficient statistics of T regressions, one for each step or one for all: past episodes are not needed again."""

    factor: Floats
    """U_h with Ω_h = U_hᵀU_h, shape (T, d, d)."""
    reward_moment: Floats
    """Σφr/σ², shape (T, d)."""
    next_moment: Floats
    """Σφ/σ² over visits that went on to s', shape (T, S, d)."""


class Work(NamedTuple):
    """Scratch space, made once so that kernels allocate nothing."""

    values: Floats
    q: Floats
    other: Floats
    moment: Floats
    weights: Floats
    vector: Floats


def cache_aligned(*shape: int) -> Floats:
    """Return zeros that begin where a cache line of 64 bytes does: vector loads of half a line never straddle two."""
    size = math.prod(shape)
    room = np.zeros(size + 7)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + size].reshape(shape)


def make_table(problem: TableProblem) -> Table:
    """Lay out the features of `problem` for the kernels."""
    rows = np.array(problem.features).reshape(-1, problem.dimension)
    columns = cache_aligned(problem.dimension, len(rows))
    columns[:] = rows.T
    return Table(rows=rows, columns=columns, states=problem.states, actions=problem.actions, horizon=problem.horizon)


def make_regression(problem: TableProblem, ridge: float, shared: bool = False) -> Regression:
    """Return the statistics before any feedback: Ω = λI and empty moments."""
    if shared and not (problem.homogeneous or problem.horizon == 1):
        wanted = "False, since the problem does not say that its dynamics and rewards are the same at every step"
        raise refuse("shared", shared, wanted)
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


@inlined_kernel
def regression_of(h: int, moments: Floats) -> int:
    """Return the number of the regression of step h, given the `moments` of all: h, or 0 where all steps share one."""
    return min(h, len(moments) - 1)


@layer
def largest_values(columns: Floats, weights: Floats, first: int, q: Floats, other: Floats) -> None:
    """Set q_j = max_m φ_jᵀwᵐ over the M rows of `weights`, for as many pairs j as q holds, from number `first` on."""
    paired = 2 if weights.shape[0] > 1 else 0
    if paired:
        larger_values(columns, weights[0], weights[1], first, q, other)
    else:
        q[:] = -np.inf
    for m in range(paired, weights.shape[0]):
        linear_values(columns, weights[m], first, other)
        raise_to(q, other)


@inlined_kernel
def add_to_moments(
    reward_moment: Floats, next_moment: Floats, phi: Floats, reward: float, following: int, weight: float
) -> None:
    """Add one visit to the moments of a step: Σφr/σ² and C[s']; `weight` is 1/σ²."""
    row = next_moment[following]
    for i in range(phi.size):
        share = weight * phi[i]
        reward_moment[i] += share * reward
        row[i] += share


@layer
def learn_trajectory(
    table: Table,
    learned: Regression,
    work: Work,
    noise: float,
    states: Ints,
    actions: Ints,
    rewards: Floats,
) -> None:
    """Learn one trajectory: Ω_h ← Ω_h + φφᵀ/σ² and the moments, for every step."""
    x = work.vector
    for h in range(table.horizon):
        g = regression_of(h, learned.reward_moment)
        phi = table.rows[states[h] * table.actions + actions[h]]
        add_to_moments(
            learned.reward_moment[g],
            learned.next_moment[g],
            phi,
            rewards[h],
            states[h + 1],
            1.0 / (noise * noise),
        )
        for i in range(x.size):
            x[i] = phi[i] / noise
        rank_one_update(learned.factor[g], x)
