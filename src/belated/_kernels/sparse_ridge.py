"""Posterior draws of a ridge regression on sparse rows, whose cost does not depend on the number of features d.

*Perturb and solve.* With rewards y_i = x_iᵀw + noise of variance σ²/ω_i (ω_i the weight of row i) and the prior
w ~ N(0, τ²U) with a diagonal U, the solution of the ridge regression on perturbed data,

    targets y_i + σ/√ω_i · ε_ij   and the prior mean   w0_j = τ√U·z_j,     ε, z standard normal,

is a draw from the posterior. All J members j are solved at once, in the dual, with one variable β_ij per row and
member:

    w_j = w0_j + U Σ_i x_i β_ij,     β_ij = (y_i + σ/√ω_i·ε_ij − x_iᵀw_j)/κ_i,     κ_i = σ²/(τ²ω_i),

One step solves the second equation for one row, by exact coordinate ascent:

    Δ = (y_i + σ/√ω_i·ε_ij − x_iᵀw_j − κ_iβ_ij)/(κ_i + x_iᵀUx_i),   β_ij += Δ,   w_j += U x_i Δ.

That takes 2·J multiplications for each nonzero feature of the row, and sweeps over all rows converge from any starting
point: so old duals are a warm start for new targets, and rows can be added, changed and removed. The numerator of Δ is
the residual; steps return its mean square over the members in units of the noise, weighted by the fraction that a step
can change, x_iᵀUx_i/(κ_i + x_iᵀUx_i). It is zero at the solution.

*Interface.* Weights are `float32[places, members]`: a feature's weights in all members are contiguous. Row i is
`values` and `places` (int32, distinct within a row) from `begins[i]` to `ends[i]`; for a CSR matrix these are
`indptr[:-1]` and `indptr[1:]`. A `Problem` has everything except weights and duals.

* `standard_normals(seed, key, out)`: a vector of normals as a pure function of a seed and a key, for ε and z;
* `fill_prior(weights, keys, relative, width, seed)`: set weights to w0;
* `step`: one row;
* `sweep(problem, order, weights, duals)`: one step on each row of `order`; returns the mean residual before the steps;
* `solve(problem, weights, duals, tolerance, most)`: sweeps over all rows until the residual is small;
* `remove(problem, i, weights, duals)`: subtract a row from the weights; a few sweeps then restore the solution;
* `rebuild(problem, prior, weights, duals)`: recompute weights from duals, without accumulated rounding errors.

Regressions that share rows share the arrays of a `Problem`; `_replace(targets=…)` gives one its own targets.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import borrowed, entry_point, kernel
from belated.types import Ints

Singles = npt.NDArray[np.float32]
Places = npt.NDArray[np.int32]

#: Midpoint quantiles of a normal distribution with variance one half, in 2¹² bins: the sum of two of them, chosen by 24
#: random bits, has the first moments of a standard normal variable to four digits.
_BITS = 12
_TABLE = np.array([NormalDist().inv_cdf((i + 0.5) / 2**_BITS) for i in range(2**_BITS)])
_HALVES: Singles = (_TABLE * np.sqrt(0.5 / np.mean(_TABLE**2))).astype(np.float32)
_MASK, _SHIFT = np.uint64(2**_BITS - 1), np.uint64(_BITS)
_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Problem(NamedTuple):
    """The rows, targets and prior of a regression on perturbed targets."""

    begins: Ints
    ends: Ints
    places: Places
    values: Singles
    targets: Singles
    """Shape (rows, members), or (rows, 1) if all members have the same targets."""
    weights: Singles
    """ω of each row; 1 without forgetting."""
    keys: Ints
    """One key for each row, which seeds its noise independently of the row's index."""
    relative: Singles
    """U, the prior variance of each weight relative to τ²."""
    sigma: float
    """σ, the standard deviation of the noise."""
    kappa: float
    """σ²/τ²."""
    scale: float
    """ν, a factor on the noise of the targets: with prior draws νw0 as well, deviations from the posterior mean are ν
    times as wide; 0 solves for the mean."""
    seed: int
    centred: bool = False
    """Whether the first member is the posterior mean, without noise, and the others are deviations from it, with
    targets of pure noise: then ŵ ± δ_j are draws. The prior draw of the first must be zero."""


