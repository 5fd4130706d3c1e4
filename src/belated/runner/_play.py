"""One run of an experiment, played wherever the engine sends it; its rows are kept before its checkpoint goes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
from threadpoolctl import threadpool_limits

from belated._util.version import stamp
from belated.errors import BelatedError, InvalidInputError
from belated.runner._callbacks import Under, Watchers
from belated.runner._description import MADE_BY
from belated.runner._experiment import Run
from belated.runner._simulation import simulate
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl


def play(
    run: Run,
    store: Store | None,
    watch: Callable[[int], None] | None = None,
    about: dict[str, Any] | None = None,
    watchers: Watchers | None = None,
) -> pl.DataFrame:
    """Play one run, from its last checkpoint on if there is one, and keep its rows; an error names the run.

    The rows are kept as those of the run `about`, that of `run` if there is none: a class on its way to a worker may
    lose a part of its name.
    """
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
            commit=None if store is None else lambda rows: store.write(run, rows, about),
            callbacks=[Under(run, watchers)] if watchers else [],
        )
    except BelatedError as error:
        raise type(error)(f"{run.id}: {error}") from error


def packed(run: Run, store: Store | None) -> tuple[list[str], bytes]:
    """Return a run as it is sent to a worker, and where to look for the modules that its classes are in."""
    try:
        content: bytes = cloudpickle.dumps((run, store, run.describe()))
    except Exception as error:  # pickling runs code of the user's
        raise InvalidInputError(
            f"{run.id} cannot be sent to another process: {error}; play it with backend='threads'"
        ) from error
    return [str(Path(entry).absolute()) for entry in sys.path], content


def play_packed(path: list[str], content: bytes) -> pl.DataFrame | None:
    """Play what `packed` has sent, in a worker."""
    sys.path.extend(entry for entry in path if entry not in sys.path)
    try:
        run, store, about = pickle.loads(content)
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"a worker cannot import the module {error.name!r}, which the program that sent the run has: install it on "
            "all machines, or start in a folder that all of them see"
        ) from error
    return play_apart(run, store, about)


def play_apart(run: Run, store: Store | None, about: dict[str, Any]) -> pl.DataFrame | None:
    """Play one run in a worker; rows that are kept in a store are not sent back.

    A worker with another belated than the program that sent the run is refused: its rows would tell the wrong maker.
    """
    if about[MADE_BY] != stamp():
        raise InvalidInputError(
            f"{run.id}: its worker has another belated, {stamp()}, than the program that sent it, {about[MADE_BY]}; "
            "install the same on all machines"
        )
    with threadpool_limits(1):  # BLAS threads would only compete with the other workers
        rows = play(run, store, None, about)
    return rows if store is None else None
