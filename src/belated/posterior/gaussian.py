"""Gaussian posterior of a ridge regression, kept as a triangular factor of its precision.

With features φ, targets y, noise σ and ridge λ the posterior of the weights is

    Ω = ΦΦᵀ/σ² + λI,   ŵ = Ω⁻¹Φy/σ²,   w ~ N(ŵ, ν²Ω⁻¹).

The kernels keep the upper triangular U with Ω = UᵀU. A new observation changes Ω by rank one and U in
O(d²), and a draw is two triangular solves, so nothing here ever costs O(d³). Rows of U are contiguous and
every inner loop runs over a slice of one, which is what lets the compiler use vector instructions.
"""

from __future__ import annotations

import numpy as np

from belated.compiled import fast_sums, kernel
from belated.types import Floats
from belated.validate import array, check_generator, integer, real


@fast_sums
def dot(a: Floats, b: Floats) -> float:
    """Return Σ aᵢbᵢ."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def rank_one_update(factor: Floats, x: Floats) -> None:
    """Replace U by the factor of UᵀU + xxᵀ; `x` is used up.

    One Givens rotation a row mixes row k of U with x so that x becomes zero.
    """
    d = x.size
    for k in range(d):
        if x[k] == 0.0:  # nothing to rotate: sparse and one-hot features skip most rows
            continue
        diagonal = factor[k, k]
        grown = np.sqrt(diagonal * diagonal + x[k] * x[k])
        cosine = diagonal / grown
        sine = x[k] / grown
        factor[k, k] = grown
        row = factor[k, k + 1 :]
        rest = x[k + 1 :]
        for j in range(rest.size):
            above = row[j]
            row[j] = cosine * above + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * above


@kernel
def solve_transposed(factor: Floats, b: Floats) -> None:
    """Replace b by U⁻ᵀb (forward substitution)."""
    for k in range(b.size):
        b[k] /= factor[k, k]
        row = factor[k, k + 1 :]
        rest = b[k + 1 :]
        head = b[k]
        for j in range(rest.size):
            rest[j] -= head * row[j]


@kernel
def solve(factor: Floats, v: Floats) -> None:
    """Replace v by U⁻¹v (back substitution)."""
    for k in range(v.size - 1, -1, -1):
        v[k] = (v[k] - dot(factor[k, k + 1 :], v[k + 1 :])) / factor[k, k]


@kernel
def draw(factor: Floats, half_mean: Floats, scale: float, rng: np.random.Generator, weights: Floats) -> None:
    """Draw w ~ N(ŵ, ν²Ω⁻¹) as U⁻¹(u + νz), where `half_mean` is u = U⁻ᵀΦy/σ², so that ŵ = U⁻¹u."""
    for i in range(weights.size):
        weights[i] = half_mean[i] + scale * rng.standard_normal()
    solve(factor, weights)


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
