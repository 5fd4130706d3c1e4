"""Written by tools/exports.py: which name comes from where."""

from .base import NEVER as NEVER
from .base import DelayLaw as DelayLaw
from .base import IndependentLaw as IndependentLaw
from .base import SubExponential as SubExponential
from .buffer import DelayBuffer as DelayBuffer
from .buffer import arrival_schedule as arrival_schedule
from .composed import Empirical as Empirical
from .composed import Fixed as Fixed
from .composed import Lossy as Lossy
from .composed import Mixture as Mixture
from .in_time import Backlog as Backlog
from .in_time import Bursts as Bursts
from .in_time import Drift as Drift
from .in_time import Outages as Outages
from .in_time import Periodic as Periodic
from .laws import Constant as Constant
from .laws import Geometric as Geometric
from .laws import Multinomial as Multinomial
from .laws import NegativeBinomial as NegativeBinomial
from .laws import Pareto as Pareto
from .laws import Poisson as Poisson
from .laws import Uniform as Uniform
from .outcome import DelayByAction as DelayByAction
from .outcome import DelayByReward as DelayByReward
from .outcome import OutcomeLaw as OutcomeLaw
from .registry import LAWS as LAWS
from .registry import law_from_dict as law_from_dict
from .registry import law_from_text as law_from_text

__all__ = [
    "LAWS",
    "NEVER",
    "Backlog",
    "Bursts",
    "Constant",
    "DelayBuffer",
    "DelayByAction",
    "DelayByReward",
    "DelayLaw",
    "Drift",
    "Empirical",
    "Fixed",
    "Geometric",
    "IndependentLaw",
    "Lossy",
    "Mixture",
    "Multinomial",
    "NegativeBinomial",
    "Outages",
    "OutcomeLaw",
    "Pareto",
    "Periodic",
    "Poisson",
    "SubExponential",
    "Uniform",
    "arrival_schedule",
    "law_from_dict",
    "law_from_text",
]