@kernel
def mixed(number: np.uint64) -> np.uint64:
    """Return 64 random bits that are a function of `number` (SplitMix64)."""
    z = number + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def standard_normals(seed: int, key: int, out: Singles) -> None:
    """Set `out` to standard normal numbers that are a function of seed and key."""
    base = mixed(np.uint64(key) ^ mixed(np.uint64(seed)))
    for pair in range((out.size + 1) // 2):
        bits = mixed(base + np.uint64(pair))
        j = 2 * pair
        out[j] = _HALVES[bits & _MASK] + _HALVES[(bits >> _SHIFT) & _MASK]
        if j + 1 < out.size:
            bits >>= _SHIFT + _SHIFT
            out[j + 1] = _HALVES[bits & _MASK] + _HALVES[(bits >> _SHIFT) & _MASK]


@entry_point
def fill_prior(weights: Singles, keys: Ints, relative: Singles, width: float, seed: int) -> None:
    """Set the weights to prior draws τ√U·z, where z is a function of each weight's key; `width` is τ."""
    for place in range(len(weights)):
        row = weights[place]
        standard_normals(seed, keys[place], row)
        scale = np.float32(width * np.sqrt(relative[place]))
        for j in range(row.size):
            row[j] *= scale


@kernel
def step(problem: Problem, i: int, weights: Singles, dual: Singles, work: Singles) -> float:
    """Solve the equation of row i for its duals, `dual`; return the residual before the step.

    `work` is set to the change of the duals.
    """
    omega = problem.weights[i]
    sigma = problem.sigma / np.sqrt(omega)
    kappa, noise = np.float32(problem.kappa / omega), np.float32(problem.scale * sigma)
    targets = problem.targets[i]
    if noise > 0.0:
        standard_normals(problem.seed, problem.keys[i], work)
    else:
        work[:] = np.float32(0.0)
    if problem.centred:
        work[0] = targets[0] - kappa * dual[0]
        for j in range(1, work.size):
            work[j] = noise * work[j] - kappa * dual[j]
    elif targets.size == 1:
        same = targets[0]
        for j in range(work.size):
            work[j] = same + noise * work[j] - kappa * dual[j]
    else:
        for j in range(work.size):
            work[j] = targets[j] + noise * work[j] - kappa * dual[j]
    square = np.float32(0.0)
    for k in range(problem.begins[i], problem.ends[i]):
        place, x = problem.places[k], problem.values[k]
        square += x * x * problem.relative[place]  # xᵀUx
        row = weights[place]
        for j in range(work.size):
            work[j] -= x * row[j]
    gain = np.float32(1.0) / (kappa + square)
    residual = np.float32(0.0)
    for j in range(work.size):
        residual += work[j] * work[j]
        work[j] *= gain
        dual[j] += work[j]
    for k in range(problem.begins[i], problem.ends[i]):
        place = problem.places[k]
        x = problem.values[k] * problem.relative[place]
        row = weights[place]
        for j in range(work.size):
            row[j] += x * work[j]
    return float(residual * square * gain / (work.size * sigma * sigma))


@kernel
def run(problem: Problem, order: Ints, weights: Singles, duals: Singles, work: Singles) -> float:
    """Step on each row of `order`; return the mean residual."""
    total = 0.0
    for k in range(order.size):
        total += step(problem, order[k], weights, duals[order[k]], work)
    return total / max(order.size, 1)


@entry_point
def sweep(problem: Problem, order: Ints, weights: Singles, duals: Singles) -> float:
    """Step on each row of `order`; return the mean squared residual before the steps, in units of the noise."""
    problem, weights, duals = borrowed(problem), borrowed(weights), borrowed(duals)
    return run(problem, order, weights, duals, np.empty(weights.shape[1], np.float32))


@entry_point
def solve(problem: Problem, weights: Singles, duals: Singles, tolerance: float, most: int) -> tuple[int, float]:
    """Sweep over all rows, each time in a different order, until the root mean square residual is at most `tolerance`.

    Return the number of sweeps (at most `most`) and that residual. Single precision limits it to about 1e-6.
    """
    problem, weights, duals = borrowed(problem), borrowed(weights), borrowed(duals)
    work, order = np.empty(weights.shape[1], np.float32), np.arange(problem.begins.size)
    residual = np.inf
    for each in range(most):
        shuffle(order, each)
        residual = np.sqrt(run(problem, order, weights, duals, work))
        if residual <= tolerance:
            return each + 1, residual
    return most, residual


@kernel
def shuffle(order: Ints, seed: int) -> None:
    """Shuffle `order` in place, as a function of `seed`."""
    for i in range(order.size - 1, 0, -1):
        j = np.int64(mixed(np.uint64(i) ^ mixed(np.uint64(seed))) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@kernel
def add(problem: Problem, i: int, weights: Singles, dual: Singles, sign: float) -> None:
    """Add a row's contribution to the weights, U x_i β_ij, or subtract it."""
    for k in range(problem.begins[i], problem.ends[i]):
        place = problem.places[k]
        x, row = np.float32(sign) * problem.values[k] * problem.relative[place], weights[place]
        for j in range(row.size):
            row[j] += x * dual[j]


@entry_point
def remove(problem: Problem, i: int, weights: Singles, duals: Singles) -> None:
    """Subtract row i from the weights, and set its duals to zero."""
    add(problem, i, weights, duals[i], -1.0)
    duals[i] = np.float32(0.0)


@entry_point
def rebuild(problem: Problem, prior: Singles, weights: Singles, duals: Singles) -> None:
    """Set the weights to w0 + U Σ_i x_i β_ij; `prior` is w0."""
    for place in range(len(weights)):
        for j in range(weights.shape[1]):
            weights[place, j] = prior[place, j]
    for i in range(problem.begins.size):
        add(problem, i, weights, duals[i], 1.0)
