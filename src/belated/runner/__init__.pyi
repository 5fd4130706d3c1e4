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
from .sinks import JSONLines as JSONLines
from .sinks import MLflow as MLflow
from .sinks import TensorBoard as TensorBoard
from .sinks import WandB as WandB
from .store import Store as Store
from .watching import Callback as Callback

__all__ = [
    "Callback",
    "Experiment",
    "JSONLines",
    "MLflow",
    "Observed",
    "Plan",
    "Results",
    "Run",
    "Simulation",
    "Store",
    "TensorBoard",
    "WandB",
    "run",
    "run_experiment",
    "simulate",
]
