"""Comparison of draws with the Gaussian distribution they ought to have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def assert_distribution(
    draws: npt.NDArray[np.float64],
    mean: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.floating[Any]],
    errors: float = 5.0,
) -> None:
    """Compare the first two moments of independent Gaussian draws, within so many of their own standard errors."""
    n = len(draws)
    variance = np.diag(covariance)
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= errors * np.sqrt(variance / n))
    empirical = (draws - mean).T @ (draws - mean) / n
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / n)
    assert np.all(np.abs(empirical - covariance) <= errors * spread)
