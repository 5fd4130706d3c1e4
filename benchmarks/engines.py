"""Speed-up of the backends: processes over one job, Ray over processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from belated.agents import DelayedPSVI
from belated.delays import Poisson
from belated.environments import SyntheticLinearMDP
from belated.runner import Experiment, run_experiment
from belated_studies.timing import seconds
from benchmarks.measure import Measure, at_least, at_most, interleaved, ratios, unmeasured
from benchmarks.problems import Effort

_SECONDS = 2.0
"""Approximate seconds of a run."""
_RUNS = 8


def engines(effort: Effort) -> list[Measure]:
    """Compare the backends that play many runs: processes and, if installed, Ray; skipped with --quick.

    All backends start warm: their workers are running, and every kernel is cached and loaded. They are interleaved, so
    that a busy moment of the machine does not affect only one of them.
    """
    if not effort.patient:
        return [unmeasured("engines", "it takes minutes; run without --quick")]
    with _ray() as there:
        turns = [("processes", 1), ("processes", 2), *([("ray", 2)] if there else [])]
        sweep = _sweep(_episodes())
        for backend, jobs in turns:
            _timed(_sweep(100, runs=2 * jobs), backend, jobs)  # starts the workers and loads the kernels
        one, two, *cluster = interleaved(
            min(effort.repeats, 3), *(lambda turn=turn: _timed(sweep, *turn) for turn in turns)
        )
    gain = Measure("processes: two jobs over one", ratios(one, two), target=at_least(1.8), note="throughput")
    name = "Ray on this machine over processes"
    return [gain, *(Measure(name, ratios(ray, two), target=at_most(1.3), note="time") for ray in cluster)]


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
    """Return the number of episodes that take about `_SECONDS`."""
    trial = 1000
    (first, second) = (_timed(_sweep(trial, runs=1), "threads", 1) for _ in range(2))
    return max(trial, round(trial * _SECONDS / min(first, second)))


def _timed(sweep: Experiment, backend: str, jobs: int) -> float:
    return seconds(lambda: run_experiment(sweep, backend=backend, jobs=jobs, progress=False))
