"""The constants and bounds of the theorems (Kuang et al., 2023) as numbers.

Theorems 1 and 2 set λ = 1 and σ = 1 and assume features of norm at most 1, rewards in [0, 1] and delays that are
independent and sub-exponential. So does everything here. Where the paper lets a quantity grow with the
episode k, it is taken at k = K, its maximum.

`bounds` computes everything for one problem, the other functions one quantity each. `from_theory` of an algorithm
returns it with these settings.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, integer, real, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, SubExponential, any_delay, independent
from belated.errors import InvalidInputError
from belated.types import Floats, TableProblem

__all__ = [
    "ArbitraryDelayBound",
    "Bounds",
    "ChainLength",
    "ConservativeSettingsWarning",
    "FixedPoint",
    "RegretBound",
    "Row",
    "arbitrary_delay_bound",
    "bandit_concentration",
    "bandit_regret_bound",
    "bounds",
    "chain_length",
    "concentration",
    "condition_bound",
    "condition_number",
    "delay_bound",
    "delay_term",
    "delayed_error_bound",
    "expected_regret_bound",
    "lpsvi_beta",
    "lpsvi_concentration",
    "lpsvi_regret_bound",
    "missing_bound",
    "potential_bound",
    "psvi_beta",
    "psvi_concentration",
    "psvi_regret_bound",
    "rounds",
    "step_size",
    "temperature",
    "weight_bound",
]


#: Larger integers are not exact as floats.
LARGEST = 2**53


def size(name: str, value: Any) -> int:
    return integer(name, value, at_least=1, at_most=LARGEST)


def level(value: Any) -> float:
    """Validate δ, the probability that a bound fails."""
    return real("delta", value, above=0.0, below=1.0)


def tail(delay: Any) -> SubExponential:
    """Return the sub-exponential parameters of `delay`; raise InvalidInputError if it has none."""
    delay = any_delay("delay", delay)
    if not isinstance(delay, IndependentDelays):
        raise InvalidInputError(
            f"delay must be independent and identically distributed for the theorems to apply; {delay.label} is not"
        )
    found = delay.subexponential()
    if found is None:
        raise InvalidInputError(
            f"delay must have sub-exponential tails for the theorems to apply; {delay.label} does not"
        )
    return found


class ConservativeSettingsWarning(UserWarning):
    """The theorems' settings cover every problem, so they explore far more than most problems need."""


def accepted(problem: Any) -> tuple[int, int]:
    """Return d and H of `problem`; raise InvalidInputError unless the theorems apply to it."""
    if not isinstance(problem, TableProblem):
        raise refuse("problem", problem, "a TableProblem, as that of a FiniteMDP")
    longest = float(np.linalg.norm(problem.features, axis=-1).max())
    if longest > 1.0 + 1e-9:
        raise InvalidInputError(f"features must have norm at most 1 for the theorems to apply, got {longest:.6g}")
    return problem.dimension, problem.horizon


def warn_of_width(what: str, width: float, horizon: int) -> None:
    """Warn the caller of `from_theory` that draws are as wide as `width`."""
    visits = (width / horizon) ** 2
    warnings.warn(
        f"the theorem sets {what}: until each direction has been visited about {visits:.1g} times, draws are wider "
        f"than H = {horizon}, the maximum value, and exploration is close to uniform; a few draws of "
        "width about 1 learn far faster, without the guarantee",
        ConservativeSettingsWarning,
        stacklevel=3,
    )


#: C_d counts a net of the unit ball of features; the Langevin proof halves its mesh.
PSVI_NET, LPSVI_NET = 8.0, 16.0
#: ν = C for exact draws; √γ = 4C for Langevin chains, whose covariance may be as small as γ/4 times Ω⁻¹.
PSVI_RATIO, LPSVI_RATIO = 1.0, 4.0


