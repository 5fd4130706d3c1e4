"""Published algorithms that are special cases of this library's, under their usual names."""

from __future__ import annotations

import math

from belated._util.validate import integer, real, refuse
from belated.agents._lpsvi import DelayedLPSVI
from belated.agents._phe import DelayedPHE
from belated.agents._psvi import DelayedPSVI
from belated.agents._ucbvi import DelayedUCBVI
from belated.types import Problem


def lsvi_ucb(
    problem: Problem, episodes: int, *, bonus_scale: float = 1.0, failure: float = 0.05, ridge: float = 1.0
) -> DelayedUCBVI:
    """Return LSVI-UCB (Jin et al., 2020): β = c·d·H·√log(2dT/p), for T = H·K steps and failure probability p.

    >>> from belated import RiverSwim
    >>> round(lsvi_ucb(RiverSwim().problem, 1000, bonus_scale=0.01).bonus, 2)
    8.0
    """
    if not isinstance(problem, Problem):
        raise refuse("problem", problem, "of type Problem")
    steps = problem.horizon * integer("episodes", episodes, at_least=1)
    failure = real("failure", failure, above=0, below=1)
    log = math.log(2 * problem.dimension * steps / failure)
    scale = real("bonus_scale", bonus_scale, at_least=0)
    return DelayedUCBVI(bonus=scale * problem.dimension * problem.horizon * math.sqrt(log), ridge=ridge)


def rlsvi(*, noise: float = 1.0, ridge: float = 1.0) -> DelayedPSVI:
    """Return RLSVI (Osband et al., 2016): one draw from N(ŵ, Ω⁻¹), action values without a cap.

    >>> rlsvi(noise=0.5).draws
    1
    """
    return DelayedPSVI(draws=1, scale=1.0, noise=noise, ridge=ridge, cap=False)


def lsvi_phe(*, perturbation: float = 1.0, draws: int = 2, ridge: float = 1.0) -> DelayedPHE:
    """Return LSVI-PHE (Ishfaq et al., 2021): the maximum of M regressions on targets perturbed with N(0, σ²).

    >>> lsvi_phe(perturbation=0.3).scale
    0.3
    """
    return DelayedPHE(scale=perturbation, draws=draws, noise=1.0, ridge=ridge)


def lmc_lsvi(
    *, inverse_temperature: float = 1.0, steps: int = 40, step_size: float | None = None, ridge: float = 1.0
) -> DelayedLPSVI:
    """Return LMC-LSVI (Ishfaq et al., 2023): one plain Langevin chain per step, warm-started from the last episode.

    >>> lmc_lsvi(inverse_temperature=50.0).temperature
    0.02
    """
    temperature = 1.0 / real("inverse_temperature", inverse_temperature, above=0)
    return DelayedLPSVI(
        draws=1, steps=steps, temperature=temperature, step_size=step_size, ridge=ridge, warm_start="episode"
    )
