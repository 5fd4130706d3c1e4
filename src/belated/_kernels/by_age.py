"""The part shared by `LearnByAge` and the decisions' `ByAge`: predicting later ages from earlier ones.

s_b is what was observed of a play up to age b, its reward followed by its signals, and c_b = s_b − s_{b−1}. From the
covariances C of s_{b−1} and c_b given the features, over the plays that are older than b,

    Δ_b = (C_ss + λ/n diag C_ss)⁻¹ C_sc,   Σ_b = cov(c_b − Δ_bᵀs_{b−1}),
    g_B = (1, 0, …),   g_{b−1} = g_b + Δ_b g_b,   R = Σ_b g_bᵀ(c_b − Δ_bᵀs_{b−1}),

where the last equation holds for every play and for any slopes Δ: a unit of s_b adds g_b to the final reward. The
derivation is in docs/math/by-age.md. Agents call these functions compiled, decisions as plain Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belated._kernels.jit import kernel
from belated.types import Floats

#: A variance below this fraction of the mean square is considered rounding error.
NEGLIGIBLE = 1e-12
#: The variance of an age that no play has reached, relative to the usual mean square: by assumption, actions differ
#: there by a tenth of the spread of rewards.
UNREACHED = 0.01


class Chain(NamedTuple):
    """The regression of later ages on earlier ones, for B ages and k components: the reward so far, and signals."""

    slopes: Floats
    """Δ_b, the slopes of c_b (columns) in s_{b−1} (rows), shape (B, k, k)."""
    gains: Floats
    """g_b, shape (B, k)."""
    passed: Floats
    """Δ_b g_b, what a unit of s_{b−1} adds to the final reward through age b, shape (B, k)."""
    variances: Floats
    """g_bᵀΣ_b g_b, the variance that age b contributes to the reward, shape (B,)."""
    work: Floats
    """Shape (k, 2k)."""


def new_chain(ages: int, numbers: int) -> Chain:
    """Return a chain without data."""
    square = (ages, numbers, numbers)
    of_each = (ages, numbers)
    return Chain(
        np.zeros(square), np.zeros(of_each), np.zeros(of_each), np.zeros(ages), np.zeros((numbers, 2 * numbers))
    )


@kernel
def link(chain: Chain, counts: Floats, covariances: Floats, ridge: float) -> None:
    """Fill `chain` from the covariances of (s_{b−1}, c_b), shape (B, 2k, 2k), over `counts` plays of each age."""
    ages, k = chain.gains.shape
    chain.gains[ages - 1] = 0.0
    chain.gains[ages - 1, 0] = 1.0
    for b in range(ages - 1, -1, -1):
        gain, passed, cov = chain.gains[b], chain.passed[b], covariances[b]
        passed[:] = 0.0
        chain.slopes[b] = 0.0
        chain.variances[b] = 0.0
        if counts[b] > 0.0:
            if b > 0:  # s is zero before the first age
                regress(cov, ridge / counts[b], chain.slopes[b], chain.work)
            whole = left = 0.0
            for i in range(k):
                for j in range(k):
                    passed[i] += chain.slopes[b, i, j] * gain[j]
                    whole += gain[i] * cov[k + i, k + j] * gain[j]
            for i in range(k):
                for j in range(k):
                    left += passed[i] * (cov[i, j] * passed[j] - 2.0 * cov[i, k + j] * gain[j])
            left += whole
            chain.variances[b] = left if left > NEGLIGIBLE * whole else 0.0
        if b > 0:
            for i in range(k):
                chain.gains[b - 1, i] = gain[i] + passed[i]


@kernel
def regress(cov: Floats, share: float, slopes: Floats, work: Floats) -> None:
    """Solve (C_ss + share·diag C_ss)Δ = C_sc by elimination; linearly dependent components get zero slopes."""
    k = slopes.shape[0]
    for i in range(k):
        for j in range(k):
            work[i, j] = cov[i, j]
            work[i, k + j] = cov[i, k + j]
        work[i, i] *= 1.0 + share
    for i in range(k):
        pivot = work[i, i]
        if pivot <= 1e-9 * cov[i, i]:
            for j in range(2 * k):
                work[i, j] = 0.0
            continue
        for j in range(i, 2 * k):
            work[i, j] /= pivot
        for other in range(k):
            factor = work[other, i]
            if other != i and factor != 0.0:
                for j in range(i, 2 * k):
                    work[other, j] -= factor * work[i, j]
    for i in range(k):
        for j in range(k):
            slopes[i, j] = work[i, k + j]


@kernel
def noise(residual: float, squares: float, weight: float, settled: float, usual: float) -> float:
    """Return the variance of an age from Σ w e² and Σ w y², with one extra pseudo-row.

    The square of the pseudo-row is the mean square of the age, which itself includes one extra play with the usual
    square. So the more plays have passed an age without any reward, the smaller its variance.
    """
    if weight <= 0.0:
        return UNREACHED * usual
    return ((usual + squares) / (1.0 + weight) + residual) / (1.0 + max(weight - settled, 0.0))
