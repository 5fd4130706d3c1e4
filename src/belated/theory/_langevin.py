"""The Langevin chains of Theorem 2: temperature, step size and length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, real, refuse
from belated.theory._constants import LPSVI_RATIO, lpsvi_concentration
from belated.theory._settings import LARGEST, level, size
from belated.types import Floats


def temperature(dimension: int, horizon: int, episodes: int, delta: float) -> float:
    """Return γ = 16 C²_{δ/4} of Theorem 2.

    16 because the covariance of a chain may be as small as γ/4 times Ω⁻¹, and half of its width must suffice for
    the error of the mean; the other half is for what the chain still remembers of its start.
    """
    return (LPSVI_RATIO * lpsvi_concentration(dimension, horizon, episodes, delta).value) ** 2


def _spectrum(precision: npt.ArrayLike) -> Floats:
    matrix = array("precision", precision, (None, None))
    rows, columns = matrix.shape
    if rows != columns or rows == 0 or not np.allclose(matrix, matrix.T):
        raise refuse("precision", precision, "a symmetric matrix")
    values = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
    if values[0] <= 0.0:
        raise refuse("precision", precision, "positive definite")
    return values


def condition_number(precision: npt.ArrayLike) -> float:
    """Return κ = λ_max/λ_min of a precision matrix (Lemma "Convergence of LMC").

    >>> condition_number([[4.0, 0.0], [0.0, 1.0]])
    4.0
    """
    values = _spectrum(precision)
    return float(values[-1] / values[0])


def condition_bound(episodes: int, ridge: float = 1.0) -> float:
    """Return (K + λ)/λ, the maximum κ after K episodes with features of norm at most 1.

    Ω is λI plus at most K matrices φφᵀ, each of which adds at most 1 to λ_max and nothing to λ_min.
    """
    ridge = real("ridge", ridge, above=0.0)
    return (size("episodes", episodes) + ridge) / ridge


def step_size(precision: npt.ArrayLike) -> float:
    """Return η = 1/(4λ_max) of Theorem 2, `step_ratio` = 1/4 in the settings of Delayed-LPSVI.

    >>> step_size([[4.0, 0.0], [0.0, 1.0]])
    0.0625
    """
    return float(0.25 / _spectrum(precision)[-1])


@dataclass(frozen=True)
class ChainLength:
    """The three terms of which N_k is the maximum."""

    optimism: float
    """Enough to forget the start, for optimism: log(32H²(K + 1)dk/γ + 1)/(2ρ)."""
    spread: float
    """Enough for half the stationary covariance: log 2/(2ρ)."""
    accuracy: float
    """Enough to bring the mean within 1/(2K³) of ŵ: log(4HK³√(dK))/ρ."""

    @property
    def steps(self) -> int:
        """N_k, the maximum of the three, rounded up."""
        return math.ceil(max(self.optimism, self.spread, self.accuracy))


def chain_length(
    dimension: int, horizon: int, episodes: int, delta: float, condition: float | None = None
) -> ChainLength:
    """Return N_k of Theorem 2 at k = K, with ρ = log(1/(1 - 1/(2κ))) and κ = `condition`.

    The terms come from Lemmas "Anti-concentration for optimism" (the first two) and "Choice of N_k" (the third).
    The default condition number is its maximum, K + 1. Since ρ is about 1/(2κ), N_k grows in
    proportion to κ: it is logarithmic in everything but the data.
    """
    d, h, k = size("dimension", dimension), size("horizon", horizon), size("episodes", episodes)
    kappa = condition_bound(k) if condition is None else real("condition", condition, at_least=1.0, at_most=LARGEST)
    rate = -math.log1p(-0.5 / kappa)
    gamma = temperature(d, h, k, level(delta))
    return ChainLength(
        optimism=math.log1p(32 * h**2 * (k + 1) * d * k / gamma) / (2 * rate),
        spread=math.log(2) / (2 * rate),
        accuracy=(math.log(4 * h) + 3 * math.log(k) + math.log(d * k) / 2) / rate,
    )
