"""Posteriors of linear regression: exact Gaussian draws and Langevin chains."""

from belated.posterior.gaussian import GaussianPosterior

__all__ = ["GaussianPosterior"]
