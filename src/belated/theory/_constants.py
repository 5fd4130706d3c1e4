"""The number of draws, the constant C_δ, the width of draws that solves a fixed point, and β."""

from __future__ import annotations

import math
from dataclasses import dataclass

from belated._util.validate import integer, real
from belated.theory._settings import level, size

#: C_d counts a net of the unit ball of features; the Langevin proof halves its mesh.
PSVI_NET, LPSVI_NET = 8.0, 16.0
#: ν = C for exact draws; √γ = 4C for Langevin chains, whose covariance may be as small as γ/4 times Ω⁻¹.
PSVI_RATIO, LPSVI_RATIO = 1.0, 4.0


def rounds(delta: float, horizon: int, episodes: int) -> int:
    """Return M = log(4HK/δ)/log(64/63), rounded up: the number of draws in Theorems 1 and 2.

    From Lemma "Optimism": a draw is optimistic with probability at least 1/64, so that all M miss with
    probability (63/64)^M <= δ/(4HK), for each of the HK steps. Rounding up is ours.

    The proof takes the chance 1/64 for all pairs (s, a) at once, which a single draw does not have when d is
    large: one φᵀw for each pair, not one normal variable, must be large enough. The number is right all the
    same for any finite problem of ordinary size. For one pair the chance is P(N(0, 1) >= 1) = 0.159, and a union
    over S·A pairs needs S·A·0.841^M <= δ/(4HK), which M meets whenever S·A <= (4HK/δ)^9.9.

    >>> rounds(0.05, horizon=5, episodes=1000)
    820
    """
    pairs = size("horizon", horizon) * size("episodes", episodes)
    return math.ceil(math.log(4 * pairs / level(delta)) / math.log(64 / 63))


def weight_bound(dimension: int, horizon: int, episodes: int, draws: int, delta: float, width: float) -> float:
    """Return C_{H,d,K,M,δ} = 2H√(dK) + w(√(2d) + √(2 log(M/δ))), a bound on the norm of all M draws.

    Lemma "Concentration of R2"; w is `width`: ν for exact draws, √γ for Langevin chains. The first term bounds the
    posterior mean (Lemma "Bound on estimated weights"), the second the distance of a Gaussian from it.
    """
    d, h, k = size("dimension", dimension), size("horizon", horizon), size("episodes", episodes)
    m = integer("draws", draws, at_least=1)
    w = real("width", width, at_least=0.0)
    return 2 * h * math.sqrt(d * k) + w * (math.sqrt(2 * d) + math.sqrt(2 * math.log(m / level(delta))))


def concentration(dimension: int, horizon: int, episodes: int, draws: int, delta: float, width: float) -> float:
    """Return C_δ with |φᵀŵ - (r + PV)| <= C_δ‖φ‖_{Ω⁻¹} for all s, a, h, k with probability 1 - δ.

    C_δ = √(8H²[(d/2) log(K + 1) + dM log(1 + 2√(8K³) C_{H,d,K,M,δ}/H) + log(2/δ)]) + 2√d H

    Lemmas "Concentration of R2", for exact draws (`width` = ν) and for chains (`width` = √γ); they differ in
    nothing else. This is the printed formula. The proof ends with a union over H and K that log(2/δ) does not show.
    It is covered by what the proof gives away: a value in [0, H] is H/2-sub-Gaussian, not H-, and the mesh of
    the net of values is √K times finer than needed.
    """
    d, h, k, m = dimension, horizon, episodes, draws
    norm = weight_bound(d, h, k, m, delta, width)
    cover = d * m * math.log1p(2 * math.sqrt(8.0 * float(k) ** 3) * norm / h)
    inside = d / 2 * math.log1p(k) + cover + math.log(2 / delta)
    return h * math.sqrt(8 * inside) + 2 * math.sqrt(d) * h


@dataclass(frozen=True)
class FixedPoint:
    """The solution of C = F(C), and how it was reached: C₀ = 0, Cₙ₊₁ = F(Cₙ)."""

    iterates: tuple[float, ...]
    """C₀, C₁, ..., which increase up to the solution."""

    @property
    def value(self) -> float:
        """The last iterate; another iteration would change it by at most one part in 10¹²."""
        return self.iterates[-1]

    @property
    def iterations(self) -> int:
        """How many times F was applied."""
        return len(self.iterates) - 1


