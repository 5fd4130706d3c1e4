"""Gaussian posterior of a ridge regression, stored as a triangular factor of its precision.

With features φ, targets y, noise σ and ridge λ the posterior of the weights is

    Ω = ΦΦᵀ/σ² + λI,   ŵ = Ω⁻¹Φy/σ²,   w ~ N(ŵ, ν²Ω⁻¹).

The kernels keep the upper triangular U with Ω = UᵀU. A new observation changes Ω by rank one and U in
O(d²), and a draw is two triangular solves; only a new λ costs O(d³). Rows of U are contiguous and
every inner loop runs over a slice of one, so that the compiler can use vector instructions.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.jit import fast_sums, inlined, kernel
from belated._kernels.normals import standard_normal
from belated.types import Floats


@fast_sums
def dot(a: Floats, b: Floats) -> float:
    """Return Σ aᵢbᵢ."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@fast_sums
def rank_one_update(factor: Floats, x: Floats) -> None:
    """Replace U by the factor of UᵀU + xxᵀ; `x` is overwritten.

    One Givens rotation per row combines row k of U with x so that x becomes zero. Its cosine and sine are known in
    advance: with p = U⁻ᵀx and t_k = 1 + p₁² + … + p_k² the cosine is √(t_{k-1}/t_k) and the sine p_k/√t_k, where the
    remainder of x in forward substitution is √t_{k-1} times the x of the rotations. So no square root depends on the
    row above.
    """
    total, root, inverse = 1.0, 1.0, 1.0  # t, √t and 1/√t
    for k in range(x.size):
        if x[k] == 0.0:  # nothing to rotate: sparse and one-hot features skip most rows
            continue
        p = x[k] / factor[k, k]
        total += p * p
        grown = np.sqrt(total)
        shrunk = 1.0 / grown
        cosine, share = root * shrunk, p * shrunk * inverse
        factor[k, k] *= grown * inverse
        row, rest = factor[k, k + 1 :], x[k + 1 :]
        for j in range(rest.size):
            above, left = row[j], rest[j]
            row[j] = cosine * above + share * left
            rest[j] = left - p * above
        root, inverse = grown, shrunk


@kernel
def add_to_diagonal(factor: Floats, change: float, work: Floats) -> None:
    """Replace U by the factor of UᵀU + cI, which has to be positive definite; `work` has the shape of U."""
    d = factor.shape[0]
    work[:] = 0.0
    for k in range(d):
        for i in range(k, d):
            for j in range(i, d):
                work[i, j] += factor[k, i] * factor[k, j]
    for k in range(d):
        work[k, k] += change
        for i in range(k):
            for j in range(k, d):
                work[k, j] -= work[i, k] * work[i, j]
        inverse = 1.0 / np.sqrt(work[k, k])
        for j in range(k, d):
            work[k, j] *= inverse
    factor[:] = work


@kernel
def solve_transposed(factor: Floats, b: Floats) -> None:
    """Replace b by U⁻ᵀb (forward substitution), two rows of U at a time.

    A reciprocal of the diagonal, unlike a division by it, does not depend on the previous row.
    """
    paired = b.size - b.size % 2
    for k in range(0, paired, 2):
        inverse, inverse_below = 1.0 / factor[k, k], 1.0 / factor[k + 1, k + 1]
        first = b[k] * inverse
        second = (b[k + 1] - first * factor[k, k + 1]) * inverse_below
        b[k], b[k + 1] = first, second
        row, below, rest = factor[k, k + 2 :], factor[k + 1, k + 2 :], b[k + 2 :]
        for j in range(rest.size):
            rest[j] -= first * row[j] + second * below[j]
    if paired < b.size:
        b[paired] /= factor[paired, paired]


@fast_sums
def solve(factor: Floats, v: Floats) -> None:
    """Replace v by U⁻¹v (back substitution), two rows of U at a time."""
    for k in range(v.size - 1, 0, -2):
        inverse, inverse_above, between = 1.0 / factor[k, k], 1.0 / factor[k - 1, k - 1], factor[k - 1, k]
        row, above, known = factor[k, k + 1 :], factor[k - 1, k + 1 :], v[k + 1 :]
        left, left_above = v[k], v[k - 1]
        for j in range(known.size):
            left -= row[j] * known[j]
            left_above -= above[j] * known[j]
        left *= inverse
        v[k], v[k - 1] = left, (left_above - between * left) * inverse_above
    if v.size % 2 == 1:
        v[0] = (v[0] - dot(factor[0, 1:], v[1:])) / factor[0, 0]


@fast_sums
def solve_two(factor: Floats, v: Floats, w: Floats) -> None:
    """Replace v by U⁻¹v and w by U⁻¹w in one pass over U, two of its rows at a time."""
    for k in range(v.size - 1, 0, -2):
        inverse, inverse_above, between = 1.0 / factor[k, k], 1.0 / factor[k - 1, k - 1], factor[k - 1, k]
        row, above, known, other = factor[k, k + 1 :], factor[k - 1, k + 1 :], v[k + 1 :], w[k + 1 :]
        left, left_above, right, right_above = v[k], v[k - 1], w[k], w[k - 1]
        for j in range(known.size):
            left -= row[j] * known[j]
            left_above -= above[j] * known[j]
            right -= row[j] * other[j]
            right_above -= above[j] * other[j]
        left *= inverse
        right *= inverse
        v[k], v[k - 1] = left, (left_above - between * left) * inverse_above
        w[k], w[k - 1] = right, (right_above - between * right) * inverse_above
    if v.size % 2 == 1:
        v[0] = (v[0] - dot(factor[0, 1:], v[1:])) / factor[0, 0]
        w[0] = (w[0] - dot(factor[0, 1:], w[1:])) / factor[0, 0]


@kernel
def draw(factor: Floats, half_mean: Floats, scale: float, rng: np.random.Generator, weights: Floats) -> None:
    """Draw w ~ N(ŵ, ν²Ω⁻¹) as U⁻¹(u + νz), where `half_mean` is u = U⁻ᵀΦy/σ², so that ŵ = U⁻¹u."""
    for i in range(weights.size):
        weights[i] = half_mean[i] + scale * standard_normal(rng)
    solve(factor, weights)


@inlined
def draw_many(factor: Floats, half_mean: Floats, scale: float, rng: np.random.Generator, weights: Floats) -> None:
    """Make every row of `weights` (M, d) such a draw, drawing the random numbers row by row."""
    count = weights.shape[0]
    for m in range(count):
        row = weights[m]
        for i in range(row.size):
            row[i] = half_mean[i] + scale * standard_normal(rng)
    for m in range(0, count - 1, 2):
        solve_two(factor, weights[m], weights[m + 1])
    if count % 2 == 1:
        solve(factor, weights[count - 1])
