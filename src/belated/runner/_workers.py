"""Runs in workers, processes of this machine or of many: when one dies, its run is played again elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from belated.errors import BelatedError, InvalidInputError
from belated.runner._experiment import Run
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl

ATTEMPTS = 3
"""How often a run is tried whose worker dies."""
PATIENCE = 60.0
"""Seconds within which a file written on one machine is seen on another; shared folders may take half a minute."""


class WorkerLostError(BelatedError):
    """The worker of a run died, and so did those of all further attempts."""


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


def in_workers(
    workers: Workers, runs: list[Run], store: Store | None, at_once: int
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Play each run in a worker; where one dies, play its run again, unless its rows were kept before it died."""
    left = deque((run, 1) for run in runs)
    playing: dict[Any, tuple[Run, int]] = {}
    sent = None if store is None else store.absolute()  # a worker has a working folder of its own
    try:
        while left or playing:
            while left and len(playing) < at_once:
                run, attempt = left.popleft()
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
                    left.appendleft((run, attempt + 1))
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
