"""Running experiments: on several cores or machines, with progress, resumable at any time.

The runs that are not in the folder yet are played by a backend. Worker processes, on this machine or others, write the
rows themselves; when one dies, its run is played again elsewhere.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import polars as pl

from belated._util.plugins import needed
from belated._util.progress import progress as telling
from belated._util.validate import choice, integer
from belated.agents._base import CompiledSettings
from belated.environments import FiniteMDP
from belated.errors import BelatedError, InvalidInputError
from belated.runner._backends import Backend, Played, Processes, Ray, Threads
from belated.runner._callbacks import Callback, Watchers
from belated.runner._experiment import Agents, Delays, Environments, Experiment, Run, agents_by_label
from belated.runner._results import Results
from belated.runner._store import Store, labelled

BACKENDS = ("threads", "processes", "ray")
ATTEMPTS = 3
"""Maximum number of attempts of a run whose worker dies."""
PATIENCE = 60.0
"""Seconds to wait for a file written on another machine; shared folders may take half a minute."""


class WorkerLostError(BelatedError):
    """The worker of a run died in every attempt."""


def run(
    environment: Environments,
    agents: Agents,
    delay: Delays,
    *,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    folder: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Results:
    """Play every agent under every delay for every seed and return the rows.

    Environments, agents and delays may each be a single one, a sequence, or a mapping from your own labels; without
    labels, agents are labelled by their kinds. Agents with the same seed face the same environment randomness and the
    same delays. With a `folder`, each finished run is stored there at once, and runs that are already there are not
    played again; files from another version of belated are rejected. The `callbacks` (`belated.Callback`) observe the
    rows as they are produced.

    >>> from belated import DelayedPSVI, Poisson, RandomPolicy, RiverSwim
    >>> agents = {"psvi": DelayedPSVI(), "random": RandomPolicy()}
    >>> results = run(RiverSwim(), agents, Poisson(5), episodes=300, seeds=3, progress=False)
    >>> results.summary().select("agent", "seeds").rows()
    [('psvi', 3), ('random', 3)]
    """
    experiment = Experiment(
        name="run",
        environments=environment,
        agents=agents_by_label(agents),
        delays=delay,
        episodes=episodes,
        seeds=seeds,
    )
    return run_experiment(experiment, folder=folder, jobs=jobs, progress=progress, callbacks=callbacks)


def run_experiment(
    experiment: Experiment,
    *,
    folder: str | Path | None = None,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
) -> Results:
    """Play all runs of `experiment` that are not in `folder` yet, and return all rows.

    `folder` is a path, or a URL such as `s3://bucket/rows`. `jobs` is the number of parallel runs (default: one per
    core, of all machines with Ray). `backend` is "threads", the default for built-in algorithms, whose kernels run in
    parallel in one process; "processes", the default for agents written in Python; or "ray", for a cluster: the running
    one, or the one named by `RAY_ADDRESS`, else one started on this machine. `progress` is shown on stderr: as a bar on
    a terminal, else as a line now and then. Rows and checkpoints in `folder` from another version of belated are
    rejected, since its numbers may differ. `callbacks` are called in this process, one at a time: after every block
    with threads; with worker processes once per run, as one block.
    """
    runs, watchers = experiment.runs(), Watchers(callbacks)
    limit = None if jobs is None else integer("jobs", jobs, at_least=1)
    if backend is not None:
        choice("backend", backend, BACKENDS)
    if backend == "ray":
        needed("ray", "ray")  # before anything is read
    store = None if folder is None else Store(folder)
    if store is not None and store.folder.in_memory and backend in ("processes", "ray"):
        raise InvalidInputError(f"folder must be one that all workers see with backend {backend!r}, got {folder!r}")
    rows = {} if store is None else _kept(store, runs)
    missing = [each for each in runs if each.id not in rows]
    told = telling(
        experiment.name,
        len(runs) * experiment.episodes,
        "episodes",
        done=(len(runs) - len(missing)) * experiment.episodes,
        first="the first use of an algorithm compiles it",
        show=progress,
    )
    with closing(watchers), told as shown:
        if missing:
            players = _make_backend(backend, missing, store, limit, shown.advance, watchers)
            with closing(play_all(players, missing, store)) as played:
                for each, frame in played:
                    if not players.live:
                        shown.advance(each.episodes)
                        watchers.block(each, frame)
                        watchers.run(each, frame)
                    rows[each.id] = frame
    return Results(
        pl.concat(
            labelled(rows[each.id], each.environment_label, each.agent_label, each.delay_label, each.seed)
            for each in runs
        )
    )


def _kept(store: Store, runs: list[Run]) -> dict[str, pl.DataFrame]:
    """Return the rows of the finished runs, read in parallel, since remote storage is slow."""
    with ThreadPoolExecutor() as readers:
        found = zip(runs, readers.map(store.read, runs), strict=True)
        return {run.id: frame for run, frame in found if frame is not None}


def _make_backend(
    backend: str | None,
    runs: list[Run],
    store: Store | None,
    jobs: int | None,
    advance: Callable[[int], None],
    watchers: Watchers,
) -> Backend:
    """Return the named backend, by default the one that suits the agents."""
    at_once = min(jobs or os.cpu_count() or 1, len(runs))
    if backend is None:
        compiled = all(
            isinstance(run.algorithm, CompiledSettings) and isinstance(run.environment, FiniteMDP) for run in runs
        )
        alone = at_once == 1 or (store is not None and store.folder.in_memory)
        backend = "threads" if compiled or alone else "processes"
    if backend == "threads":
        return Threads(at_once, advance, watchers)
    return Processes(at_once) if backend == "processes" else Ray(jobs)


def play_all(
    backend: Backend, runs: Sequence[Run], store: Store | None
) -> Generator[tuple[Run, pl.DataFrame], None, None]:
    """Yield the rows of each run as it finishes; on an error, or when the caller stops, stop the others.

    If a worker dies, its run is played again, unless its rows were already stored.
    """
    left = deque((run, 1) for run in runs)
    playing: dict[Played, tuple[Run, int]] = {}
    try:
        while left or playing:
            while left and len(playing) < backend.at_once:
                run, attempt = left.popleft()
                playing[backend.submit(run, store)] = run, attempt
            finished = next(iter(wait(playing, return_when=FIRST_COMPLETED).done))
            run, attempt = playing.pop(finished)
            try:
                rows = finished.result()
            except backend.deaths as death:
                rows = None if store is None else store.read(run)
                if rows is None and attempt == ATTEMPTS:
                    raise WorkerLostError(
                        f"{run.id}: its worker died in each of {ATTEMPTS} attempts, perhaps out of memory; "
                        "finished runs are kept if there is a folder"
                    ) from death
                if rows is None:
                    left.appendleft((run, attempt + 1))
                    continue
            if rows is None:
                assert store is not None
                rows = _written(store, run)
            yield run, rows
    finally:
        backend.close()


def _written(store: Store, run: Run) -> pl.DataFrame:
    """Return the rows that a worker has stored; raise if they do not appear, because it wrote to its own disk."""
    deadline = time.monotonic() + PATIENCE
    while (rows := store.read(run)) is None:
        if time.monotonic() > deadline:
            raise InvalidInputError(
                f"folder must be shared by all machines, such as s3://bucket/folder: a worker has written "
                f"{store.where(run)}, but it is not visible here"
            )
        time.sleep(0.1)
    return rows
