"""What the engines cost and gain: processes over one job, Ray over processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from belated.algorithms import DelayedPSVI
from belated.delays import Poisson
from belated.environments import SyntheticLinearMDP
from belated.runner import Experiment, run_experiment

_SECONDS = 2.0
"""How long a run takes, about."""
_RUNS = 8


def engines(repeats: int) -> list[tuple[str, list[float], str, str]]:
    """Return a name, the ratio of each repeat, its unit and the target, for processes and, if installed, for Ray.

    All engines start warm: their workers are up, and every kernel is in the cache on disk and loaded once. They take
    turns, so that a busy moment of the machine does not fall on one of them alone.
    """
    with _ray() as there:
        turns = [("processes", 1), ("processes", 2), *([("ray", 2)] if there else [])]
        sweep = _sweep(_episodes())
        for backend, jobs in turns:
            _timed(_sweep(100, runs=2 * jobs), backend, jobs)  # starts the workers and loads the kernels
        seconds = [[_timed(sweep, backend, jobs) for backend, jobs in turns] for _ in range(repeats)]
    measures = [
        ("processes: two jobs over one", [one / two for one, two, *_ in seconds], "× throughput", "at least 1.8")
    ]
    if there:
        costs = [ray / two for _, two, ray in seconds]
        measures.append(("Ray on this machine over processes", costs, "× time", "at most 1.3"))
    return measures


@contextmanager
def _ray() -> Iterator[bool]:
    """Start Ray on two cores of this machine, if it is installed."""
    try:
        import ray
    except ImportError:
        yield False
        return
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield True
    finally:
        ray.shutdown()


def _sweep(episodes: int, runs: int = _RUNS) -> Experiment:
    return Experiment(
        name="engines",
        environments=SyntheticLinearMDP(actions=20),
        agents={"psvi": DelayedPSVI()},
        delays=Poisson(50),
        episodes=episodes,
        seeds=runs,
    )


def _episodes() -> int:
    """Return how many episodes take about `_SECONDS`."""
    trial = 1000
    (first, second) = (_timed(_sweep(trial, runs=1), "threads", 1) for _ in range(2))
    return max(trial, round(trial * _SECONDS / min(first, second)))


def _timed(sweep: Experiment, backend: str, jobs: int) -> float:
    begun = time.perf_counter()
    run_experiment(sweep, backend=backend, jobs=jobs, progress=False)
    return time.perf_counter() - begun
