"""belated: reinforcement learning and bandits for rewards that arrive late."""

from belated.algorithms import (
    ALGORITHMS,
    DelayedLPSVI,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    FixedPolicy,
    Greedy,
    RandomPolicy,
    load_agent,
    save_agent,
)
from belated.delays import (
    Constant,
    DelayBuffer,
    DelayLaw,
    Empirical,
    Fixed,
    Geometric,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
)
from belated.environments import (
    DeepSea,
    FiniteMDP,
    RandomLinearMDP,
    RiverSwim,
    SyntheticLinearMDP,
)
from belated.errors import BelatedError, DamagedFileError, InvalidInputError, UnknownNameError
from belated.posterior import GaussianPosterior
from belated.runner import Experiment, Results, run, run_experiment, simulate
from belated.types import Agent, Algorithm, Feedback, Policy, Problem, Trajectory

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "Agent",
    "Algorithm",
    "BelatedError",
    "Constant",
    "DamagedFileError",
    "DeepSea",
    "DelayBuffer",
    "DelayLaw",
    "DelayedLPSVI",
    "DelayedPSVI",
    "DelayedUCBVI",
    "Empirical",
    "EpsilonGreedy",
    "Experiment",
    "Feedback",
    "FiniteMDP",
    "Fixed",
    "FixedPolicy",
    "GaussianPosterior",
    "Geometric",
    "Greedy",
    "InvalidInputError",
    "Lossy",
    "Mixture",
    "Multinomial",
    "NegativeBinomial",
    "Pareto",
    "Poisson",
    "Policy",
    "Problem",
    "RandomLinearMDP",
    "RandomPolicy",
    "Results",
    "RiverSwim",
    "SyntheticLinearMDP",
    "Trajectory",
    "Uniform",
    "UnknownNameError",
    "load_agent",
    "run",
    "run_experiment",
    "save_agent",
    "simulate",
]
