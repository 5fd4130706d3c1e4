"""Written by tools/exports.py: which name comes from where."""

from ._callbacks import Callback as Callback
from ._executor import run as run
from ._executor import run_experiment as run_experiment
from ._experiment import Experiment as Experiment
from ._experiment import Run as Run
from ._observer import Observed as Observed
from ._observer import Plan as Plan
from ._results import Results as Results
from ._simulation import Simulation as Simulation
from ._simulation import simulate as simulate
from ._sinks import JSONLines as JSONLines
from ._sinks import MLflow as MLflow
from ._sinks import TensorBoard as TensorBoard
from ._sinks import WandB as WandB
from ._store import Store as Store

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
