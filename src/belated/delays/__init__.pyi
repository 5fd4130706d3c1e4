"""Written by tools/exports.py: which name comes from where."""

from ._base import NEVER as NEVER
from ._base import DelayDistribution as DelayDistribution
from ._base import IndependentDelays as IndependentDelays
from ._base import SubExponential as SubExponential
from ._distributions import Constant as Constant
from ._distributions import Geometric as Geometric
from ._distributions import Lossy as Lossy
from ._distributions import Mixture as Mixture
from ._distributions import Multinomial as Multinomial
from ._distributions import NegativeBinomial as NegativeBinomial
from ._distributions import Pareto as Pareto
from ._distributions import Poisson as Poisson
from ._distributions import Uniform as Uniform
from ._outcome import DelayByAction as DelayByAction
from ._outcome import DelayByReward as DelayByReward
from ._outcome import OutcomeDelays as OutcomeDelays
from ._queue import FeedbackQueue as FeedbackQueue
from ._queue import arrival_schedule as arrival_schedule
from ._recorded import Empirical as Empirical
from ._recorded import Fixed as Fixed
from ._registry import DELAYS as DELAYS
from ._registry import delay_from_dict as delay_from_dict
from ._registry import delay_from_text as delay_from_text
from ._time_varying import Backlog as Backlog
from ._time_varying import Bursts as Bursts
from ._time_varying import Drift as Drift
from ._time_varying import Outages as Outages
from ._time_varying import Periodic as Periodic

__all__ = [
    "DELAYS",
    "NEVER",
    "Backlog",
    "Bursts",
    "Constant",
    "DelayByAction",
    "DelayByReward",
    "DelayDistribution",
    "Drift",
    "Empirical",
    "FeedbackQueue",
    "Fixed",
    "Geometric",
    "IndependentDelays",
    "Lossy",
    "Mixture",
    "Multinomial",
    "NegativeBinomial",
    "Outages",
    "OutcomeDelays",
    "Pareto",
    "Periodic",
    "Poisson",
    "SubExponential",
    "Uniform",
    "arrival_schedule",
    "delay_from_dict",
    "delay_from_text",
]
