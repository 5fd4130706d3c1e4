"""Running experiments: over the cores or over many machines, with progress, resumable at any moment.

Three backends play the runs that are missing. Threads share this process. Processes and Ray play each run in a worker
of its own, which keeps the rows itself; when a worker dies, its run is played again elsewhere.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor, TerminatedWorkerError
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

from belated.algorithms.agent import CompiledSettings
from belated.environments import FiniteMDP
from belated.errors import BelatedError, InvalidInputError
from belated.runner.experiment import Delays, Experiment, Run
from belated.runner.loop import simulate
from belated.runner.results import Results
from belated.runner.store import Store
from belated.types import Algorithm
from belated.validate import choice, integer

BACKENDS = ("threads", "processes", "ray")
ATTEMPTS = 3
"""How often a run is tried whose worker dies."""
QUEUE = 1000
"""Runs that Ray is given at a time: enough for it to fill every machine that there is or that joins later."""
PATIENCE = 60.0
"""Seconds within which a file written on one machine is seen on another; shared folders may take half a minute."""


class WorkerLostError(BelatedError):
    """The worker of a run died, and so did those of all further attempts."""


class MissingRayError(BelatedError):
    """Ray was asked for, but is not installed."""


class Stopped(BaseException):
    """Raised inside a run to end it early; like KeyboardInterrupt, it is not an error."""


def run(
    environment: FiniteMDP | Sequence[FiniteMDP] | Mapping[str, FiniteMDP],
    agents: Mapping[str, Algorithm],
    delay: Delays,
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

    `folder` is a path, or an address such as `s3://bucket/rows`. `jobs` is the number of runs at a time (default: one
    a core, of all machines with Ray). `backend` is "threads", the default for the library's algorithms, whose kernels
    run side by side in one process; "processes", the default for agents written in Python; or "ray", for a cluster:
    the one that runs here or that `RAY_ADDRESS` names, else one started on this machine.
    """
    runs = experiment.runs()
    limit = None if jobs is None else integer("jobs", jobs, at_least=1)
    if backend is not None:
        choice("backend", backend, BACKENDS)
    if backend == "ray":
        _import_ray()
    store = None if folder is None else Store(folder)
    if store is not None and store.folder.in_memory and backend in ("processes", "ray"):
        raise InvalidInputError(f"folder must be one that all workers see with backend {backend!r}, got {folder!r}")
    rows = {} if store is None else _kept(store, runs)
    missing = [each for each in runs if each.id not in rows]
    with _progress_bar(experiment.name, runs, len(runs) - len(missing), progress) as advance:
        rows.update(_play_all(missing, store, limit, backend, advance))
    return Results(pl.concat([_labelled(each, rows[each.id]) for each in runs]))


def _kept(store: Store, runs: list[Run]) -> dict[str, pl.DataFrame]:
    """Return the rows of the runs that have finished; many at a time, since an answer from afar takes its time."""
    with ThreadPoolExecutor() as readers:
        found = zip(runs, readers.map(store.read, runs), strict=True)
        return {run.id: frame for run, frame in found if frame is not None}


