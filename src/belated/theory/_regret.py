"""The regret bounds of the theorems, term by term."""

from __future__ import annotations

import math
from dataclasses import dataclass

from belated._util.validate import real
from belated.delays._base import DelayDistribution
from belated.theory._constants import PSVI_NET, draw_deviation, lpsvi_beta, psvi_beta, rounds
from belated.theory._delay import error_parts
from belated.theory._settings import level, size


@dataclass(frozen=True)
class RegretBound:
    """A bound on the regret over all episodes that holds with probability 1 - δ, as the sum of its terms."""

    transitions: float
    """The randomness of the transitions (Azuma-Hoeffding): √(2H³K log(8/δ)); 0 for bandits."""
    learning: float
    """The error without delay: βH√(2dK log((d + K)/d))."""
    delay: float
    """What delay adds: βdH D_{τ,δ,H,K} log((d + K)/d)."""
    net: float
    """What the nets leave over: H/K²."""

    @property
    def total(self) -> float:
        return self.transitions + self.learning + self.delay + self.net


def psvi_regret_bound(
    dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> RegretBound:
    """Return the bound of Theorem 1 on the regret of Delayed-PSVI.

    R <= √(2H³K log(8/δ)) + βH√(2dK log((d + K)/d)) + βdH D_{τ,δ,H,K} log((d + K)/d) + H/K²

    This is the last line of the proof before its constants disappear into c√(d³H³Tι) + c'd²H²E[τ]ι + c''ι, with β
    of `psvi_beta`. In the first term, |ζ| <= 2H is read as a range of length 2H, for which the constant is right.
    """
    return _chain(psvi_beta(dimension, horizon, episodes, delta), dimension, horizon, episodes, delta, delay)


def lpsvi_regret_bound(
    dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> RegretBound:
    """Return the bound of Theorem 2 on the regret of Delayed-LPSVI: as Theorem 1, with β of `lpsvi_beta`."""
    return _chain(lpsvi_beta(dimension, horizon, episodes, delta), dimension, horizon, episodes, delta, delay)


def _chain(
    beta: float, dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> RegretBound:
    learning, late = error_parts(dimension, horizon, episodes, delta, delay)
    return RegretBound(
        transitions=math.sqrt(2 * horizon**3 * episodes * math.log(8 / delta)),
        learning=beta * learning,
        delay=beta * late,
        net=horizon / episodes**2,
    )


def bandit_concentration(dimension: int, pulls: int, delta: float, noise: float = 1.0) -> float:
    """Return C_δ of a linear bandit: |φᵀŵ - φᵀθ| <= C_δ‖φ‖_{Ω⁻¹} for all φ and pulls with probability 1 - δ.

    C_δ = B√(2[(d/2) log(T + 1) + log(1/δ)]) + √d, the self-normalised bound for B-sub-Gaussian noise (B = `noise`) and
    ‖θ‖ <= √d. Its width of draws is ν = C_{δ/4}: there are no next values to cover, so the definition is not circular.
    """
    d, t = size("dimension", dimension), size("pulls", pulls)
    spread = real("noise", noise, at_least=0.0)
    return spread * math.sqrt(d * math.log1p(t) + 2 * math.log(1 / level(delta))) + math.sqrt(d)


def bandit_regret_bound(
    dimension: int, pulls: int, delta: float, delay: DelayDistribution, noise: float = 1.0
) -> RegretBound:
    """Return a bound on the regret of delayed posterior sampling for a linear bandit, T = `pulls`, B = `noise`.

    The paper states the order √(d³Tι) + d²E[τ]ι + ι (Corollary "Delayed posterior sampling for linear bandits") and
    gives neither constants nor proof. The constants are ours: the proof of Theorem 1 with H = 1. There is no next
    value, so nothing must be covered and the definition of the width is not circular; B-sub-Gaussian noise takes
    the place of the values in the self-normalised bound, and ‖θ‖ <= √d is kept from the linear MDP:

        ν = C_{δ/4} of `bandit_concentration`,  β = √(2ν² log(16 C_d MT/δ)) + C_{δ/8},
        R <= β√(2dT log((d + T)/d)) + βd D_{τ,δ,1,T} log((d + T)/d) + 1/T²
    """
    d, t = size("dimension", dimension), size("pulls", pulls)
    level(delta)
    width = bandit_concentration(d, t, delta / 4, noise)
    deviation = draw_deviation(d, 1, t, rounds(delta, 1, t), delta, width, PSVI_NET)
    beta = deviation + bandit_concentration(d, t, delta / 8, noise)
    learning, late = error_parts(d, 1, t, delta, delay)
    return RegretBound(transitions=0.0, learning=beta * learning, delay=beta * late, net=1 / t**2)
