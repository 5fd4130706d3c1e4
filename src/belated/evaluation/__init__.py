"""Estimates with confidence intervals from arrays of results, one row per seed."""

from belated.evaluation._curves import (
    Convergence,
    cumulative_regret,
    episodes_to_best,
    first_reaching,
    gaps,
    growth_exponent,
    upon_convergence,
)
from belated.evaluation._intervals import Band, Estimate, bootstrap, difference, mean_interval, statistic_interval
from belated.evaluation._tasks import interquartile_mean, performance_profile, probability_of_improvement

__all__ = [
    "Band",
    "Convergence",
    "Estimate",
    "bootstrap",
    "cumulative_regret",
    "difference",
    "episodes_to_best",
    "first_reaching",
    "gaps",
    "growth_exponent",
    "interquartile_mean",
    "mean_interval",
    "performance_profile",
    "probability_of_improvement",
    "statistic_interval",
    "upon_convergence",
]
