"""Delayed Posterior Sampling for Linear Bandits: Delayed-PSVI and Delayed-LPSVI with a single step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from belated._util.validate import choice, integer, real, refuse
from belated.agents._lpsvi import SAMPLERS, DelayedLPSVI, LPSVIRecord
from belated.agents._psvi import DelayedPSVI, PSVIRecord
from belated.agents._regression import SampledRegression
from belated.theory import accepted, bandit_concentration, rounds, warn_of_width
from belated.types import TableProblem

EXACT = "exact"


@dataclass(frozen=True, kw_only=True)
class DelayedPSLB(SampledRegression):
    """Delayed-PSLB (Kuang et al., 2023): Delayed-PSVI for linear bandits, problems of one step.

    It regresses the rewards that have arrived on the features, draws M weight vectors from the posterior N(θ̂, ν²Ω⁻¹),
    and plays the action with the largest value over all draws. Values are not capped.

    With samplers other than ``"exact"``, the draws are those of Delayed-LPSVI's chains at temperature γ = ν².

    Examples
    --------
    >>> import numpy as np
    >>> from belated import LinearBandit
    >>> bandit = LinearBandit(dimension=4, actions=20)
    >>> agent = DelayedPSLB(scale=0.5).start(bandit.problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (1, 1)
    """

    kind: ClassVar[str] = "pslb"
    one_step: ClassVar[bool] = True

    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    sampler: str = EXACT
    """How weights are drawn: "exact", or by the "plain", "collapsed" or "preconditioned" chains of Delayed-LPSVI."""
    steps: int = 40
    """N, the number of noisy gradient steps of a chain."""
    step_ratio: float = 0.5
    """c_η: the step size of a chain is c_η/λ_max(Ω), or c_η itself when preconditioned."""

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("sampler", self.sampler, (EXACT, *SAMPLERS))
        real("scale", self.scale, at_least=0)
        integer("steps", self.steps, at_least=1)
        real("step_ratio", self.step_ratio, above=0, below=1)

    @classmethod
    def from_theory(cls, problem: TableProblem, episodes: int, delta: float, *, reward_noise: float = 1.0) -> Self:
        """Return the settings of `theory.bandit_regret_bound`: λ = 1, σ = 1, M of `theory.rounds`, ν = C_{δ/4}.

        `reward_noise` is B: rewards are B-sub-Gaussian about their means. B = 1/2 is valid for rewards within [0, 1].
        """
        dimension, horizon = accepted(problem)
        if horizon != 1:
            raise refuse("the problem's horizon", horizon, "1, since Delayed-PSLB is for bandits")
        draws = rounds(delta, horizon, episodes)
        scale = bandit_concentration(dimension, episodes, delta / 4, reward_noise)
        warn_of_width(f"M = {draws} draws and ν = {scale:.3g}", scale, horizon)
        return cls(draws=draws, scale=scale, noise=1.0, ridge=1.0)

    def record(self, problem: TableProblem) -> PSVIRecord | LPSVIRecord:
        """Return the record of a new agent: that of the general algorithm."""
        return self.general().record(problem)

    def check_learned(self, learned: Any, problem: TableProblem) -> None:
        """Check as the general algorithm does."""
        self.general().check_learned(learned, problem)

    def general(self) -> DelayedPSVI | DelayedLPSVI:
        """Return the algorithm for any horizon that is equivalent on a bandit."""
        if self.sampler == EXACT:
            return DelayedPSVI(
                draws=self.draws, scale=self.scale, noise=self.noise, ridge=self.ridge, cap=False, ties=self.ties
            )
        return DelayedLPSVI(
            draws=self.draws,
            steps=self.steps,
            temperature=float(self.scale) * float(self.scale),  # γ = ν²
            step_ratio=self.step_ratio,
            noise=self.noise,
            ridge=self.ridge,
            sampler=self.sampler,
            cap=False,
            ties=self.ties,
        )
