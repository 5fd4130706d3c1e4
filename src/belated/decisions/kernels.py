"""The compiled parts of a decision and of its reward."""

from __future__ import annotations

import numpy as np

from belated.compiled import allocating_kernel, kernel
from belated.posterior.gaussian import dot, solve, solve_transposed
from belated.types import Floats


@allocating_kernel
def score(
    factor: Floats, half_mean: Floats, scale: float, normals: Floats, contexts: Floats, scores: Floats
) -> tuple[float, int]:
    """Fill in `scores[a]` = max over m of xₐᵀθᵐ; return the largest and how many share it. Uses up `normals`."""
    scores[:] = -np.inf
    for m in range(normals.shape[0]):
        weights = normals[m]
        for i in range(weights.size):
            weights[i] = half_mean[i] + scale * weights[i]
        solve(factor, weights)
        for a in range(scores.size):
            scores[a] = max(scores[a], dot(contexts[a], weights))
    best = scores.max()
    return best, (scores == best).sum()


@allocating_kernel
def choose(factor: Floats, moment: Floats, scale: float, normals: Floats, contexts: Floats, uniform: float) -> int:
    """Return the action of the largest score; `uniform` in [0, 1) picks among ties."""
    half_mean = moment[0] + moment[1]
    solve_transposed(factor, half_mean)
    scores = np.empty(contexts.shape[0])
    best, ties = score(factor, half_mean, scale, normals, contexts, scores)
    return int(np.flatnonzero(scores == best)[int(uniform * ties)])


@allocating_kernel
def count_choices(
    factor: Floats, moment: Floats, scale: float, normals: Floats, contexts: Floats, action: int
) -> float:
    """Return how often `action` is chosen over the first axis of `normals`, a tie counting as its share."""
    half_mean = moment[0] + moment[1]
    solve_transposed(factor, half_mean)
    scores = np.empty(contexts.shape[0])
    total = 0.0
    for k in range(normals.shape[0]):
        best, ties = score(factor, half_mean, scale, normals[k], contexts, scores)
        if scores[action] == best:
            total += 1.0 / ties
    return total


@kernel
def add_product(moment: Floats, x: Floats, y: float) -> None:
    """Add xy to row 0, and what rounding lost to row 1: a huge reward that is corrected leaves no trace."""
    for i in range(x.size):
        term = x[i] * y
        total = moment[0, i] + term
        added = total - moment[0, i]
        moment[1, i] += (moment[0, i] - (total - added)) + (term - added)
        moment[0, i] = total
