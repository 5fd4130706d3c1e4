"""What the lemmas speak of, measured: covariances of chains, norms and feedback in flight, values of random actions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belated import theory
from belated._kernels.jit import entry_point
from belated._kernels.langevin import plain_chain
from belated.environments import FiniteMDP
from belated.types import Floats, Ints

_chain = entry_point(plain_chain)


def covariance_ratios(precision: Floats, steps: int) -> tuple[float, float]:
    """Return the minimum and the maximum eigenvalue of Ω^½ΘΩ^½/γ, for a chain of N steps with η = 1/(4λ_max).

    Its covariance is Θ = γ(I − A²ᴺ)Ω⁻¹(I + A)⁻¹ with A = I − 2ηΩ; all of them have the eigenvectors of Ω.
    """
    eigenvalues = np.linalg.eigvalsh(precision)
    contraction = 1 - 0.5 * eigenvalues / eigenvalues[-1]
    ratios = (1 - contraction ** (2 * steps)) / (1 + contraction)
    return float(ratios.min()), float(ratios.max())


class ChainErrors(NamedTuple):
    """How far chains are from N(Aᴺw₀ + (I − Aᴺ)ŵ, Θ), in the norm of Θ⁻¹."""

    mean: float
    """The length of Θ^-½(mean of the chains − Aᴺw₀ − (I − Aᴺ)ŵ)."""
    covariance: float
    """The largest |eigenvalue of Θ^-½SΘ^-½ − 1|, S their covariance around that mean."""


def chain_errors(precision: Floats, steps: int, *, chains: int, rng: np.random.Generator) -> ChainErrors:
    """Return how far `chains` chains from w₀ = (1, ..., 1) towards ŵ = −w₀ are from the distribution of the lemma."""
    d, step = len(precision), theory.step_size(precision)
    start, target, work = np.ones(d), -np.ones(d), np.zeros(d)
    ends = np.tile(start, (chains, 1))
    for end in ends:
        _chain(precision, precision @ target, step, 1.0, steps, rng, end, work)
    eigenvalues, vectors = np.linalg.eigh(precision)
    contraction = 1 - 2 * step * eigenvalues
    mean = target @ vectors + contraction**steps * ((start - target) @ vectors)
    deviation = np.sqrt((1 - contraction ** (2 * steps)) / (eigenvalues * (1 + contraction)))
    whitened = (ends @ vectors - mean) / deviation
    covariance = np.abs(np.linalg.eigvalsh(whitened.T @ whitened / chains) - 1).max()
    return ChainErrors(float(np.linalg.norm(whitened.mean(axis=0))), float(covariance))


def sampling_errors(d: int, chains: int, delta: float) -> ChainErrors:
    """Return what the errors of independent Gaussian draws do not exceed, each with probability 1 − δ.

    The mean of n standard normals has a length of at most √(d/n) + t, with probability 1 − exp(−nt²/2), and the
    singular values of n × d of them over √n are within 1 ± (√(d/n) + t), each side so (Davidson and Szarek).
    """
    apart = [np.sqrt(d / chains) + np.sqrt(2 * np.log(sides / delta) / chains) for sides in (1, 2)]
    return ChainErrors(float(apart[0]), float((1 + apart[1]) ** 2 - 1))


def lower_ratio(precision: Floats, steps: int) -> float:
    """Return ½(1 − (1 − 1/(2κ))²ᴺ), below which no ratio may fall."""
    kappa = theory.condition_number(precision)
    return float(-np.expm1(2 * steps * np.log1p(-0.5 / kappa)) / 2)


def delayed_norms(features: Floats, arrival: Ints) -> Floats:
    """Return ‖φ_k‖ in the norm of Ω_k⁻¹, where Ω_k = I + the sum of φφᵀ over the t with arrival[t] < k."""
    episodes, d = features.shape
    order, arrived = np.argsort(arrival, kind="stable"), 0
    omega, found = np.eye(d), np.zeros(episodes)
    for k in range(episodes):
        while arrived < episodes and arrival[order[arrived]] < k:
            omega += np.outer(features[order[arrived]], features[order[arrived]])
            arrived += 1
        found[k] = np.sqrt(features[k] @ np.linalg.solve(omega, features[k]))
    return found


def in_flight(delays: Ints) -> Ints:
    """Return U_k of each run (row): how many of the episodes 0..k have not arrived at the end of episode k."""
    runs, episodes = delays.shape
    arrived = np.zeros((runs, episodes), dtype=np.int64)
    late = np.minimum(delays, episodes) + np.arange(episodes)  # beyond the end is all the same, and NEVER is too
    run, sent = np.nonzero(late < episodes)
    np.add.at(arrived, (run, late[run, sent]), 1)
    missing: Ints = np.arange(1, episodes + 1) - np.cumsum(arrived, axis=1)
    return missing


def uniform_values(world: FiniteMDP) -> Floats:
    """Return V_h(s) of actions that are drawn uniformly, shape (H+1, S)."""
    values = np.zeros((world.horizon + 1, world.states))
    for h in range(world.horizon - 1, -1, -1):
        values[h] = (world.rewards[h] + world.transitions[h] @ values[h + 1]).mean(axis=1)
    return values
