"""Draws from the posterior of a ridge regression by products with the features, without a d × d matrix.

If the observations are rows φ_j of a table, visited n_j times, the precision is given by its products,

    Ωv = λv + Σ_j n_j/σ² · φ_j(φ_jᵀv),

and Ωx = b is solved by conjugate gradients, in O(visited rows · d) per step. A draw is the solution for perturbed data:
with b = Φ(y + σνξ)/σ² + ν√λ·ζ, where ξ and ζ are standard normal, x = Ω⁻¹b has mean ŵ and covariance

    Ω⁻¹(ν²ΦΦᵀ/σ² + ν²λI)Ω⁻¹ = ν²Ω⁻¹.

The noises of n_j visits of one row add up to one: √n_j·ξ_j·φ_j.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.gaussian import dot
from belated._kernels.jit import copy, kernel
from belated._kernels.normals import standard_normal
from belated.errors import InvalidInputError
from belated.types import Floats, Ints


@kernel
def perturb(
    rows: Floats,
    visited: Ints,
    shares: Floats,
    ridge: float,
    scale: float,
    rng: np.random.Generator,
    b: Floats,
) -> None:
    """Add the noise of one draw, N(0, ν²Ω), to b: first that of the prior, then that of each visited row."""
    prior = scale * np.sqrt(ridge)
    for i in range(b.size):
        b[i] += prior * standard_normal(rng)  # ν√λ·ζ
    for j in range(visited.size):
        row = rows[visited[j]]
        noise = scale * np.sqrt(shares[j]) * standard_normal(rng)  # ν√n_j/σ · ξ_j
        for i in range(b.size):
            b[i] += noise * row[i]


@kernel
def product(rows: Floats, visited: Ints, shares: Floats, ridge: float, v: Floats, image: Floats) -> None:
    """Set `image` to Ωv; `shares` are n_j/σ² of the visited rows."""
    for i in range(v.size):
        image[i] = ridge * v[i]
    for j in range(visited.size):
        row = rows[visited[j]]
        along = shares[j] * dot(row, v)
        for i in range(v.size):
            image[i] += along * row[i]


@kernel
def solve_by_products(
    rows: Floats,
    visited: Ints,
    shares: Floats,
    ridge: float,
    tolerance: float,
    b: Floats,
    x: Floats,
    direction: Floats,
    image: Floats,
) -> int:
    """Set x to Ω⁻¹b, until ‖b − Ωx‖ ≤ tolerance·‖b‖; return the number of steps.

    Conjugate gradients from zero. `b` becomes the residual r; `direction` and `image` are work space. There is no
    preconditioner: Ω − λI has the rank of the visited rows, so as many steps suffice, which dividing by the diagonal of
    Ω would spoil.
    """
    x[:] = 0.0
    copy(b, direction)
    square = dot(b, b)  # ‖r‖²
    enough = tolerance * tolerance * square
    if not np.isfinite(square):  # overflow: the planner rejects values that are not numbers
        x[:] = np.nan
    steps = 0
    while square > enough:
        if steps == 10 * b.size + 100:  # d steps suffice without rounding
            raise InvalidInputError("tolerance is too small: conjugate gradients do not reach it in 64-bit floats")
        product(rows, visited, shares, ridge, direction, image)
        length = square / dot(direction, image)
        for i in range(b.size):
            x[i] += length * direction[i]
            b[i] -= length * image[i]
        before, square = square, dot(b, b)
        for i in range(b.size):
            direction[i] = b[i] + square / before * direction[i]
        steps += 1
    return steps
