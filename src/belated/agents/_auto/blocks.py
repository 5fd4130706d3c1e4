"""The rule on sparse features: φ(s, a) is ψ(s) in the block of action a, so Ω has a block for each action.

Only features that an action has been taken with are factored. A step of the sweep costs one product with Ω⁻¹ for each
action and one pass over the transitions and the states that followed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from belated._kernels.jit import entry_point, fast_sums, kernel
from belated._kernels.normals import standard_normals
from belated.agents._auto.rule import Rule, clipped, residual_width, squared_targets
from belated.agents._transitions import TERMINAL, Rows, Sparse, sums
from belated.types import Floats, Ints

#: The ridge is at least this part of the largest entry of Ω, lest rounding make it indefinite.
ROUNDING = 1e-12


class Data(NamedTuple):
    """The transitions of one regression, laid out for the sweep; column U stands for the terminal state."""

    starts: Ints
    """Where the features of each action begin among the features that are active, shape (A + 1,)."""
    active: Ints
    """Numbers of the features each action has been taken with, ascending, shape (k₊,)."""
    reward_moment: Floats
    """Σψr, shape (k₊,)."""
    next_moment: Sparse
    """Σψ over visits that went on to s', shape (k₊, U + 1)."""
    following: Sparse
    """ψ(s') of the U states that have followed."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (U + 1,)."""
    arrivals: Floats
    """How often s' was reached, shape (U + 1,)."""
    reward_squares: float
    steps: float


class Factors(NamedTuple):
    """Ω⁻¹ of each action, one after the other, and the draws of every step to be planned."""

    inverse: Floats
    residual_noise: Floats
    """(I − λΩ⁻¹)Ω^{-½}z₁, shape (steps, k₊)."""
    other_noise: Floats
    """σ₀Ω⁻¹D^{½}z₂ + τλΩ⁻¹z₃, shape (steps, k₊)."""
    ridge: float
    """λ."""


