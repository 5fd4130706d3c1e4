"""Regressions on very many sparse features: rows are kept instead of matrices, and solved by sweeps over them.

A regression is its rows, one for each pair (s, a) that was visited, with n visits and the mean target
ȳ = r̄ + γV̄(s'). `belated._kernels.sparse_ridge` solves it for the mean ŵ and for draws from N(0, Ω⁻¹) by dual
coordinate ascent, so that no d × d matrix is ever made. Only features that have been seen have weights; the prior draw
of another one is a hash of a seed and its number, and takes no room. docs/math/sparse-planning.md says how far from
exact that is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from belated._kernels.jit import entry_point
from belated._kernels.sparse_ridge import Problem as Ridge
from belated._kernels.sparse_ridge import Singles, fill_prior, rebuild, solve
from belated.agents._transitions import TERMINAL, Rows, Sparse, mixed, sums
from belated.types import Floats, Ints

#: A state may have so many features before regressions are solved by sweeps over their rows instead of factored.
MOST_EXACT = 2**12
#: Distinct transitions that are then kept at most; beyond, a uniform sample of all.
MOST_ROWS = 2**15
#: A plan is made when the steps that have arrived are so many times those at the last one, if not before: sweeps over
#: all rows are dearer than a step that has arrived.
GROWTH = 1.25
#: Sweeps end when the root mean square of the residuals is this part of the noise: draws are off by half as much of a
#: posterior standard deviation, about,
TOLERANCE = 0.1
#: and after so many in any case.
MOST_SWEEPS = 100


class RowRegression:
    """The rows of one regression, Ω = Σnφφᵀ/σ² + λI, which is never formed.

    Weights have a row for each feature and block, those of all actions of a feature one after the other.
    """

    def __init__(
        self,
        layout: Layout,
        rows: Rows,
        *,
        slot: int,
        steps: int,
        draws: int,
        noise: float,
        ridge: float,
        seed: int,
    ) -> None:
        actions, blocks, k = layout.actions, layout.blocks, layout.features.size
        pairs, pair = np.unique(rows.state * actions + rows.action, return_inverse=True)
        place = pairs if layout.joint else pairs // actions
        salt = mixed((pairs % actions + actions * slot).astype(np.uint64))
        keys = mixed(layout.marks[place] ^ salt).view(np.int64)
        order = np.argsort(keys)  # whatever the order of arrival, the same
        pairs, place, self.keys, pair = pairs[order], place[order], keys[order], np.argsort(order)[pair]
        phi = layout.psi[place]
        columns = (
            phi.indices if layout.joint else phi.indices * blocks + np.repeat(pairs % actions, np.diff(phi.indptr))
        )
        self.phi = scipy.sparse.csr_array((phi.data, columns, phi.indptr), shape=(len(pairs), k * blocks))
        """φ of each pair, one a row."""
        self.visits = sums(pair, rows.visits, len(pairs))
        ends = rows.after == TERMINAL
        nexts, after = np.unique(rows.after[~ends], return_inverse=True)
        self.pair, self.after = pair, np.full(len(ends), len(nexts))
        """Of each transition, its pair and its place among the `following` states, which the terminal one ends."""
        self.after[~ends] = after
        self.following, self.count = layout.rows_of(nexts), len(nexts)
        self.steps, self.draws, self.noise, self.ridge, self.seed = steps, draws, noise, ridge, seed
        self.column_keys: Ints = (layout.features[:, np.newaxis] * blocks + np.arange(blocks)).ravel()
        self.sweeps = 0
        self.spent = 0.0
        """Operations so far, of about a nanosecond each."""
        self.residual = 0.0
        """The largest residual that was left, in units of the noise."""
        self._ridge = Ridge(
            begins=self.phi.indptr[:-1].astype(np.int64),
            ends=self.phi.indptr[1:].astype(np.int64),
            places=columns.astype(np.int32),
            values=phi.data.astype(np.float32),
            targets=np.zeros((len(pairs), 1), np.float32),
            weights=self.visits.astype(np.float32),
            keys=self.keys,
            relative=np.ones(k * blocks, np.float32),
            sigma=float(noise),
            kappa=float(noise**2 * ridge),
            scale=0.0,
            seed=~seed,
        )

    def pair_sums(self, values: Floats) -> Floats:
        """Return the sums over the transitions of each pair."""
        return sums(self.pair, values, len(self.keys))

    def solved(
        self, weights: Singles, duals: Singles, targets: Singles, *, perturbed: bool = False, unit: float | None = None
    ) -> Singles:
        """Solve for `targets` (n, J or 1), in place: `weights` (kB, J) are those of the prior and the `duals` (n, J).

        With `perturbed` targets have noise. The tolerance is a part of the noise, or of another `unit`.
        """
        tolerance = TOLERANCE * (1.0 if unit is None else unit / self.noise)
        problem = self._ridge._replace(targets=targets, scale=1.0 if perturbed else 0.0)
        count, residual = solve(problem, weights, duals, tolerance, MOST_SWEEPS)
        self.sweeps += count
        self.spent += count * self.phi.nnz * (8.0 + weights.shape[1] / 2.0)
        self.residual = max(self.residual, TOLERANCE * float(residual) / tolerance)
        return weights

    def prior(self, width: float, *, members: int | None = None, seed: int | None = None) -> Singles:
        """Return prior draws of this width, shape (kB, J), as many as all steps have unless `members` says."""
        weights = np.empty((self.column_keys.size, members or self.steps * self.draws), np.float32)
        fill_prior(weights, self.column_keys, self._ridge.relative, width, self.seed if seed is None else seed)
        return weights

    @cached_property
    def deviations(self) -> Singles:
        """Draws from N(0, Ω⁻¹) for all steps and draws, shape (kB, steps·M)."""
        weights = self.prior(self.ridge**-0.5)
        return self.solved(weights, self.zeros(weights.shape[1]), self._ridge.targets, perturbed=True)

    def deviations_of(self, place: int) -> Singles:
        """Return the draws of one step, shape (kB, M)."""
        return self.deviations[:, place * self.draws : (place + 1) * self.draws]

    def prior_of(self, place: int, width: float) -> Singles:
        """Return prior draws of this width for one step, shape (kB, M)."""
        return np.float32(width) * self._unit_prior[:, place * self.draws : (place + 1) * self.draws]

    @cached_property
    def _unit_prior(self) -> Singles:
        return self.prior(1.0)

    def zeros(self, members: int) -> Singles:
        """Return duals of so many members, to begin with."""
        return np.zeros((len(self.keys), members), np.float32)

    def mean(self, targets: Floats, duals: Singles, unit: float | None = None) -> Singles:
        """Return ŵ, shape (kB, 1), from warm `duals` (n, 1), which are changed to those of the solution."""
        weights = np.zeros((self.column_keys.size, 1), np.float32)
        rebuild(self._ridge, weights.copy(), weights, duals)
        return self.solved(weights, duals, targets[:, np.newaxis].astype(np.float32), unit=unit)

    @cached_property
    def active(self) -> Ints:
        """The columns that some row has."""
        return np.unique(self.phi.indices).astype(np.int64)

    @cached_property
    def compact(self) -> scipy.sparse.csr_array:
        """φ over the active columns alone."""
        return scipy.sparse.csr_array(self.phi[:, self.active])

    @property
    def shares(self) -> Floats:
        """n/σ² of each row."""
        return self.visits / self.noise**2

    def moment(self, targets: Floats) -> Floats:
        """Return Φy/σ² over the active columns."""
        return np.asarray(self.compact.T @ (self.shares * targets))

    def multiply(self, w: Floats) -> Floats:
        """Return Ωw over the active columns."""
        self.spent += 4.0 * self.phi.nnz * (w.size // max(self.active.size, 1))
        return np.asarray(self.compact.T @ ((self.compact @ w).T * self.shares).T) + self.ridge * w

    @cached_property
    def largest_eigenvalue(self) -> float:
        """λ_max(Ω), by Lanczos from a vector that has a share of every column."""
        size = self.active.size
        if size < 3:
            matrix = (
                (self.compact.T @ (self.compact * self.shares[:, np.newaxis])).toarray() if size else np.zeros((1, 1))
            )
            return float(np.linalg.eigvalsh(matrix)[-1]) + self.ridge
        product = scipy.sparse.linalg.LinearOperator((size, size), matvec=self.multiply, dtype=np.float64)
        start = 1.0 + np.modf(np.arange(size) * 0.6180339887498949)[0]
        return float(scipy.sparse.linalg.eigsh(product, k=1, v0=start, tol=1e-6, return_eigenvectors=False)[0])


class Layout(NamedTuple):
    """The states that have arrived, over the features that they have had."""

    features: Ints
    """Numbers of these features, ascending, shape (k,)."""
    psi: Any
    """ψ(s), one a row, or φ(s, a), A rows for each state, as a sparse matrix (rows, k)."""
    marks: npt.NDArray[np.uint64]
    """A number for each row of ψ, a hash of its features."""
    actions: int
    joint: bool

    @property
    def blocks(self) -> int:
        return 1 if self.joint else self.actions

    def rows_of(self, states: Ints) -> Sparse:
        """Return the rows of some states: one for each, or with joint features A."""
        if self.joint:
            states = (states[:, np.newaxis] * self.actions + np.arange(self.actions)).ravel()
        found = self.psi[states]
        return Sparse(found.indptr.astype(np.int64), found.indices.astype(np.int64), found.data)


def make_layout(states: Sparse, actions: int, *, joint: bool) -> Layout:
    """Return the layout of all states that have arrived."""
    features, compact = np.unique(states.indices, return_inverse=True)
    entries = mixed(states.indices.astype(np.uint64) ^ mixed(states.values.view(np.uint64)))
    sums_before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    psi = scipy.sparse.csr_array(
        (states.values, compact, states.starts), shape=(len(states.starts) - 1, max(features.size, 1))
    )
    marks = mixed(sums_before[states.starts[1:]] - sums_before[states.starts[:-1]])
    return Layout(features, psi, marks, actions, joint)


def warm_duals(old: Ints, duals: Singles, keys: Ints) -> tuple[Singles, npt.NDArray[np.bool_]]:
    """Return the `duals` (n, steps) of the last plan, whose rows have the keys `old`, for rows with `keys`, and which
    rows are new. Keys are ascending.
    """
    found, new = np.zeros((len(keys), duals.shape[1]), np.float32), np.ones(len(keys), np.bool_)
    if len(old):
        where = np.minimum(np.searchsorted(old, keys), len(old) - 1)
        new = old[where] != keys
        found[~new] = duals[where[~new]]
    return found, new


class RowStep(NamedTuple):
    """What the weights of one step are drawn from, beside its regression."""

    place: int
    """Its number among the steps of the regression."""
    targets: Floats
    """ȳ of each row."""
    duals: Singles
    """Those that the mean starts from, shape (n, 1); they become those of the solution."""
    last: Callable[[], Singles]
    """Returns the weights of the same step in the last plan, shape (kB, M)."""
    above: Singles
    """The weights of the next step in this plan, zero for the last one."""


@entry_point
def best_values(states: Sparse, weights: Singles, best: Floats) -> None:
    """Set the largest φᵀw of each state over its actions and draws, from weights (k, B·M) of one step."""
    width, count = weights.shape[1], best.size
    per_state = (states.starts.size - 1) // max(count, 1)  # A with joint features, else 1
    totals = np.empty(width)
    for s in range(count):
        best[s] = -np.inf
        for row in range(s * per_state, (s + 1) * per_state):
            totals[:] = 0.0
            for i in range(states.starts[row], states.starts[row + 1]):
                w, value = weights[states.indices[i]], states.values[i]
                for j in range(width):
                    totals[j] += value * w[j]
            for j in range(width):
                best[s] = max(best[s], totals[j])


def row_mean(regression: RowRegression, step: RowStep, rng: np.random.Generator) -> tuple[Singles, float]:
    """Return ŵ, of which nothing is drawn."""
    return regression.mean(step.targets, step.duals), 0.0
