"""Algorithms with the settings for which the theorems are proved."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from belated.algorithms import DelayedLPSVI, DelayedPSVI
from belated.errors import InvalidInputError
from belated.theory.constants import psvi_concentration, rounds
from belated.theory.langevin import chain_length, temperature
from belated.types import Problem
from belated.validate import refuse


class ConservativeSettingsWarning(UserWarning):
    """The theorems' settings are safe for every problem and so explore far more than yours needs."""


def psvi_from_theory(problem: Problem, episodes: int, delta: float) -> DelayedPSVI:
    """Return Delayed-PSVI as in Theorem 1: λ = 1, σ = 1, M of `rounds`, ν of `psvi_concentration`.

    >>> import warnings
    >>> from belated import RiverSwim
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ConservativeSettingsWarning)
    ...     psvi_from_theory(RiverSwim().problem, episodes=1000, delta=0.05).draws
    908
    """
    horizon, dimension = _accepted(problem)
    draws = rounds(delta, horizon, episodes)
    scale = psvi_concentration(dimension, horizon, episodes, delta).value
    _warn(f"M = {draws} draws and ν = {scale:.3g}", scale, horizon)
    return DelayedPSVI(draws=draws, scale=scale, noise=1.0, ridge=1.0)


def lpsvi_from_theory(problem: Problem, episodes: int, delta: float) -> DelayedLPSVI:
    """Return Delayed-LPSVI as in Theorem 2: λ = 1, σ = 1, η = 1/(4λ_max), w₀ = 0, M, γ and N of `chain_length`.

    The paper's N_k follows the condition number as data arrive; the settings have one N, that of the largest
    κ there can be. Chains of that length are drawn with the sampler "collapsed", which has the same law as the
    plain one and does not walk through the N steps.
    """
    horizon, dimension = _accepted(problem)
    draws = rounds(delta, horizon, episodes)
    gamma = temperature(dimension, horizon, episodes, delta)
    steps = chain_length(dimension, horizon, episodes, delta).steps
    _warn(f"M = {draws} chains of N = {steps} steps and √γ = {math.sqrt(gamma):.3g}", math.sqrt(gamma), horizon)
    return DelayedLPSVI(
        draws=draws,
        steps=steps,
        temperature=gamma,
        step_ratio=0.25,
        noise=1.0,
        ridge=1.0,
        sampler="collapsed",
        warm_start="cold",
    )


def _accepted(problem: Any) -> tuple[int, int]:
    """Return H and d of a problem to which the theorems apply."""
    if not isinstance(problem, Problem):
        raise refuse("problem", problem, "a Problem")
    longest = float(np.linalg.norm(problem.features, axis=-1).max())
    if longest > 1.0 + 1e-9:
        raise InvalidInputError(f"features must have norm at most 1 for the theorems to apply, got {longest:.6g}")
    return problem.horizon, problem.dimension


def _warn(what: str, width: float, horizon: int) -> None:
    visits = (width / horizon) ** 2
    warnings.warn(
        f"the theorem sets {what}: until each direction has been visited about {visits:.1g} times, draws are wider "
        f"than H = {horizon}, the largest value there can be, and exploration is close to uniform; a few draws of "
        "width about 1 learn far sooner, without the guarantee",
        ConservativeSettingsWarning,
        stacklevel=3,
    )
