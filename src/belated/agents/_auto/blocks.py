"""The rule on sparse features: φ(s, a) is ψ(s) in the block of action a, so Ω has a block for each action.

Only features with which an action has been taken are factored. A step of the sweep costs one product with Ω⁻¹ for each
action and one pass over the transitions and the next states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from belated._kernels.jit import entry_point, kernel
from belated._kernels.normals import standard_normals
from belated.agents._auto.rule import (
    Rule,
    hidden_width,
    possible,
    prior_mean,
    residual_width,
    squared_residuals,
    squared_targets,
)
from belated.agents._blocks import Data, add_gram, multiply, picked, sparse_rows
from belated.agents._transitions import Sparse
from belated.types import Floats, Ints

#: Minimum ridge relative to the largest entry of Ω, so that rounding does not make it indefinite.
ROUNDING = 1e-12


class Factors(NamedTuple):
    """Ω⁻¹ of each action, concatenated, and the noise of every step to be planned."""

    inverse: Floats
    residual_noise: Floats
    """(I − λΩ⁻¹)Ω^{-½}z₁, shape (steps, k₊)."""
    hidden_noise: Floats
    """Ω⁻¹D^{½}z₂, shape (steps, k₊)."""
    prior_noise: Floats
    """τλΩ⁻¹z₃, shape (steps, k₊)."""
    ridge: float
    """λ."""
    freedom: float
    """Σ(1 − ℓ) over all visits."""


def make_factors(
    rule: Rule,
    data: Data,
    phi: scipy.sparse.csr_array,
    visits: Floats,
    norm: float,
    steps: int,
    rng: np.random.Generator,
) -> Factors:
    """Factor Ω of each action, and draw the noise of `steps` steps; `norm` is the largest |ψ|."""
    ridge = rule.ridge * norm**2
    inverses: list[Floats] = []
    noises: tuple[list[Floats], list[Floats], list[Floats]] = ([], [], [])
    freedom = data.steps
    by_column = phi.tocsc()
    for first, last in zip(data.starts[:-1], data.starts[1:], strict=True):
        block = by_column[:, first:last].tocsr()
        block, counts = block[np.diff(block.indptr) > 0], visits[np.diff(block.indptr) > 0]
        inverse, leverage, *noise = _block(block, counts, ridge, rule.prior * ridge / norm, steps, rng)
        inverses.append(inverse.ravel())
        freedom -= leverage
        for into, drawn in zip(noises, noise, strict=True):
            into.append(drawn)
    empty = np.zeros((steps, 0))
    residual, hidden, prior = (np.ascontiguousarray(np.concatenate([empty, *noise], axis=1)) for noise in noises)
    return Factors(
        np.concatenate([np.zeros(0), *inverses]),
        residual_noise=residual,
        hidden_noise=hidden,
        prior_noise=prior,
        ridge=ridge,
        freedom=freedom,
    )


def _block(
    psi: scipy.sparse.csr_array,
    visits: Floats,
    ridge: float,
    prior: float,
    steps: int,
    rng: np.random.Generator,
) -> tuple[Floats, float, Floats, Floats, Floats]:
    """Return Ω⁻¹ of one action, Σℓ over its visits, and its three kinds of noise, each of shape (steps, k)."""
    k = psi.shape[1]
    if k == 0:
        nothing = np.zeros((steps, 0))
        return np.zeros((0, 0)), 0.0, nothing, nothing, nothing
    rows = sparse_rows(psi)
    precision = np.zeros((k, k))
    add_gram(rows, visits, precision)
    precision[np.diag_indices(k)] += max(ridge, ROUNDING * precision.max())
    factor = scipy.linalg.cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    inverse = np.ascontiguousarray(scipy.linalg.lapack.dpotri(factor, lower=1)[0].T)
    mirror(inverse)
    first, second, third = (standard_normals(rng, (steps, k)).T for _ in range(3))
    noise = scipy.linalg.solve_triangular(factor, first, lower=True, trans=1, check_finite=False)
    noise = noise - ridge * (inverse @ noise)
    leverages = np.empty(len(visits))
    fill_leverages(rows, inverse, leverages)
    spread = np.zeros((k, k))
    add_gram(rows, visits * leverages, spread)
    hidden, untried = inverse @ _root_times(spread, second), inverse @ (prior * third)
    return inverse, float(visits @ leverages), noise.T, hidden.T, untried.T


def _root_times(matrix: Floats, x: Floats) -> Floats:
    """Return Bx with BBᵀ = `matrix`, by pivoted Cholesky, since it may be singular; `matrix` is overwritten."""
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, overwrite_a=1)
    product = np.empty(x.shape)
    product[pivots[:rank] - 1] = scipy.linalg.blas.dtrmm(1.0, factor[:rank, :rank], x[:rank], lower=1)
    product[pivots[rank:] - 1] = factor[rank:, :rank] @ x[:rank]
    return product


@entry_point
def mirror(matrix: Floats) -> None:
    """Copy the upper triangle to the lower one."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = matrix[j, i]


