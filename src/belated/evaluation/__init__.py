"""Estimates with honest intervals from arrays of results, one row per seed."""

from belated.evaluation.convergence import Convergence, episodes_to_best, first_reaching, upon_convergence
from belated.evaluation.intervals import Band, Estimate, bootstrap, difference, mean_interval, statistic_interval
from belated.evaluation.regret import cumulative_regret, gaps, growth_exponent

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
    "mean_interval",
    "statistic_interval",
    "upon_convergence",
]
