"""The expected total reward of a step while the window of its session is still open.

s_b is the reward of a step up to age b of its session, and c_b = s_b − s_{b−1}. The increment of an age is regressed on
s_{b−1} and on the features x of the step, over all steps whose sessions have completed that age:

    ĉ_b = c̄_b + Δ_b(s_{b−1} − s̄_{b−1}) + xᵀθ_b,    Δ_b = C_sc/(C_ss(1 + λ/n)),    θ_b = (Σxxᵀ + λI)⁻¹Σx e_b,

where e_b is the residual of c_b after the first two terms, and λ = 1, the weight of one step. Ages that a step has not
completed are predicted one after the other, each from the one before. The derivation is in docs/math/by-age.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from belated.agents._transitions import sums
from belated.types import Floats, Ints

#: λ, and the tolerance of the solution for θ.
RIDGE, TOLERANCE = 1.0, 1e-10


def expected(came: Floats, features: scipy.sparse.csr_array, row: Ints, kind: Ints) -> Floats:
    """Return the expected total reward of each step; NaN if it has completed no age.

    `came` has the increment of each age, NaN for ages that are not completed, shape (steps, ages). A step has the
    features of its `row`. Means are over steps of the same `kind`, 0 or 1.
    """
    total = came[:, 0].copy()
    for change in came.T[1:]:
        known = ~np.isnan(change)
        if not known.all():
            change = np.where(known, change, _predicted(total, change, known, features, row, kind))
        total += change
    return total


def _predicted(
    before: Floats,
    change: Floats,
    known: npt.NDArray[np.bool_],
    features: scipy.sparse.csr_array,
    row: Ints,
    kind: Ints,
) -> Floats:
    """Return ĉ_b of all steps, fitted to those with a known c_b."""
    if not known.any():
        return np.zeros(len(change))
    count = np.maximum(sums(kind, known, 2), 1.0)
    offset = before - (sums(kind[known], before[known], 2) / count)[kind]  # s − s̄
    mean = (sums(kind[known], change[known], 2) / count)[kind]  # c̄
    variance = offset[known] @ offset[known] * (1.0 + RIDGE / known.sum())
    slope = offset[known] @ (change[known] - mean[known]) / variance if variance > 0.0 else 0.0
    found = mean + slope * offset
    left = sums(row[known], change[known] - found[known], features.shape[0])  # Σ e of each row
    visits = sums(row, known, features.shape[0])
    guess: Floats = found + (features @ _ridge(features, visits, left))[row]
    return guess


def _ridge(features: scipy.sparse.csr_array, visits: Floats, left: Floats) -> Floats:
    """Return θ = (Σ nxxᵀ + λI)⁻¹Σ x·(sum over its visits), by conjugate gradients, which are exact for a table."""
    scale = 1.0 / (features.power(2).T @ visits + RIDGE)
    size = features.shape[1]
    gram = scipy.sparse.linalg.LinearOperator(
        (size, size), lambda theta: features.T @ (visits * (features @ theta)) + RIDGE * theta, dtype=np.float64
    )
    precondition = scipy.sparse.linalg.LinearOperator((size, size), lambda theta: scale * theta, dtype=np.float64)
    theta: Floats = scipy.sparse.linalg.cg(gram, features.T @ left, rtol=TOLERANCE, M=precondition)[0]
    return theta
