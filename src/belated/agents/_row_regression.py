"""Regressions on very many sparse features: rows are stored instead of matrices, and solved by sweeps over them.

A regression has one row for each visited pair (s, a), with n visits and the mean target ȳ = r̄ + γV̄(s').
`belated._kernels.sparse_ridge` solves it for the mean ŵ and for draws from N(0, Ω⁻¹) by dual coordinate ascent, so that
no d × d matrix is ever formed. Only features that have occurred have weights; the prior draw of any other feature is a
hash of a seed and its number, and takes no memory. docs/math/sparse-planning.md has the approximation error.
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

#: Maximum number of features for which regressions are factored; with more, they are solved by sweeps over their rows.
MOST_EXACT = 2**12
#: Maximum number of distinct transitions stored in that case; beyond, a uniform sample.
MOST_ROWS = 2**15
#: A new plan is made when the number of steps has grown by this factor since the last one, at the latest: sweeps over
#: all rows cost more than learning one step.
GROWTH = 1.25
#: Sweeps end when the root mean square residual is this fraction of the noise (draws are then off by about half of
#: that, in posterior standard deviations),
TOLERANCE = 0.1
#: or after this many.
MOST_SWEEPS = 100


class RowRegression:
    """The rows of one regression. Its precision Ω = Σnφφᵀ/σ² + λI is never formed.

    Weights have a row for each feature and block; the blocks of a feature are contiguous.
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
        order = np.argsort(keys)  # independent of the order of arrival
        pairs, place, self.keys, pair = pairs[order], place[order], keys[order], np.argsort(order)[pair]
        phi = layout.psi[place]
        columns = (
            phi.indices if layout.joint else phi.indices * blocks + np.repeat(pairs % actions, np.diff(phi.indptr))
        )
        self.phi = scipy.sparse.csr_array((phi.data, columns, phi.indptr), shape=(len(pairs), k * blocks))
        """φ of each pair, one per row."""
        self.visits = sums(pair, rows.visits, len(pairs))
        ends = rows.after == TERMINAL
        nexts, after = np.unique(rows.after[~ends], return_inverse=True)
        self.pair, self.after = pair, np.full(len(ends), len(nexts))
        """For each transition, its pair and the index of its next state among the `following`, whose last is
        terminal."""
        self.after[~ends] = after
        self.following, self.count = layout.rows_of(nexts), len(nexts)
        self.steps, self.draws, self.noise, self.ridge, self.seed = steps, draws, noise, ridge, seed
        self.column_keys: Ints = (layout.features[:, np.newaxis] * blocks + np.arange(blocks)).ravel()
        self.sweeps = 0
        self.spent = 0.0
        """Number of operations so far, at about a nanosecond each."""
        self.residual = 0.0
        """The largest remaining residual, in units of the noise."""
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
        """Solve for `targets` (n, J or 1) in place, starting from `duals` (n, J) and the matching `weights` (kB, J).

        With `perturbed`, noise is added to the targets. The tolerance is relative to the noise, or to `unit`.
        """
        tolerance = TOLERANCE * (1.0 if unit is None else unit / self.noise)
        problem = self._ridge._replace(targets=targets, scale=1.0 if perturbed else 0.0)
        count, residual = solve(problem, weights, duals, tolerance, MOST_SWEEPS)
        self.sweeps += count
        self.spent += count * self.phi.nnz * (8.0 + weights.shape[1] / 2.0)
        self.residual = max(self.residual, TOLERANCE * float(residual) / tolerance)
        return weights

    def prior(self, width: float, *, members: int | None = None, seed: int | None = None) -> Singles:
        """Return prior draws of this width, shape (kB, J); J is the number of draws of all steps, or `members`."""
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
        """Return zero duals for this many members."""
        return np.zeros((len(self.keys), members), np.float32)

    def mean(self, targets: Floats, duals: Singles, unit: float | None = None) -> Singles:
        """Return ŵ, shape (kB, 1), warm-started from `duals` (n, 1), which are updated in place."""
        weights = np.zeros((self.column_keys.size, 1), np.float32)
        rebuild(self._ridge, weights.copy(), weights, duals)
        return self.solved(weights, duals, targets[:, np.newaxis].astype(np.float32), unit=unit)

    @cached_property
    def active(self) -> Ints:
        """The columns with a nonzero entry."""
        return np.unique(self.phi.indices).astype(np.int64)

    @cached_property
    def compact(self) -> scipy.sparse.csr_array:
        """φ restricted to the active columns."""
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
        """λ_max(Ω), by Lanczos from a vector with a component along every column."""
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
    """The states that have arrived, over the features that have occurred in them."""

    features: Ints
    """Numbers of these features, ascending, shape (k,)."""
    psi: Any
    """ψ(s), one row per state, or φ(s, a), A rows per state, as a sparse matrix (rows, k)."""
    marks: npt.NDArray[np.uint64]
    """A number for each row of ψ, a hash of its features."""
    actions: int
    joint: bool

    @property
    def blocks(self) -> int:
        return 1 if self.joint else self.actions

    def rows_of(self, states: Ints) -> Sparse:
        """Return the rows of some states: one per state, or A with joint features."""
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
    """Map the last plan's `duals` (n, steps) from rows `old` to `keys`, both ascending; return which are new, too."""
    found, new = np.zeros((len(keys), duals.shape[1]), np.float32), np.ones(len(keys), np.bool_)
    if len(old):
        where = np.minimum(np.searchsorted(old, keys), len(old) - 1)
        new = old[where] != keys
        found[~new] = duals[where[~new]]
    return found, new


class RowStep(NamedTuple):
    """The inputs for drawing the weights of one step, in addition to its regression."""

    place: int
    """Its number among the steps of the regression."""
    targets: Floats
    """ȳ of each row."""
    duals: Singles
    """Starting duals of the mean, shape (n, 1); updated in place to those of the solution."""
    last: Callable[[], Singles]
    """Returns the weights of the same step in the last plan, shape (kB, M)."""
    above: Singles
    """The weights of the next step in this plan; zero for the last step."""


@entry_point
def best_values(states: Sparse, weights: Singles, best: Floats) -> None:
    """Set `best` to the maximum of φᵀw over actions and draws in each state, from weights (k, B·M) of one step."""
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
    """Return ŵ without a draw."""
    return regression.mean(step.targets, step.duals), 0.0