def _play_all(
    runs: list[Run], store: Store | None, jobs: int | None, backend: str | None, advance: Callable[[int], None]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each run as it finishes."""
    if not runs:
        return
    at_once = min(jobs or os.cpu_count() or 1, len(runs))
    compiled = all(isinstance(run.algorithm, CompiledSettings) for run in runs)
    alone = store is not None and store.folder.in_memory
    kind = backend or ("threads" if compiled or alone or at_once == 1 else "processes")
    if kind == "threads":
        yield from _in_threads(runs, store, at_once, advance)
        return
    workers: Workers = Processes() if kind == "processes" else Ray()
    for identity, frame in _apart(workers, runs, store, at_once if kind == "processes" else jobs or QUEUE):
        advance(runs[0].episodes)
        yield identity, frame


def _in_threads(
    runs: list[Run], store: Store | None, at_once: int, advance: Callable[[int], None]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Play in threads of this process; on interruption, end the others at their next block."""
    stop = threading.Event()

    def watch(played: int) -> None:
        if stop.is_set():
            raise Stopped
        advance(played)

    pool = Parallel(n_jobs=at_once, backend="threading", return_as="generator_unordered")
    with threadpool_limits(1):  # BLAS threads would only compete with the runs
        try:
            yield from pool(delayed(play_here)(run, store, watch) for run in runs)
        except BaseException:
            stop.set()
            raise


class Workers(Protocol):
    """Processes, on this machine or on many, that play a run each."""

    deaths: tuple[type[Exception], ...]
    """What `result` raises when the worker has died, rather than its run failed."""

    def submit(self, run: Run, store: Store | None) -> Any:
        """Begin a run and return its ticket."""

    def finished(self, tickets: Collection[Any]) -> Any:
        """Wait until one of the runs has ended, well or badly, and return its ticket."""

    def result(self, ticket: Any) -> pl.DataFrame | None:
        """Return what `play_apart` returned, or raise what it raised."""

    def close(self, tickets: Collection[Any]) -> None:
        """End the runs that are still being played."""


def _apart(workers: Workers, runs: list[Run], store: Store | None, at_once: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """Play each run in a worker; where one dies, play its run again, unless its rows were kept before it died."""
    waiting = deque((run, 1) for run in runs)
    playing: dict[Any, tuple[Run, int]] = {}
    sent = None if store is None else Store(store.folder.absolute())  # a worker has a working folder of its own
    try:
        while waiting or playing:
            while waiting and len(playing) < at_once:
                run, attempt = waiting.popleft()
                playing[workers.submit(run, sent)] = run, attempt
            ticket = workers.finished(playing)
            run, attempt = playing.pop(ticket)
            try:
                rows = workers.result(ticket)
            except workers.deaths as death:
                rows = None if store is None else store.read(run)
                if rows is None and attempt == ATTEMPTS:
                    raise WorkerLostError(
                        f"{run.id}: its worker died in each of {ATTEMPTS} attempts, perhaps for lack of memory; "
                        "finished runs are kept if there is a folder"
                    ) from death
                if rows is None:
                    waiting.appendleft((run, attempt + 1))
                    continue
            if rows is None:
                assert store is not None
                rows = _written(store, run)
            yield run.id, rows
    finally:
        workers.close(playing)


def _written(store: Store, run: Run) -> pl.DataFrame:
    """Return the rows that a worker has kept; if they do not show up, it kept them on a disk of its own."""
    deadline = time.monotonic() + PATIENCE
    while (rows := store.read(run)) is None:
        if time.monotonic() > deadline:
            raise InvalidInputError(
                f"folder must be one that all machines share, such as s3://bucket/folder: a worker has written "
                f"{store.where(run)}, but it is not there"
            )
        time.sleep(0.1)
    return rows


_IDLE: list[ProcessPoolExecutor] = []
"""Processes that wait for more, with everything imported; each ends by itself after five minutes without work."""


class Processes:
    """Processes of this machine, pools of one, so that when one is killed it is known which run it was playing."""

    deaths: tuple[type[Exception], ...] = (TerminatedWorkerError,)

    def __init__(self) -> None:
        self._busy: dict[Future[pl.DataFrame | None], ProcessPoolExecutor] = {}

    def submit(self, run: Run, store: Store | None) -> Future[pl.DataFrame | None]:
        """Begin a run in an idle process, or in a new one."""
        while True:
            worker = _IDLE.pop() if _IDLE else ProcessPoolExecutor(max_workers=1, timeout=300)
            try:
                future: Future[pl.DataFrame | None] = worker.submit(play_apart, run, store, run.describe())
            except BrokenProcessPool:  # killed, with its last run or while it was idle
                continue
            self._busy[future] = worker
            return future

    def finished(self, tickets: Collection[Future[pl.DataFrame | None]]) -> Future[pl.DataFrame | None]:
        """Wait for one of the runs."""
        return next(iter(wait(tickets, return_when=FIRST_COMPLETED).done))

    def result(self, ticket: Future[pl.DataFrame | None]) -> pl.DataFrame | None:
        """Return what the process sent, and keep it for the next run."""
        _IDLE.append(self._busy.pop(ticket))
        return ticket.result()

    def close(self, tickets: Collection[Future[pl.DataFrame | None]]) -> None:
        """Kill the processes that are still playing."""
        for ticket in tickets:
            self._busy.pop(ticket).shutdown(kill_workers=True)


class Ray:
    """Tasks on a Ray cluster: one that runs already, or one started here and shut down afterwards.

    Not joblib's Ray backend: it cannot return results as they come, and its pool of actors does not outlive a machine.
    Ray's own retries are off, since they would also play a finished run again whose answer was lost on the way.
    """

    def __init__(self) -> None:
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(play_apart)
        errors = self._ray.exceptions
        self.deaths: tuple[type[Exception], ...] = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
            errors.LocalRayletDiedError,
        )

    def submit(self, run: Run, store: Store | None) -> Any:
        """Give Ray a run, to be played when a core is free."""
        return self._task.remote(run, store, run.describe())

    def finished(self, tickets: Collection[Any]) -> Any:
        """Wait for one of the runs."""
        (ticket,), _ = self._ray.wait(list(tickets), num_returns=1)
        return ticket

    def result(self, ticket: Any) -> pl.DataFrame | None:
        """Return what the task returned, or raise what it raised, without Ray's wrapping."""
        try:
            rows: pl.DataFrame | None = self._ray.get(ticket)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        return rows

    def close(self, tickets: Collection[Any]) -> None:
        """End the tasks, and the connection or the cluster if it was made here."""
        for ticket in tickets:
            self._ray.cancel(ticket, force=True)
        if self._ours:
            self._ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingRayError("backend 'ray' needs Ray, which is not installed: pip install 'belated[ray]'") from None
    return ray


def play_apart(run: Run, store: Store | None, about: dict[str, Any]) -> pl.DataFrame | None:
    """Play one run in a worker; rows that are kept in a store, as those of the run `about`, are not sent back."""
    with threadpool_limits(1):
        rows = play(run, store, None)
    if store is None:
        return rows
    store.write(run, rows, about)
    return None


def play_here(run: Run, store: Store | None, watch: Callable[[int], None]) -> tuple[str, pl.DataFrame]:
    """Play one run in this process and keep its rows."""
    rows = play(run, store, watch)
    if store is not None:
        store.write(run, rows)
    return run.id, rows


def play(run: Run, store: Store | None, watch: Callable[[int], None] | None) -> pl.DataFrame:
    """Play one run, from its last checkpoint on if there is one; an error names the run."""
    try:
        return simulate(
            run.environment,
            run.algorithm,
            run.delay,
            episodes=run.episodes,
            seed=run.seed,
            record_every=run.record_every,
            watch=watch,
            checkpoint=None if store is None else store.checkpoint(run),
        )
    except BelatedError as error:
        raise type(error)(f"{run.id}: {error}") from error


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
        completed = done * (runs[0].episodes if runs else 0)
        first = name if completed == episodes else f"{name} (the first use compiles)"
        task = bar.add_task(first, total=episodes, completed=completed)
        yield lambda played: bar.update(task, advance=played, description=name)
