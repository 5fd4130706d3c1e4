"""Written by tools/exports.py: which name comes from where."""

from ._callbacks import Callback as Callback
from ._callbacks import JSONLines as JSONLines
from ._callbacks import MLflow as MLflow
from ._callbacks import TensorBoard as TensorBoard
from ._callbacks import WandB as WandB
from ._executor import run as run
from ._executor import run_experiment as run_experiment
from ._experiment import Experiment as Experiment
from ._experiment import Run as Run
from ._experiment import file_name as file_name
from ._results import Results as Results
from ._simulation import Observed as Observed
from ._simulation import Plan as Plan
from ._simulation import Simulation as Simulation
from ._simulation import simulate as simulate
from ._store import Store as Store
from ._summary import Summary as Summary
from ._tuning import Outcome as Outcome
from ._tuning import Rung as Rung
from ._tuning import Search as Search
from ._tuning import Space as Space
from ._tuning import load_search as load_search
from ._tuning import load_winners as load_winners
from ._tuning import tune as tune

__all__ = [
    "Callback",
    "Experiment",
    "JSONLines",
    "MLflow",
    "Observed",
    "Outcome",
    "Plan",
    "Results",
    "Run",
    "Rung",
    "Search",
    "Simulation",
    "Space",
    "Store",
    "Summary",
    "TensorBoard",
    "WandB",
    "file_name",
    "load_search",
    "load_winners",
    "run",
    "run_experiment",
    "simulate",
    "tune",
]
