"""Bounds on the longest delay, on the feedback in flight, and on the error they add."""

from __future__ import annotations

import math

from belated.delays._base import DelayDistribution
from belated.theory._settings import level, size, tail


def delay_bound(delay: DelayDistribution, episodes: int, delta: float) -> float:
    """Return E[τ] + D_{τ,K,δ}, which no delay of K episodes exceeds, with probability 1 - δ.

    D_{τ,K,δ} = max{√(2v² L), 2bL} with L = log(3K/(2δ))   (Lemma "Sub-exponential tail bound")

    The paper prints the minimum of the two. That is a slip: a distribution bounded in [0, n] has b = 0, for which
    the minimum says that no delay exceeds the mean. The maximum is what the tail min{exp(-t²/2v²), exp(-t/2b)},
    whichever applies at t, gives.
    """
    parameters, log = tail(delay), _log_term(episodes, delta)
    return delay.mean + max(parameters.v * math.sqrt(2 * log), 2 * parameters.b * log)


def _log_term(episodes: int, delta: float) -> float:
    return math.log(1.5 * size("episodes", episodes) / level(delta))


def missing_bound(delay: DelayDistribution, episodes: int, delta: float) -> float:
    """Return a bound on max_k U_k, the most feedback in flight at once, that holds with probability 1 - δ.

    U_k = Σ_{s <= k} 1{s + τ_s > k} <= E[τ] + 2√(2E[τ]L) + (4/3)L with L = log(3K/(2δ))

    The last lemma of Appendix D, "Delayed feedback". U_k is a sum of independent indicators with expectation at most
    E[τ], so this is Bernstein's inequality, twice over: of the delay only its mean counts.
    """
    tail(delay)
    log = _log_term(episodes, delta)
    return delay.mean + 2 * math.sqrt(2 * delay.mean * log) + 4 / 3 * log


def delay_term(delay: DelayDistribution, horizon: int, episodes: int, delta: float) -> float:
    """Return D_{τ,δ,H,K} = 1 + 2E[τ] + 2√(2E[τ]L) + (4/3)L + D_{τ,K,δ/(16H)} with L = log(24KH/δ).

    Lemma "Bounding the delayed error": 1 + max U_k + max τ_k, each bounded at the level δ/(16H).
    """
    share = level(delta) / (16 * size("horizon", horizon))
    return 1 + missing_bound(delay, episodes, share) + delay_bound(delay, episodes, share)


def potential_bound(dimension: int, episodes: int) -> float:
    """Return 2d log((d + K)/d), which Σ_k ‖φ_k‖² in the norm of Σ_k⁻¹ does not exceed, Σ_k = I + Σ_{t<k} φ_tφ_tᵀ.

    The elliptical potential lemma for λ = 1 and features of norm at most 1. The proof's step from the determinant to
    log((d + K)/d) is the inequality of the means; the paper's own determinant lemma has log(1 + K).

    >>> round(potential_bound(2, 100), 2)
    15.73
    """
    d, k = size("dimension", dimension), size("episodes", episodes)
    return 2 * d * math.log1p(k / d)


def delayed_error_bound(dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution) -> float:
    """Return the bound on Σ_h Σ_k ‖φ‖ in the norm of Ω⁻¹, where Ω lacks what is late.

    H√(2dK log((d + K)/d)) + dH D_{τ,δ,H,K} log((d + K)/d), with probability 1 - δ/8

    Lemma "Bounding the delayed error"; Appendix B writes the two terms for one step and adds them up over H.
    """
    return sum(error_parts(dimension, horizon, episodes, delta, delay))


def error_parts(
    dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> tuple[float, float]:
    """Return the two terms of `delayed_error_bound`: without delay, and due to delay."""
    potential = potential_bound(dimension, episodes)
    term = delay_term(delay, horizon, episodes, delta)
    return horizon * math.sqrt(episodes * potential), horizon * term * potential / 2