def rounds(delta: float, horizon: int, episodes: int) -> int:
    """Return M = log(4HK/δ)/log(64/63), rounded up: the number of draws in Theorems 1 and 2.

    From Lemma "Optimism": a draw is optimistic with probability at least 1/64, so that all M miss with
    probability (63/64)^M <= δ/(4HK), for each of the HK steps. Rounding up is ours.

    The proof uses the probability 1/64 for all pairs (s, a) at once, which a single draw does not have when d is large:
    φᵀw must be large enough for each pair, not one normal variable. The number is nevertheless right for any finite
    problem of ordinary size. For one pair the probability is P(N(0, 1) >= 1) = 0.159, and a union over S·A pairs needs
    S·A·0.841^M <= δ/(4HK), which M satisfies whenever S·A <= (4HK/δ)^9.9.

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
    It is covered by slack in the proof: a value in [0, H] is H/2-sub-Gaussian, not H-, and the mesh of the net of
    values is √K times finer than needed.
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
        """Number of times F was applied."""
        return len(self.iterates) - 1


def psvi_concentration(dimension: int, horizon: int, episodes: int, delta: float) -> FixedPoint:
    """Return C_{δ/4} of Theorem 1, which is also its width of draws ν.

    The definition is circular. A wider draw has larger weights, larger weights enlarge the class of values that must be
    covered, and the width must match the error that the cover allows:

        ν = C_{δ/4},  C_{δ/4} = F(ν) = √(8H²[... + dM log(1 + 2√(8K³) W(ν)/H) + ...]) + 2√d H,
        W(ν) = C_{H,d,K,M,δ/4} = 2H√(dK) + ν(√(2d) + √(2 log(4M/δ)))

    The paper leaves it implicit, since ν is inside a logarithm; the solution is ours. F is positive at 0, increasing
    and concave, and grows more slowly than ν. So it meets the diagonal once, and the iterates from 0 increase to that
    point. Its slope there is about 1/(2 log(...)): each iteration gains more than a digit.

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
    """Return √(2w² log(16 C_d HMK/δ)), the bound on R1: the maximum distance of M draws from the mean."""
    radius = net * (width * math.sqrt(2 * math.log(16 / delta)) + horizon * math.sqrt(dimension))
    log_net = dimension * math.log1p(radius * float(episodes) ** 3)
    return width * math.sqrt(2 * (math.log(16 * horizon * draws * episodes / delta) + log_net))


def delay_bound(delay: DelayDistribution, episodes: int, delta: float) -> float:
    """Return E[τ] + D_{τ,K,δ}, which with probability 1 - δ none of K delays exceeds.

    D_{τ,K,δ} = max{√(2v² L), 2bL} with L = log(3K/(2δ))   (Lemma "Sub-exponential tail bound")

    The paper prints the minimum of the two, which is a typo: a distribution bounded in [0, n] has b = 0, for which the
    minimum would say that no delay exceeds the mean. The maximum follows from the tail min{exp(-t²/2v²), exp(-t/2b)},
    whichever applies at t.
    """
    parameters, log = tail(delay), _log_term(episodes, delta)
    return delay.mean + max(parameters.v * math.sqrt(2 * log), 2 * parameters.b * log)


def _log_term(episodes: int, delta: float) -> float:
    return math.log(1.5 * size("episodes", episodes) / level(delta))


def missing_bound(delay: DelayDistribution, episodes: int, delta: float) -> float:
    """Return a bound on max_k U_k, the maximum amount of feedback in flight, that holds with probability 1 - δ.

    U_k = Σ_{s <= k} 1{s + τ_s > k} <= E[τ] + 2√(2E[τ]L) + (4/3)L with L = log(3K/(2δ))

    The last lemma of Appendix D, "Delayed feedback". U_k is a sum of independent indicators with expectation at most
    E[τ], so this is Bernstein's inequality, applied twice: only the mean of the delay matters. Without delay nothing is
    in flight, and 0 is returned.
    """
    tail(delay)
    log = _log_term(episodes, delta)
    if delay.mean == 0:
        return 0.0
    return delay.mean + 2 * math.sqrt(2 * delay.mean * log) + 4 / 3 * log