def make_data(
    states: Sparse, rows: Rows, actions: int, *, size: int, joint: bool
) -> tuple[Data, scipy.sparse.csr_array, Floats]:
    """Return the data of a regression, the features of its pairs (one a row), and how often each was visited.

    With ψ(s), feature i in the block of action a is column a·k + i; with joint features there is one block.
    """
    psi = scipy.sparse.csr_array((states.values, states.indices, states.starts), shape=(len(states.starts) - 1, size))
    pairs, pair = np.unique(rows.state * actions + rows.action, return_inverse=True)
    phi = psi[pairs] if joint else _stacked(psi[pairs // actions], pairs % actions, size, actions)
    columns, compact = np.unique(phi.indices, return_inverse=True)
    phi = scipy.sparse.csr_array((phi.data, compact, phi.indptr), shape=(len(pairs), len(columns)))
    ends = rows.after == TERMINAL
    nexts, after = np.unique(rows.after[~ends], return_inverse=True)
    column = np.full(len(ends), len(nexts))
    column[~ends] = after
    shape = (len(pairs), len(nexts) + 1)
    followed = scipy.sparse.csr_array((rows.visits, (pair, column)), shape=shape)
    following = psi[(nexts[:, np.newaxis] * actions + np.arange(actions)).ravel()] if joint else psi[nexts]
    data = Data(
        starts=np.searchsorted(columns, np.arange(2 if joint else actions + 1) * size),
        active=columns % max(size, 1),
        reward_moment=phi.T @ sums(pair, rows.rewards, len(pairs)),
        next_moment=_sparse(phi.T @ followed),
        following=_sparse(following),
        next_rewards=sums(column, rows.rewards, len(nexts) + 1),
        arrivals=sums(column, rows.visits, len(nexts) + 1),
        reward_squares=float(rows.squares.sum()),
        steps=float(rows.visits.sum()),
    )
    return data, phi, sums(pair, rows.visits, len(pairs))


def _stacked(psi: scipy.sparse.csr_array, action: Ints, size: int, actions: int) -> scipy.sparse.csr_array:
    """Return φ = ψ ⊗ e_a of each row."""
    shift = np.repeat(action * size, np.diff(psi.indptr))
    return scipy.sparse.csr_array((psi.data, psi.indices + shift, psi.indptr), shape=(len(action), size * actions))


def _sparse(matrix: scipy.sparse.csr_array) -> Sparse:
    rows = scipy.sparse.csr_array(matrix)
    return Sparse(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64))


def make_factors(
    rule: Rule,
    data: Data,
    phi: scipy.sparse.csr_array,
    visits: Floats,
    norm: float,
    hidden: float,
    steps: int,
    rng: np.random.Generator,
) -> Factors:
    """Factor Ω of each action, and draw for `steps` steps; `norm` is the largest |ψ| and `hidden` is σ₀."""
    ridge = rule.ridge * norm**2
    inverses: list[Floats] = []
    noises: tuple[list[Floats], list[Floats]] = ([], [])
    by_column = phi.tocsc()
    for first, last in zip(data.starts[:-1], data.starts[1:], strict=True):
        block = by_column[:, first:last].tocsr()
        block, counts = block[np.diff(block.indptr) > 0], visits[np.diff(block.indptr) > 0]
        inverse, *noise = _block(block, counts, ridge, (hidden, rule.prior * ridge / norm), steps, rng)
        inverses.append(inverse.ravel())
        for into, drawn in zip(noises, noise, strict=True):
            into.append(drawn)
    empty = np.zeros((steps, 0))
    return Factors(
        np.concatenate([np.zeros(0), *inverses]),
        np.ascontiguousarray(np.concatenate([empty, *noises[0]], axis=1)),
        np.ascontiguousarray(np.concatenate([empty, *noises[1]], axis=1)),
        ridge,
    )


def _block(
    psi: scipy.sparse.csr_array,
    visits: Floats,
    ridge: float,
    widths: tuple[float, float],
    steps: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Return Ω⁻¹ of one action and its two kinds of noise, each of shape (steps, k)."""
    k = psi.shape[1]
    if k == 0:
        return np.zeros((0, 0)), np.zeros((steps, 0)), np.zeros((steps, 0))
    rows = _sparse(psi)
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
    other = inverse @ (widths[0] * _root_times(spread, second) + widths[1] * third)
    return inverse, noise.T, other.T


def _root_times(matrix: Floats, x: Floats) -> Floats:
    """Return Bx with BBᵀ = `matrix`, which need not have full rank: a Cholesky factor with pivots; `matrix` is lost."""
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, overwrite_a=1)
    product = np.empty(x.shape)
    product[pivots[:rank] - 1] = scipy.linalg.blas.dtrmm(1.0, factor[:rank, :rank], x[:rank], lower=1)
    product[pivots[rank:] - 1] = factor[rank:, :rank] @ x[:rank]
    return product


@entry_point
def mirror(matrix: Floats) -> None:
    """Copy what is above the diagonal to below it."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = matrix[j, i]


@entry_point
def add_gram(rows: Sparse, weights: Floats, gram: Floats) -> None:
    """Add Σ wψψᵀ to `gram`."""
    for p in range(weights.size):
        for i in range(rows.starts[p], rows.starts[p + 1]):
            into, share = gram[rows.indices[i]], weights[p] * rows.values[i]
            for j in range(rows.starts[p], rows.starts[p + 1]):
                into[rows.indices[j]] += share * rows.values[j]


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


@fast_sums
def picked(indices: Ints, values: Floats, x: Floats) -> float:
    """Return Σ vᵢx over the entries of x with these `indices`."""
    total = 0.0
    for i in range(indices.size):
        total += values[i] * x[indices[i]]
    return total


@kernel
def multiply(matrix: Sparse, x: Floats, product: Floats) -> None:
    """Set `product` to the matrix times x."""
    for row in range(product.size):
        begin, end = matrix.starts[row], matrix.starts[row + 1]
        product[row] = picked(matrix.indices[begin:end], matrix.values[begin:end], x)


@kernel
def state_values(rule: Rule, states: Sparse, weights: Floats, left: int, values: Floats) -> None:
    """Set V = max_a v₀ + ψᵀw_a of each state, within what is possible with `left` steps to go."""
    blocks = weights.shape[0]
    per_state = (states.starts.size - 1) // (values.size - 1) if values.size > 1 else 1  # A with joint features
    for s in range(values.size - 1):
        best = -np.inf
        for row in range(s * per_state, (s + 1) * per_state):
            begin, end = states.starts[row], states.starts[row + 1]
            indices, entries = states.indices[begin:end], states.values[begin:end]
            for b in range(blocks):
                best = max(best, picked(indices, entries, weights[b]))
        values[s] = clipped(rule, best, left)


@entry_point
def sweep(
    rule: Rule, data: Data, factors: Factors, first: int, last: int, prior_noise: Floats, weights: Floats
) -> None:
    """Plan the steps from `last - 1` back to `first` into `weights` (H, A, k), of which the later steps are known.

    `weights` of features that an action was never taken with are `prior_noise` (last − first, A, k).
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
        gains[-1] = 0.0  # a terminal state is worth nothing
        gains -= rule.mean * left
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
        width = residual_width(rule, squares, fitted, data.steps)
        weights[h] = prior_noise[h - first]
        for a in range(actions):
            for i in range(data.starts[a], data.starts[a + 1]):
                noise = width * factors.residual_noise[h - first, i] + factors.other_noise[h - first, i]
                weights[h, a, data.active[i]] = mean[i] + noise


@entry_point
def best_action(weights: Floats, features: Ints, starts: Ints, indices: Ints, values: Floats, q: Floats) -> int:
    """Return the action with the largest q_a = ψᵀw_a of a state with these `indices` and `values`, −1 if all are equal.

    `features` are the numbers of the weights; `starts` tells the rows of joint features, and is empty for ψ(s).
    """
    q[:] = 0.0
    for i in range(indices.size):
        place = np.searchsorted(features, indices[i])
        if place < features.size and features[place] == indices[i]:
            if starts.size == 0:
                for a in range(q.size):
                    q[a] += weights[a, place] * values[i]
            else:
                q[np.searchsorted(starts, i, side="right") - 1] += weights[0, place] * values[i]
    best, differ = 0, False
    for a in range(1, q.size):
        differ = differ or q[a] != q[0]
        if q[a] > q[best]:
            best = a
    return best if differ else -1


def cost(data: Data, steps: int) -> float:
    """Return about how many operations a plan of so many `steps` takes, in units of a step through a sparse matrix.

    Products of dense matrices are cheaper by the entry.
    """
    actions, k = data.starts.size - 1, np.diff(data.starts).astype(float)
    sparse = actions * data.following.indices.size + data.next_moment.indices.size
    return float(steps * (sparse + (k**2).sum() / 2) + (k**3).sum() / 8)
