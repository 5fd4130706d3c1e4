"""Langevin draws for the quadratic loss L(w) = wᵀΩw − 2bᵀw, where b = Φy/σ² and ∇L(w) = 2(Ωw − b).

The chain w ← w − η∇L(w) + √(2ηγ)ε contracts by A = I − 2ηΩ per step. After exactly N steps from w₀ its distribution is

    N(Aᴺw₀ + (I − Aᴺ)ŵ, Θ),   Θ = γ(I − A²ᴺ)Ω⁻¹(I + A)⁻¹,

which `collapsed_draw` samples directly. Rarely visited directions have small eigenvalues of Ω and contract slowly: with
few steps the plain chain hardly moves there. Preconditioning with P = Ω⁻¹ makes every direction contract by 1 − 2η,
whatever the condition number.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.gaussian import dot, solve
from belated._kernels.jit import kernel
from belated._kernels.normals import standard_normal
from belated.types import Floats

#: Maximum number of Krylov directions for the largest eigenvalue.
KRYLOV = 48


@kernel
def _largest_ritz_value(diagonal: Floats, off: Floats, size: int) -> float:
    """Return the largest eigenvalue of the symmetric tridiagonal matrix, by bisection on Sturm counts."""
    low = high = float(diagonal[0])
    for i in range(size):  # Gershgorin
        reach = (off[i - 1] if i > 0 else 0.0) + (off[i] if i < size - 1 else 0.0)
        high = max(high, diagonal[i] + reach)
        low = max(low, diagonal[i])
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:  # also terminates after overflow
            return high
        # all pivots of T − middle·I negative ⇔ every eigenvalue lies below middle
        pivot = diagonal[0] - middle
        below = pivot < 0.0
        i = 1
        while below and i < size:
            pivot = diagonal[i] - middle - off[i - 1] * off[i - 1] / pivot
            below = pivot < 0.0
            i += 1
        if below:
            high = middle
        else:
            low = middle


@kernel
def largest_eigenvalue(matrix: Floats, basis: Floats, diagonal: Floats, off: Floats) -> float:
    """Return λ_max of a positive definite matrix, by Lanczos with full re-orthogonalisation.

    `basis` (one row more than Krylov directions) and the two vectors are work space. The start vector has a
    different component along every coordinate: a warm start from the last top eigenvector would be exact for one-hot
    features, and miss that another direction has overtaken it.
    """
    d = matrix.shape[0]
    steps = basis.shape[0] - 1
    phase = 0.5
    for i in range(d):
        phase = (16807.0 * phase + 0.6180339887498949) % 1.0  # pseudo-random, so that features are not orthogonal to it
        basis[0, i] = 1.0 + phase
    length = np.sqrt(dot(basis[0], basis[0]))
    for i in range(d):
        basis[0, i] /= length
    best = 0.0
    for j in range(steps):
        fresh = basis[j + 1]
        for i in range(d):
            fresh[i] = dot(matrix[i], basis[j])
        diagonal[j] = dot(fresh, basis[j])
        for _ in range(2):  # twice is enough
            for i in range(j + 1):
                share = dot(fresh, basis[i])
                row = basis[i]
                for c in range(d):
                    fresh[c] -= share * row[c]
        off[j] = np.sqrt(dot(fresh, fresh))
        found = _largest_ritz_value(diagonal, off, j + 1)
        settled = j > 0 and d > steps and found - best <= 1e-13 * found
        best = found
        if settled or off[j] <= 1e-14 * found:
            break
        fresh /= off[j]
    return best


@kernel
def plain_chain(
    precision: Floats,
    moment: Floats,
    step: float,
    temperature: float,
    steps: int,
    rng: np.random.Generator,
    weights: Floats,
    gradient: Floats,
) -> None:
    """Run exactly N plain Langevin steps from `weights`, in place; `gradient` is work space."""
    noise = np.sqrt(2.0 * step * temperature)  # √(2ηγ)
    d = weights.size
    for _ in range(steps):
        for i in range(d):
            gradient[i] = 2.0 * (dot(precision[i], weights) - moment[i])  # ∇L = 2(Ωw − b)
        for i in range(d):
            weights[i] += noise * standard_normal(rng) - step * gradient[i]


@kernel
def collapsed_draw(
    eigenvalues: Floats,
    eigenvectors: Floats,
    moment: Floats,
    step: float,
    temperature: float,
    steps: int,
    rng: np.random.Generator,
    weights: Floats,
    rotated: Floats,
) -> None:
    """Draw from the distribution of the N-step chain started at `weights`; row i of `eigenvectors` is the i-th."""
    d = weights.size
    for i in range(d):
        omega = eigenvalues[i]
        vector = eigenvectors[i]
        contraction = 1.0 - 2.0 * step * omega  # the i-th eigenvalue of A
        kept = contraction**steps
        mean = kept * dot(vector, weights) + (1.0 - kept) * dot(vector, moment) / omega
        variance = temperature * (1.0 - kept * kept) / (omega * (1.0 + contraction))  # of Θ
        rotated[i] = mean + np.sqrt(variance) * standard_normal(rng)
    weights[:] = 0.0
    for i in range(d):
        vector = eigenvectors[i]
        for c in range(d):
            weights[c] += rotated[i] * vector[c]


@kernel
def preconditioned_chain(
    factor: Floats,
    mean: Floats,
    step: float,
    temperature: float,
    steps: int,
    rng: np.random.Generator,
    weights: Floats,
    noise: Floats,
) -> None:
    """Run N Langevin steps preconditioned with P = Ω⁻¹ = U⁻¹U⁻ᵀ, in place; `noise` is work space.

    A step is w ← w − 2η(w − ŵ) + √(2ηγ)U⁻¹ε, since P∇L(w) = 2(w − ŵ). The noise is summed before U⁻¹ is applied
    to it once, and N steps towards ŵ are one: the same chain, in O(Nd + d²).
    """
    contraction = 1.0 - 2.0 * step
    d = weights.size
    noise[:] = 0.0
    for _ in range(steps):
        for i in range(d):
            noise[i] = contraction * noise[i] + standard_normal(rng)
    solve(factor, noise)
    amplitude = np.sqrt(2.0 * step * temperature)
    kept = contraction**steps
    for i in range(d):
        weights[i] = kept * weights[i] + (1.0 - kept) * mean[i] + amplitude * noise[i]
