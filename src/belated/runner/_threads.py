"""Runs side by side in threads of this process: for agents whose kernels release the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from belated.runner._callbacks import Watchers
from belated.runner._experiment import Run
from belated.runner._play import play
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl


class Stopped(BaseException):
    """Raised inside a run to end it early; like KeyboardInterrupt, it is not an error."""


def in_threads(
    runs: list[Run],
    store: Store | None,
    at_once: int,
    advance: Callable[[int], None],
    watchers: Watchers | None = None,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Play `at_once` runs at a time and yield the rows of each as it finishes; on any error, end the others soon."""
    stop = threading.Event()

    def watch(played: int) -> None:
        if stop.is_set():
            raise Stopped
        advance(played)

    with threadpool_limits(1), ThreadPoolExecutor(at_once) as pool:  # BLAS threads would only compete with the runs
        playing = {pool.submit(play, run, store, watch, None, watchers): run.id for run in runs}
        try:
            for future in as_completed(playing):
                yield playing[future], future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
