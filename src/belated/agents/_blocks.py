"""The transitions of a regression in a simulator as sparse matrices: φ(s, a) is ψ(s) in the block of action a.

With joint features there is one block. Only features that an action has been taken with are active.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from belated._kernels.jit import entry_point, fast_sums, inlined, kernel
from belated.agents._transitions import TERMINAL, Rows, Sparse, sums
from belated.types import Floats, Ints


class Data(NamedTuple):
    """The transitions of one regression, in the layout for the sweep; column U is the terminal state."""

    starts: Ints
    """Start of each action's features among the active ones, shape (A + 1,)."""
    active: Ints
    """Numbers of the features with which each action has been taken, ascending, shape (k₊,)."""
    reward_moment: Floats
    """Σψr, shape (k₊,)."""
    next_moment: Sparse
    """Σψ over visits followed by s', shape (k₊, U + 1)."""
    following: Sparse
    """ψ(s') of the U states that have followed."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (U + 1,)."""
    arrivals: Floats
    """How often s' was reached, shape (U + 1,)."""
    reward_squares: float
    steps: float


def make_data(
    states: Sparse, rows: Rows, actions: int, *, size: int, joint: bool
) -> tuple[Data, scipy.sparse.csr_array, Floats]:
    """Return the data of a regression, the features of its pairs (one per row), and the visits of each pair.

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
        next_moment=sparse_rows(phi.T @ followed),
        following=sparse_rows(following),
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


def sparse_rows(matrix: scipy.sparse.csr_array) -> Sparse:
    """Return a matrix in the format of the kernels."""
    rows = scipy.sparse.csr_array(matrix)
    return Sparse(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64))


def transposed(rows: Sparse, columns: int) -> Sparse:
    """Return the transpose of a matrix with this number of columns."""
    shape = (len(rows.starts) - 1, columns)
    return sparse_rows(scipy.sparse.csr_array((rows.values, rows.indices, rows.starts), shape=shape).T)


@entry_point
def add_gram(rows: Sparse, weights: Floats, gram: Floats) -> None:
    """Add Σ wψψᵀ to `gram`."""
    for p in range(weights.size):
        for i in range(rows.starts[p], rows.starts[p + 1]):
            into, share = gram[rows.indices[i]], weights[p] * rows.values[i]
            for j in range(rows.starts[p], rows.starts[p + 1]):
                into[rows.indices[j]] += share * rows.values[j]


@fast_sums
def in_order(values: Floats, begin: int, x: Floats) -> float:
    """Return Σ vᵢx over the values from `begin` on."""
    total = 0.0
    for i in range(x.size):
        total += values[begin + i] * x[i]
    return total


@inlined
def picked(indices: Ints, values: Floats, begin: int, end: int, x: Floats) -> float:
    """Return Σ vᵢx over the entries of x selected by the `indices` from `begin` to `end`.

    For few entries, scalar code is faster than vector gather instructions.
    """
    if end - begin == x.size:  # all of them, in order
        return in_order(values, begin, x)
    total = 0.0
    for i in range(begin, end):
        total += values[i] * x[indices[i]]
    return total


@kernel
def multiply(matrix: Sparse, x: Floats, product: Floats) -> None:
    """Set `product` to the matrix times x."""
    for row in range(product.size):
        begin, end = matrix.starts[row], matrix.starts[row + 1]
        product[row] = picked(matrix.indices, matrix.values, begin, end, x)


def cost(data: Data, steps: int) -> float:
    """Return the approximate number of operations of a plan of `steps` steps, in units of one sparse multiply-add.

    Products of dense matrices are cheaper per entry.
    """
    actions, k = data.starts.size - 1, np.diff(data.starts).astype(float)
    sparse = actions * data.following.indices.size + data.next_moment.indices.size
    return float(steps * (sparse + (k**2).sum() / 2) + (k**3).sum() / 8)