@entry_point
def fill_leverages(rows: Sparse, inverse: Floats, leverages: Floats) -> None:
    """Set h = ψᵀΩ⁻¹ψ of each row."""
    for p in range(leverages.size):
        total = 0.0
        for i in range(rows.starts[p], rows.starts[p + 1]):
            row = inverse[rows.indices[i]]
            for j in range(rows.starts[p], rows.starts[p + 1]):
                total += rows.values[i] * row[rows.indices[j]] * rows.values[j]
        leverages[p] = total


@kernel
def state_values(rule: Rule, states: Sparse, weights: Floats, left: int, values: Floats) -> None:
    """Set V = max_a v₀ + ψᵀw_a of each state, clipped to what is possible with `left` steps to go."""
    blocks = weights.shape[0]
    v0, low, high = possible(rule, left)
    per_state = (states.starts.size - 1) // (values.size - 1) if values.size > 1 else 1  # A with joint features
    for s in range(values.size - 1):
        best = -np.inf
        for row in range(s * per_state, (s + 1) * per_state):
            begin, end = states.starts[row], states.starts[row + 1]
            for b in range(blocks):
                best = max(best, picked(states.indices, states.values, begin, end, weights[b]))
        values[s] = min(max(v0 + best, low), high)


@entry_point
def sweep(
    rule: Rule, data: Data, factors: Factors, share: float, first: int, last: int, untried: Floats, weights: Floats
) -> None:
    """Plan the steps from `last - 1` back to `first` into `weights` (H, A, k), in which later steps are already set.

    `share` is p̂. Features with which an action was never taken get the weights `untried` (last − first, A, k).
    """
    actions = weights.shape[1]
    gains = np.zeros(data.arrivals.size)
    moment, mean = np.empty(data.active.size), np.empty(data.active.size)
    for h in range(last - 1, first - 1, -1):
        left = rule.horizon - h
        if left > 1:
            state_values(rule, data.following, weights[h + 1], left - 1, gains)
        else:
            gains[:] = 0.0
        gains[-1] = 0.0  # a terminal state has value 0
        gains *= rule.discount
        gains -= prior_mean(rule, left)
        multiply(data.next_moment, gains, moment)
        at = 0
        for a in range(actions):
            begin, end = data.starts[a], data.starts[a + 1]
            k = end - begin
            moment[begin:end] += data.reward_moment[begin:end]
            mean[begin:end] = np.dot(factors.inverse[at : at + k * k].reshape(k, k), moment[begin:end])
            at += k * k
        fitted = 0.0
        for i in range(mean.size):
            fitted += mean[i] * (moment[i] + factors.ridge * mean[i])
        squares = squared_targets(data.reward_squares, data.next_rewards, data.arrivals, gains)
        residuals = squared_residuals(squares, fitted)
        width = residual_width(rule, residuals, data.steps)
        hidden = hidden_width(rule, share, residuals, factors.freedom)
        weights[h] = untried[h - first]
        for a in range(actions):
            for i in range(data.starts[a], data.starts[a + 1]):
                noise = width * factors.residual_noise[h - first, i] + hidden * factors.hidden_noise[h - first, i]
                weights[h, a, data.active[i]] = mean[i] + noise + factors.prior_noise[h - first, i]


@entry_point
def linear_values(weights: Floats, features: Ints, starts: Ints, indices: Ints, values: Floats, q: Floats) -> None:
    """Add ψᵀw_a to q_a, for a state with these `indices` and `values`.

    `features` are the feature numbers of the weights; `starts` delimits the rows of joint features, and is empty for
    ψ(s).
    """
    for i in range(indices.size):
        place = np.searchsorted(features, indices[i])
        if place < features.size and features[place] == indices[i]:
            if starts.size == 0:
                for a in range(q.size):
                    q[a] += weights[a, place] * values[i]
            else:
                q[np.searchsorted(starts, i, side="right") - 1] += weights[0, place] * values[i]
