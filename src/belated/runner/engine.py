"""Running experiments: over the cores, with progress, resumable at any moment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits

from belated.algorithms import Settings
from belated.delays import DelayLaw
from belated.environments import FiniteMDP
from belated.errors import BelatedError
from belated.runner.experiment import Experiment, Run
from belated.runner.loop import simulate
from belated.runner.results import Results
from belated.runner.store import Store
from belated.types import Algorithm
from belated.validate import choice, integer

BACKENDS = {"threads": "threading", "processes": "loky"}


class Stopped(BaseException):
    """Raised inside a run to end it early; like KeyboardInterrupt, it is not an error."""


def run(
    environment: FiniteMDP | Sequence[FiniteMDP] | Mapping[str, FiniteMDP],
    agents: Mapping[str, Algorithm],
    delay: DelayLaw | Sequence[DelayLaw] | Mapping[str, DelayLaw],
    *,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    folder: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Results:
    """Play every agent under every delay for every seed and return the rows.

    Agents with the same seed meet the same environment randomness and the same delays. With a `folder`, each
    finished run is kept there at once, and what is already there is not played again.

    >>> from belated import DelayedPSVI, Poisson, RandomPolicy, RiverSwim
    >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
    >>> results = run(RiverSwim(), agents, Poisson(5), episodes=300, seeds=3, progress=False)
    >>> results.summary().select("agent", "seeds").rows()
    [('psvi', 3), ('random', 3)]
    """
    experiment = Experiment(
        name="run", environments=environment, agents=agents, delays=delay, episodes=episodes, seeds=seeds
    )
    return run_experiment(experiment, folder=folder, jobs=jobs, progress=progress)


def run_experiment(
    experiment: Experiment,
    *,
    folder: str | Path | None = None,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool = True,
) -> Results:
    """Play all runs of `experiment` that `folder` does not have yet, and return all rows.

    `jobs` is the number of runs at a time (default: one a core). `backend` is "threads", the default for the library's
    algorithms, whose kernels run side by side in one process, or "processes", the default for agents written
    in Python.
    """
    runs = experiment.runs()
    workers = integer("jobs", (os.cpu_count() or 1) if jobs is None else jobs, at_least=1)
    compiled = all(getattr(type(run.algorithm), "start", None) is Settings.start for run in runs)
    kind = choice("backend", backend or ("threads" if compiled else "processes"), BACKENDS)
    store = None if folder is None else Store(folder)
    kept = {} if store is None else {each.id: store.read(each) for each in runs}
    rows = {identity: frame for identity, frame in kept.items() if frame is not None}
    missing = [each for each in runs if each.id not in rows]
    with _progress_bar(experiment.name, runs, len(runs) - len(missing), progress) as advance:
        rows.update(_play_all(missing, store, workers, kind, advance))
    return Results(pl.concat([_labelled(each, rows[each.id]) for each in runs]))


def _play_all(
    runs: list[Run], store: Store | None, workers: int, kind: str, advance: Callable[[int], None]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each run as it finishes; on interruption, end the others at their next block."""
    if not runs:
        return
    stop = threading.Event()

    def watch(played: int) -> None:
        if stop.is_set():
            raise Stopped
        advance(played)

    inside = kind == "threads"
    pool = Parallel(n_jobs=min(workers, len(runs)), backend=BACKENDS[kind], return_as="generator_unordered")
    with threadpool_limits(1 if inside else None):  # BLAS threads would only compete with the runs
        finished = pool(delayed(play)(run, store, watch if inside else None) for run in runs)
        try:
            for identity, frame in finished:
                if not inside:
                    advance(frame.height)
                yield identity, frame
        except BaseException:
            stop.set()
            raise


def play(run: Run, store: Store | None, watch: Callable[[int], None] | None) -> tuple[str, pl.DataFrame]:
    """Play one run and keep its rows; an error names the run."""
    try:
        with threadpool_limits(1 if watch is None else None):
            rows = simulate(
                run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=run.seed, watch=watch
            )
    except BelatedError as error:
        raise type(error)(f"{run.id}: {error}") from error
    if store is not None:
        store.write(run, rows)
    return run.id, rows


def _labelled(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        pl.lit(run.environment_label).alias("environment"),
        pl.lit(run.delay_label).alias("delay_law"),
        pl.lit(run.agent_label).alias("agent"),
        pl.lit(run.seed, dtype=pl.Int64).alias("seed"),
        pl.all(),
    )


@contextmanager
def _progress_bar(name: str, runs: list[Run], done: int, show: bool) -> Iterator[Callable[[int], None]]:
    """Show episodes played, time so far and time to go; nothing when the output is not a terminal."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} episodes"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not (show and console.is_terminal),
    )
    with bar:
        episodes = sum(run.episodes for run in runs)
        task = bar.add_task(name, total=episodes, completed=done * (runs[0].episodes if runs else 0))
        yield lambda played: bar.advance(task, played)
