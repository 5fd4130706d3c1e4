"""Running experiments: over the cores or over many machines, with progress, resumable at any moment.

Three backends play the runs that are missing. Threads share this process. Processes and Ray play each run in a worker
of its own, which keeps the rows itself; when a worker dies, its run is played again elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from belated._util.progress import progress as telling
from belated._util.validate import choice, integer
from belated.agents._base import CompiledSettings
from belated.environments import FiniteMDP
from belated.errors import InvalidInputError
from belated.runner._callbacks import Callback, Watchers
from belated.runner._experiment import Agents, Delays, Environment, Experiment, Run, labelled_agents
from belated.runner._processes import Processes
from belated.runner._ray import QUEUE, Ray, import_ray
from belated.runner._results import Results
from belated.runner._store import Store, labelled
from belated.runner._threads import in_threads
from belated.runner._workers import in_workers

BACKENDS = ("threads", "processes", "ray")


def run(
    environment: Environment | Sequence[Environment] | Mapping[str, Any],
    agents: Agents,
    delay: Delays,
    *,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    folder: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = True,
    accept_old: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Results:
    """Play every agent under every delay for every seed and return the rows.

    Environments, agents and delays may each be one, a sequence, or a mapping from labels of your own; without labels
    agents have the names of their kinds. Agents with the same seed meet the same environment randomness and the same
    delays. With a `folder`, each finished run is kept there at once, and what is already there is not played again;
    what another belated has left there is refused unless `accept_old`. Each of `callbacks` sees the rows as they come
    (`belated.Callback`).

    >>> from belated import DelayedPSVI, Poisson, RandomPolicy, RiverSwim
    >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
    >>> results = run(RiverSwim(), agents, Poisson(5), episodes=300, seeds=3, progress=False)
    >>> results.summary().select("agent", "seeds").rows()
    [('psvi', 3), ('random', 3)]
    """
    experiment = Experiment(
        name="run",
        environments=environment,
        agents=labelled_agents(agents),
        delays=delay,
        episodes=episodes,
        seeds=seeds,
    )
    return run_experiment(
        experiment, folder=folder, jobs=jobs, progress=progress, accept_old=accept_old, callbacks=callbacks
    )


def run_experiment(
    experiment: Experiment,
    *,
    folder: str | Path | None = None,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool = True,
    accept_old: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Results:
    """Play all runs of `experiment` that `folder` does not have yet, and return all rows.

    `folder` is a path, or an address such as `s3://bucket/rows`. `jobs` is the number of runs at a time (default: one
    a core, of all machines with Ray). `backend` is "threads", the default for the library's algorithms, whose kernels
    run side by side in one process; "processes", the default for agents written in Python; or "ray", for a cluster:
    the one that runs here or that `RAY_ADDRESS` names, else one started on this machine. `progress` is told on stderr:
    as a bar on a terminal, else in a line now and then. Rows and checkpoints that another belated has left in `folder`
    are refused, since it may have given other numbers, unless `accept_old`. `callbacks` are called in this process, one
    at a time: after every block with threads; where workers play, once a run has finished, which is then one block.
    """
    runs, watchers = experiment.runs(), Watchers(callbacks)
    limit = None if jobs is None else integer("jobs", jobs, at_least=1)
    if backend is not None:
        choice("backend", backend, BACKENDS)
    if backend == "ray":
        import_ray()
    store = None if folder is None else Store(folder, accept_old=accept_old)
    if store is not None and store.folder.in_memory and backend in ("processes", "ray"):
        raise InvalidInputError(f"folder must be one that all workers see with backend {backend!r}, got {folder!r}")
    rows = {} if store is None else _kept(store, runs)
    missing = [each for each in runs if each.id not in rows]
    episodes, first = experiment.episodes, "the first use of an algorithm compiles it"
    with (
        closing(watchers),
        telling(
            experiment.name,
            len(runs) * episodes,
            "episodes",
            done=(len(runs) - len(missing)) * episodes,
            first=first,
            show=progress,
        ) as told,
    ):
        rows.update(_play_all(missing, store, limit, backend, told.advance, watchers))
    return Results(pl.concat([_labelled(each, rows[each.id]) for each in runs]))


def _labelled(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    return labelled(rows, run.environment_label, run.agent_label, run.delay_label, run.seed)


def _kept(store: Store, runs: list[Run]) -> dict[str, pl.DataFrame]:
    """Return the rows of the runs that have finished; many at a time, since an answer from afar takes its time."""
    with ThreadPoolExecutor() as readers:
        found = zip(runs, readers.map(store.read, runs), strict=True)
        return {run.id: frame for run, frame in found if frame is not None}


def _play_all(
    runs: list[Run],
    store: Store | None,
    jobs: int | None,
    backend: str | None,
    advance: Callable[[int], None],
    watchers: Watchers,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each run as it finishes."""
    if not runs:
        return
    at_once = min(jobs or os.cpu_count() or 1, len(runs))
    compiled = all(
        isinstance(run.algorithm, CompiledSettings) and isinstance(run.environment, FiniteMDP) for run in runs
    )
    alone = store is not None and store.folder.in_memory
    kind = backend or ("threads" if compiled or alone or at_once == 1 else "processes")
    if kind == "threads":
        yield from in_threads(runs, store, at_once, advance, watchers)
        return
    played = (
        in_workers(Processes(at_once), runs, store, at_once)
        if kind == "processes"
        else in_workers(Ray(), runs, store, jobs or QUEUE)
    )
    known = {run.id: run for run in runs}
    for identity, frame in played:
        advance(runs[0].episodes)
        watchers.block(known[identity], frame)
        watchers.run(known[identity], frame)
        yield identity, frame
