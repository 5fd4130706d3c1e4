"""All settings and bounds of the theorems for one problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from belated.delays._base import DelayDistribution
from belated.theory._constants import (
    FixedPoint,
    lpsvi_beta,
    lpsvi_concentration,
    psvi_beta,
    psvi_concentration,
    rounds,
    weight_bound,
)
from belated.theory._delay import delay_bound, delay_term, delayed_error_bound, missing_bound, potential_bound
from belated.theory._langevin import ChainLength, chain_length, condition_bound, temperature
from belated.theory._regret import RegretBound, bandit_regret_bound, lpsvi_regret_bound, psvi_regret_bound
from belated.theory._settings import level, size, tail


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
    """Bound on the most feedback in flight at once, at level δ."""
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
    """Of a linear bandit of K pulls whose noise is 1-sub-Gaussian."""

    @property
    def worst_regret(self) -> int:
        """HK, the maximum regret: a larger bound is vacuous."""
        return self.horizon * self.episodes

    def to_rows(self) -> list[Row]:
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
            Row("max U", "most feedback in flight at once", self.max_missing),
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
            Row("R_b", "regret bound of a linear bandit of K pulls, noise 1", self.bandit_regret.total),
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
