"""Runs, experiments, and the engine that plays them."""

from belated.runner.engine import run, run_experiment
from belated.runner.experiment import Experiment, Run
from belated.runner.loop import simulate
from belated.runner.results import Results
from belated.runner.store import Store

__all__ = ["Experiment", "Results", "Run", "Store", "run", "run_experiment", "simulate"]
