"""How late feedback is: delay laws, and the buffer that holds what has not arrived yet."""

from belated.delays.base import NEVER, DelayLaw, SubExponential
from belated.delays.buffer import DelayBuffer, arrival_schedule
from belated.delays.composed import Empirical, Fixed, Lossy, Mixture
from belated.delays.laws import (
    Constant,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
)
from belated.delays.outcome import DelayByAction, DelayByReward, OutcomeLaw
from belated.delays.registry import LAWS, law_from_dict, law_from_text

__all__ = [
    "LAWS",
    "NEVER",
    "Constant",
    "DelayBuffer",
    "DelayByAction",
    "DelayByReward",
    "DelayLaw",
    "Empirical",
    "Fixed",
    "Geometric",
    "Lossy",
    "Mixture",
    "Multinomial",
    "NegativeBinomial",
    "OutcomeLaw",
    "Pareto",
    "Poisson",
    "SubExponential",
    "Uniform",
    "arrival_schedule",
    "law_from_dict",
    "law_from_text",
]
