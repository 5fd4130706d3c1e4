"""Workers that are tasks of a Ray cluster: one that runs already, or one started here and shut down afterwards."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from belated.errors import BelatedError
from belated.runner._experiment import Run
from belated.runner._orphans import Guard, marking
from belated.runner._play import packed, play_packed
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl

QUEUE = 1000
"""Runs that Ray is given at a time: enough for it to fill every machine that there is or that joins later."""


class MissingRayError(BelatedError):
    """Ray was asked for, but is not installed."""


class Ray:
    """Tasks of a Ray cluster, each playing one run.

    Ray's own retries are off, since they would also play a finished run again whose answer was lost on the way.
    """

    def __init__(self) -> None:
        self._ray = import_ray()
        # after a kill some processes of a cluster would live on for a minute
        self._guard = None if self._ray.is_initialized() else Guard()
        if self._guard is not None:
            try:
                with marking(self._guard.mark):
                    self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
            except BaseException:
                self._guard.end()
                raise
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(play_packed)
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
        return self._task.remote(*packed(run, store))

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
        if self._guard is not None:
            self._ray.shutdown()
            self._guard.end()


def import_ray() -> Any:
    """Return the module, or say how to install it."""
    try:
        import ray
    except ImportError:
        raise MissingRayError("backend 'ray' needs Ray, which is not installed: pip install 'belated[ray]'") from None
    return ray
