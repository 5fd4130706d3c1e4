"""Posteriors of linear regression: exact Gaussian draws and Langevin chains."""

from belated._kernels.gaussian import GaussianPosterior

__all__ = ["GaussianPosterior"]