def psvi_concentration(dimension: int, horizon: int, episodes: int, delta: float) -> FixedPoint:
    """Return C_{δ/4} of Theorem 1, which is also its width of draws ν.

    The definition is circular. A wider draw has larger weights, larger weights enlarge the class of values that must be
    covered, and the width must match the error that the cover allows:

        ν = C_{δ/4},  C_{δ/4} = F(ν) = √(8H²[... + dM log(1 + 2√(8K³) W(ν)/H) + ...]) + 2√d H,
        W(ν) = C_{H,d,K,M,δ/4} = 2H√(dK) + ν(√(2d) + √(2 log(4M/δ)))

    The paper leaves it there, since ν is inside a logarithm; solving it is ours. F is positive at 0,
    increasing and concave, and grows more slowly than ν. So it meets the diagonal once, and the iterates from
    0 increase to that point. Its slope there is about 1/(2 log(...)): each iteration gains more than a digit.

    >>> found = psvi_concentration(5, horizon=5, episodes=1000, delta=0.05)
    >>> round(found.value), found.iterations
    (4163, 9)
    """
    return _solve(dimension, horizon, episodes, delta, PSVI_RATIO)


def lpsvi_concentration(dimension: int, horizon: int, episodes: int, delta: float) -> FixedPoint:
    """Return C_{δ/4} of Theorem 2: as `psvi_concentration`, with √γ = 4C_{δ/4} in place of ν.

    Lemma "Concentration of R2 with Langevin posterior sampling"; the equation is C_{δ/4} = F(4C_{δ/4}).
    """
    return _solve(dimension, horizon, episodes, delta, LPSVI_RATIO)


def _solve(dimension: int, horizon: int, episodes: int, delta: float, ratio: float) -> FixedPoint:
    draws = rounds(delta, horizon, episodes)
    iterates = [0.0]
    while len(iterates) == 1 or iterates[-1] - iterates[-2] > 1e-12 * iterates[-1]:
        iterates.append(concentration(dimension, horizon, episodes, draws, delta / 4, ratio * iterates[-1]))
    return FixedPoint(tuple(iterates))


def psvi_beta(dimension: int, horizon: int, episodes: int, delta: float) -> float:
    """Return β of the event E in the proof of Theorem 1, which holds with probability 1 - δ/4.

    |min{Q, H - h} - (r + PV)| <= β‖φ‖_{Ω⁻¹} + 1/K³ for all s, a, h, k, with

        β = √(2ν² log(16 C_d HMK/δ)) + C_{δ/8},
        log C_d = d log(1 + (8ν√(2 log(16/δ)) + 8H√d)K³)

    Lemma "Pointwise concentration" at δ/4, that is R1 (how far a draw is from the mean) and R2 (how far the mean is
    from the truth) at δ/8 each. The theorem does not repeat C_d; 16/δ in it is what δ/8 makes of Lemma R1.
    """
    width = PSVI_RATIO * psvi_concentration(dimension, horizon, episodes, delta).value
    return _beta(dimension, horizon, episodes, delta, width, PSVI_NET)


def lpsvi_beta(dimension: int, horizon: int, episodes: int, delta: float) -> float:
    """Return β of the event E in the proof of Theorem 2: as `psvi_beta`, with √γ for ν and 16 for 8 in C_d.

    The paper's Langevin lemma keeps log(2/δ) in C_d where its β has gone on to δ/2; here both follow β, as they do
    in the lemma for exact draws.
    """
    width = LPSVI_RATIO * lpsvi_concentration(dimension, horizon, episodes, delta).value
    return _beta(dimension, horizon, episodes, delta, width, LPSVI_NET)


def _beta(dimension: int, horizon: int, episodes: int, delta: float, width: float, net: float) -> float:
    draws = rounds(delta, horizon, episodes)
    spread = draw_deviation(dimension, horizon, episodes, draws, delta, width, net)
    return spread + concentration(dimension, horizon, episodes, draws, delta / 8, width)


def draw_deviation(
    dimension: int, horizon: int, episodes: int, draws: int, delta: float, width: float, net: float
) -> float:
    """Return √(2w² log(16 C_d HMK/δ)), the bound on R1: how far the farthest of M draws is from the mean."""
    radius = net * (width * math.sqrt(2 * math.log(16 / delta)) + horizon * math.sqrt(dimension))
    log_net = dimension * math.log1p(radius * float(episodes) ** 3)
    return width * math.sqrt(2 * (math.log(16 * horizon * draws * episodes / delta) + log_net))