def delay_term(delay: DelayDistribution, horizon: int, episodes: int, delta: float) -> float:
    """Return D_{τ,δ,H,K} = 1 + 2E[τ] + 2√(2E[τ]L) + (4/3)L + D_{τ,K,δ/(16H)} with L = log(24KH/δ).

    Lemma "Bounding the delayed error": 1 + max U_k + max τ_k, each bounded at the level δ/(16H). It bounds the excess
    of (Ω_k)⁻¹ over the inverse of the full matrix, which is zero without delay: 0 is returned then, where the printed
    formula would give 1 + (4/3)L.
    """
    share = level(delta) / (16 * size("horizon", horizon))
    late = missing_bound(delay, episodes, share) + delay_bound(delay, episodes, share)
    return 1 + late if delay.mean else 0.0


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


def temperature(dimension: int, horizon: int, episodes: int, delta: float) -> float:
    """Return γ = 16 C²_{δ/4} of Theorem 2.

    16 because the covariance of a chain may be as small as γ/4 times Ω⁻¹, and half of its width must cover the error of
    the mean; the other half covers the remaining influence of the chain's start.
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
    """Steps to forget the start, for optimism: log(32H²(K + 1)dk/γ + 1)/(2ρ)."""
    spread: float
    """Steps to reach half the stationary covariance: log 2/(2ρ)."""
    accuracy: float
    """Steps to bring the mean within 1/(2K³) of ŵ: log(4HK³√(dK))/ρ."""

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


@dataclass(frozen=True)
class RegretBound:
    """A bound on the regret over all episodes that holds with probability 1 - δ, as the sum of its terms."""

    transitions: float
    """The randomness of the transitions (Azuma-Hoeffding): √(2H³K log(8/δ)); 0 for bandits."""
    learning: float
    """The error without delay: βH√(2dK log((d + K)/d))."""
    delay: float
    """The additional error due to delay: βdH D_{τ,δ,H,K} log((d + K)/d)."""
    net: float
    """The discretisation error of the nets: H/K²."""

    @property
    def total(self) -> float:
        return self.transitions + self.learning + self.delay + self.net


def psvi_regret_bound(
    dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> RegretBound:
    """Return the bound of Theorem 1 on the regret of Delayed-PSVI.

    R <= √(2H³K log(8/δ)) + βH√(2dK log((d + K)/d)) + βdH D_{τ,δ,H,K} log((d + K)/d) + H/K²

    This is the last line of the proof before its constants are absorbed into c√(d³H³Tι) + c'd²H²E[τ]ι + c''ι, with β of
    `psvi_beta`. In the first term, |ζ| <= 2H is read as a range of length 2H, for which the constant is right.
    """
    return _chain(psvi_beta(dimension, horizon, episodes, delta), dimension, horizon, episodes, delta, delay)


def lpsvi_regret_bound(
    dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution
) -> RegretBound:
    """Return the bound of Theorem 2 on the regret of Delayed-LPSVI: as Theorem 1, with β of `lpsvi_beta`."""
    return _chain(lpsvi_beta(dimension, horizon, episodes, delta), dimension, horizon, episodes, delta, delay)


def expected_regret_bound(dimension: int, horizon: int, episodes: int, delay: DelayDistribution) -> float:
    """Return the bound of Corollary 1 on the expected regret of Delayed-PSVI: A + 1, A that of Theorem 1 at δ = 1/(HK).

    Regret exceeds A with probability at most 1/(HK), and never exceeds HK, which adds at most 1. The expectation is
    over data and draws, for a fixed problem; the Bayesian regret, over problems drawn from a prior, is no larger. The
    settings are those of Theorem 1 for that δ.

    >>> from belated import Poisson
    >>> theirs = psvi_regret_bound(5, 5, 1000, delta=1 / 5000, delay=Poisson(50))
    >>> expected_regret_bound(5, 5, 1000, Poisson(50)) == theirs.total + 1
    True
    """
    most = integer("horizon · episodes", size("horizon", horizon) * size("episodes", episodes), at_least=2)
    return psvi_regret_bound(dimension, horizon, episodes, 1 / most, delay).total + 1


class ArbitraryDelayBound(NamedTuple):
    """The order of regret under arbitrary independent delays, without constants and logarithms: not a bound."""

    q: float
    """The fraction of feedback that is waited for."""
    quantile: int
    """d_τ(q), the q-quantile of the delays."""
    learning: float
    """√(d³H³T)/q."""
    delay: float
    """dH² d_τ(q)."""

    @property
    def total(self) -> float:
        return self.learning + self.delay


def arbitrary_delay_bound(
    dimension: int, horizon: int, episodes: int, delay: DelayDistribution, q: float | None = None
) -> ArbitraryDelayBound:
    """Return √(d³H³T)/q + dH² d_τ(q), the order that the paper states for delays of any distribution, T = HK.

    d_τ(q) is the `q`-quantile of the delay; without `q`, the one that minimises the sum is used, out of 10 000 levels.
    The paper gives only the order, for a variant that switches policies rarely, and neither constants nor a proof.
    Unlike Theorems 1 and 2 it does not need a finite mean delay.

    >>> from belated import Pareto
    >>> found = arbitrary_delay_bound(10, 20, 5000, Pareto(shape=1, scale=500))
    >>> round(found.q, 2), found.quantile, f"{found.total:.3g}"
    (0.4, 833, '5.57e+06')
    """
    d, h, k = size("dimension", dimension), size("horizon", horizon), size("episodes", episodes)
    distribution = independent("delay", delay)
    if q is None:
        waits = np.unique(distribution.quantiles(np.arange(1, 10_001) / 10_000))
        waits = waits[waits < NEVER]
        if not waits.size:
            raise InvalidInputError(f"delay must let some feedback arrive; {distribution.label} does not")
        levels = distribution.cdfs(waits)
    else:
        levels = np.array([real("q", q, above=0.0, at_most=1.0)])
        waits = distribution.quantiles(levels)
        if waits[0] >= NEVER:
            raise refuse("q", q, f"a fraction of feedback that arrives eventually under {distribution.label}")
    learning = math.sqrt(float(d) ** 3 * float(h) ** 4 * k) / levels
    late = d * float(h) ** 2 * waits
    best = int(np.argmin(learning + late))
    return ArbitraryDelayBound(float(levels[best]), int(waits[best]), float(learning[best]), float(late[best]))


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
    value, so nothing must be covered and the definition of the width is not circular; B-sub-Gaussian noise replaces the
    values in the self-normalised bound, and ‖θ‖ <= √d is the assumption of the linear MDP:

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


class Row(NamedTuple):
    symbol: str
    meaning: str
    value: float


@dataclass(frozen=True)
class Bounds:
    """The settings and bounds of Theorems 1 and 2 for one problem; see the functions that compute them."""

    dimension: int
    horizon: int
    episodes: int
    delta: float
    delay: DelayDistribution
    rounds: int
    """M, see `rounds`."""
    concentration: FixedPoint
    """C_{δ/4} = ν of Theorem 1, see `psvi_concentration`."""
    weight_bound: float
    """C_{H,d,K,M,δ/4} at that ν."""
    beta: float
    """β of Theorem 1."""
    max_delay: float
    """Bound on the longest of K delays, at level δ."""
    max_missing: float
    """Bound on the maximum amount of feedback in flight, at level δ."""
    delay_term: float
    """D_{τ,δ,H,K}."""
    potential: float
    """Elliptical potential bound of one step."""
    delayed_error: float
    """Bound on the sum of ‖φ‖ in the norm of Ω⁻¹."""
    psvi_regret: RegretBound
    langevin_concentration: FixedPoint
    """C_{δ/4} of Theorem 2."""
    temperature: float
    """γ of Theorem 2."""
    condition: float
    """The maximum κ."""
    chain: ChainLength
    """N_K at that κ."""
    langevin_beta: float
    """β of Theorem 2."""
    lpsvi_regret: RegretBound
    bandit_regret: RegretBound
    """Regret bound of a linear bandit with K pulls and 1-sub-Gaussian noise."""

    @property
    def worst_regret(self) -> int:
        """HK, the maximum regret: a larger bound is vacuous."""
        return self.horizon * self.episodes

    def to_rows(self) -> list[Row]:
        """Return a row for each quantity, with its symbol and its meaning."""
        tails, psvi, lpsvi = tail(self.delay), self.psvi_regret, self.lpsvi_regret
        return [
            Row("d", "dimension of the features", self.dimension),
            Row("H", "steps per episode", self.horizon),
            Row("K", "episodes", self.episodes),
            Row("δ", "probability that a bound fails", self.delta),
            Row("E[τ]", "expected delay", self.delay.mean),
            Row("v", "sub-exponential parameter of the delay", tails.v),
            Row("b", "sub-exponential parameter of the delay", tails.b),
            Row("max τ", "longest delay", self.max_delay),
            Row("max U", "maximum feedback in flight", self.max_missing),
            Row("D", "delay term of the regret", self.delay_term),
            Row("M", "draws per step", self.rounds),
            Row("ν", "width of the draws, Delayed-PSVI", self.concentration.value),
            Row("n", "iterations that solved for ν", self.concentration.iterations),
            Row("C_w", "norm of the drawn weights", self.weight_bound),
            Row("β", "error of action values over ‖φ‖, Delayed-PSVI", self.beta),
            Row("Σ‖φ‖²", "elliptical potential of one step", self.potential),
            Row("Σ‖φ‖", "delayed error of all steps", self.delayed_error),
            Row("R₁", "regret bound of Delayed-PSVI", psvi.total),
            Row("R₁ (τ)", "its part due to delay", psvi.delay),
            Row("γ", "temperature, Delayed-LPSVI", self.temperature),
            Row("n_γ", "iterations that solved for γ", self.langevin_concentration.iterations),
            Row("κ", "maximum condition number of Ω", self.condition),
            Row("η", "step size at the maximum λ_max", 0.25 / self.condition),
            Row("N₁", "steps of a chain, for optimism", self.chain.optimism),
            Row("N₂", "steps of a chain, for half the spread", self.chain.spread),
            Row("N₃", "steps of a chain, for the mean", self.chain.accuracy),
            Row("N", "steps of a chain, the maximum rounded up", self.chain.steps),
            Row("β_L", "error of action values over ‖φ‖, Delayed-LPSVI", self.langevin_beta),
            Row("R₂", "regret bound of Delayed-LPSVI", lpsvi.total),
            Row("R₂ (τ)", "its part due to delay", lpsvi.delay),
            Row("R_b", "regret bound of a linear bandit, K pulls, noise 1", self.bandit_regret.total),
            Row("HK", "maximum regret", self.worst_regret),
        ]

    def table(self) -> str:
        rows = [(row.symbol, row.meaning, f"{row.value:.4g}") for row in self.to_rows()]
        wide = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}" for a, b, c in rows)


def bounds(dimension: int, horizon: int, episodes: int, delta: float, delay: DelayDistribution) -> Bounds:
    """Return all settings and bounds of the theorems.

    >>> from belated import Poisson
    >>> found = bounds(dimension=5, horizon=5, episodes=1000, delta=0.05, delay=Poisson(50))
    >>> found.rounds, round(found.max_missing)
    (820, 128)
    >>> found.psvi_regret.total > found.worst_regret
    True
    """
    sizes = size("dimension", dimension), size("horizon", horizon), size("episodes", episodes)
    d, h, k = sizes
    delta = level(delta)
    draws, fixed = rounds(delta, h, k), psvi_concentration(*sizes, delta)
    return Bounds(
        *sizes,
        delta=delta,
        delay=delay,
        rounds=draws,
        concentration=fixed,
        weight_bound=weight_bound(d, h, k, draws, delta / 4, fixed.value),
        beta=psvi_beta(*sizes, delta),
        max_delay=delay_bound(delay, k, delta),
        max_missing=missing_bound(delay, k, delta),
        delay_term=delay_term(delay, h, k, delta),
        potential=potential_bound(d, k),
        delayed_error=delayed_error_bound(*sizes, delta, delay),
        psvi_regret=psvi_regret_bound(*sizes, delta, delay),
        langevin_concentration=lpsvi_concentration(*sizes, delta),
        temperature=temperature(*sizes, delta),
        condition=condition_bound(k),
        chain=chain_length(*sizes, delta),
        langevin_beta=lpsvi_beta(*sizes, delta),
        lpsvi_regret=lpsvi_regret_bound(*sizes, delta, delay),
        bandit_regret=bandit_regret_bound(d, k, delta, delay),
    )
