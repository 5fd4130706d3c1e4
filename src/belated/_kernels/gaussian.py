"""Gaussian posterior of a ridge regression, kept as a triangular factor of its precision.

With features φ, targets y, noise σ and ridge λ the posterior of the weights is

    Ω = ΦΦᵀ/σ² + λI,   ŵ = Ω⁻¹Φy/σ²,   w ~ N(ŵ, ν²Ω⁻¹).

The kernels keep the upper triangular U with Ω = UᵀU. A new observation changes Ω by rank one and U in
O(d²), and a draw is two triangular solves, so nothing here ever costs O(d³). Rows of U are contiguous and
every inner loop runs over a slice of one, which is what lets the compiler use vector instructions.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.jit import fast_sums, inlined_kernel, kernel, layer
from belated._kernels.normals import standard_normal
from belated._util.validate import array, check_generator, integer, real
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
    """Replace U by the factor of UᵀU + xxᵀ; `x` is used up.

    One Givens rotation a row mixes row k of U with x so that x becomes zero. Its cosine and sine are known beforehand:
    with p = U⁻ᵀx and t_k = 1 + p₁² + … + p_k² the cosine is √(t_{k-1}/t_k) and the sine p_k/√t_k, if what the forward
    substitution leaves of x stands for √t_{k-1} times the x of the rotations. So no root waits for the row above.
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


@inlined_kernel
def solve_transposed(factor: Floats, b: Floats) -> None:
    """Replace b by U⁻ᵀb (forward substitution), two rows of U at a time.

    A reciprocal of the diagonal, unlike a division by it, does not wait for the row before.
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


@layer
def draw_many(factor: Floats, half_mean: Floats, scale: float, rng: np.random.Generator, weights: Floats) -> None:
    """Make every row of `weights` (M, d) such a draw: the numbers of the first row come first."""
    count = weights.shape[0]
    for m in range(count):
        row = weights[m]
        for i in range(row.size):
            row[i] = half_mean[i] + scale * standard_normal(rng)
    for m in range(0, count - 1, 2):
        solve_two(factor, weights[m], weights[m + 1])
    if count % 2 == 1:
        solve(factor, weights[count - 1])


class GaussianPosterior:
    """Bayesian linear regression that learns one observation at a time, in any order.

    Parameters
    ----------
    dimension
        Number of weights d.
    ridge
        Prior precision λ: the prior of the weights is N(0, I/λ).
    noise
        Standard deviation σ of the targets.

    Examples
    --------
    >>> posterior = GaussianPosterior(2, ridge=1.0, noise=0.5)
    >>> posterior.update([1.0, 0.0], 2.0)
    >>> posterior
    GaussianPosterior(observations=1, mean=[1.6, 0], sd=[0.447, 1])
    """

    def __init__(self, dimension: int, *, ridge: float = 1.0, noise: float = 1.0) -> None:
        self.dimension = integer("dimension", dimension, at_least=1)
        self.ridge = real("ridge", ridge, above=0)
        self.noise = real("noise", noise, above=0)
        self.observations = 0
        self._factor = np.eye(self.dimension) * np.sqrt(self.ridge)
        self._moment = np.zeros(self.dimension)

    def update(self, features: Floats | list[float], target: float) -> None:
        """Learn that `features` gave `target`."""
        x = array("features", features, (self.dimension,)) / self.noise
        y = real("target", target) / self.noise
        self._moment += x * y  # Φy/σ²
        rank_one_update(self._factor, x)  # Ω ← Ω + φφᵀ/σ²
        self.observations += 1

    def mean(self) -> Floats:
        """Return ŵ."""
        weights = self._moment.copy()
        solve_transposed(self._factor, weights)
        solve(self._factor, weights)
        return weights

    def precision(self) -> Floats:
        """Return Ω."""
        precision: Floats = self._factor.T @ self._factor
        return precision

    def covariance(self) -> Floats:
        """Return Ω⁻¹."""
        rows = np.eye(self.dimension)
        for row in rows:
            solve_transposed(self._factor, row)
            solve(self._factor, row)
        return rows

    def draw(self, rng: np.random.Generator, *, scale: float = 1.0) -> Floats:
        """Return one draw from N(ŵ, scale²·Ω⁻¹)."""
        check_generator("rng", rng)
        half_mean = self._moment.copy()
        solve_transposed(self._factor, half_mean)
        weights = np.empty(self.dimension)
        draw(self._factor, half_mean, real("scale", scale, at_least=0), rng, weights)
        return weights

    def __repr__(self) -> str:
        """Show the marginal mean and standard deviation of each weight."""

        def short(values: Floats) -> str:
            head = ", ".join(f"{v:.3g}" for v in values[:6])
            return f"[{head}, ...]" if values.size > 6 else f"[{head}]"

        spread = np.sqrt(np.diag(self.covariance()))
        return f"GaussianPosterior(observations={self.observations}, mean={short(self.mean())}, sd={short(spread)})"
