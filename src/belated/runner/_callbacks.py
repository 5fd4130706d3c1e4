"""Callbacks: watch the rows of runs while they are played, without a say in them.

Callbacks are called in the process that called `run` or `simulate`, one at a time whatever the number of runs side by
side. A run that is played here is seen block by block; one that a worker plays (backends "processes" and "ray") is
seen when its rows have arrived, as one block. Runs that a folder already has are not played, and so not seen.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belated._util.validate import refuse
from belated.errors import InvalidInputError
from belated.runner._experiment import Run

if TYPE_CHECKING:
    import polars as pl

_log = logging.getLogger(__name__)


class Callback:
    """What is called as rows come; a subclass overrides the methods it needs.

    Rows are a frame of its own for each callback, so nothing it does to them reaches the results. If a method raises
    an error, the error is logged with the run's name and the callback is not called again; the runs go on, and no row
    is lost.

    >>> from belated import Constant, RandomPolicy, RiverSwim, simulate
    >>> class Best(Callback):
    ...     best = 0.0
    ...     def after_block(self, run, rows):
    ...         self.best = max(self.best, rows["sampled_return"].max())
    >>> watcher = Best()
    >>> rows = simulate(RiverSwim(), RandomPolicy(), Constant(0), episodes=50, seed=0, callbacks=[watcher])
    >>> watcher.best == rows["sampled_return"].max()
    True
    """

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        """See the new rows of `run`: together, the blocks of a run are all its rows, in order."""

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        """See all rows of `run`, after its last block and once they are kept."""

    def close(self) -> None:
        """End: no more rows will come, because all runs have finished or because they were interrupted."""


class Watchers:
    """All callbacks of one call, shielded: they see copies, one at a time, and an error ends the callback alone."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        if isinstance(callbacks, Callback) or not isinstance(callbacks, Sequence):
            raise refuse("callbacks", callbacks, "a list of belated.Callback objects")
        for i, each in enumerate(callbacks):
            if not isinstance(each, Callback):
                raise refuse(f"callbacks[{i}]", each, "a belated.Callback object")
        if len({id(each) for each in callbacks}) < len(callbacks):
            raise InvalidInputError("callbacks must not name the same object twice")
        self._left = list(callbacks)
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Return whether anyone watches."""
        return bool(self._left)

    def block(self, run: Run, rows: pl.DataFrame) -> None:
        """Show a block."""
        if rows.height:  # a block may have no row that is recorded
            self._tell("after_block", run.id, run, rows)

    def run(self, run: Run, rows: pl.DataFrame) -> None:
        """Show a run that has finished."""
        self._tell("after_run", run.id, run, rows)

    def close(self) -> None:
        """Say that it is over."""
        self._tell("close", "the end")

    def _tell(self, method: str, where: str, *given: Any) -> None:
        with self._lock:
            for each in list(self._left):
                try:
                    getattr(each, method)(*(one if isinstance(one, Run) else one.clone() for one in given))
                except Exception:
                    self._left.remove(each)
                    _log.exception(
                        "callback %s failed in %s at %s and is not called again; the runs go on, no row is lost",
                        type(each).__name__,
                        method,
                        where,
                    )


class Under(Callback):
    """Passes on what is seen of one run of an experiment, under the name that it has there."""

    def __init__(self, run: Run, watchers: Watchers) -> None:
        self._run, self._watchers = run, watchers

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        """Pass on a block."""
        self._watchers.block(self._run, rows)

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        """Pass on the whole."""
        self._watchers.run(self._run, rows)
