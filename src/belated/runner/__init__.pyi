"""Written by tools/exports.py: which name comes from where."""

from .engine import run as run
from .engine import run_experiment as run_experiment
from .experiment import Experiment as Experiment
from .experiment import Run as Run
from .loop import Simulation as Simulation
from .loop import simulate as simulate
from .observer import Observed as Observed
from .observer import Plan as Plan
from .results import Results as Results
from .store import Store as Store

__all__ = [
    "Experiment",
    "Observed",
    "Plan",
    "Results",
    "Run",
    "Simulation",
    "Store",
    "run",
    "run_experiment",
    "simulate",
]
