"""Callbacks: observe the rows of runs while they are played, without affecting them.

Callbacks are called in the process that called `run` or `simulate`, one at a time even with parallel runs. A run in
this process is observed block by block; a run in a worker (backends "processes" and "ray") is observed as one block,
when its rows have arrived. Runs that are already in the folder are not played, and so not observed.

Built-in callbacks write rows elsewhere: JSON lines, TensorBoard, MLflow, Weights & Biases. The last three need the
extras of the same names. All have a parameter `every`: with n, every n-th episode is written, and the last. Unknown
columns, such as the value in a simulator, are left out.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar

from belated._util.plugins import needed
from belated._util.validate import integer, refuse
from belated.errors import InvalidInputError
from belated.runner._experiment import Run

if TYPE_CHECKING:
    import polars as pl

MEASURED = ("value", "regret", "sampled_return", "arrived", "delay")
"""The columns that are written as curves over episodes."""
BATCH, LONGEST = 1000, 500
"""MLflow's maximum number of metrics per request, and maximum length of a parameter."""
_log = logging.getLogger(__name__)

Row = Mapping[str, Any]
T = TypeVar("T")
Place = TypeVar("Place")


class Callback:
    """Called with new rows; subclasses override the methods they need.

    Each callback gets its own frame, so changes to it do not affect the results. If a method raises an error, the error
    is logged with the run's name and the callback is not called again; the runs continue, and no row is lost.

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
        """Observe the new rows of `run`; the blocks of a run together are all its rows, in order."""

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        """Observe all rows of `run`, after its last block and once they are stored."""

    def close(self) -> None:
        """Called at the end, when all runs have finished or were interrupted."""


class Watchers:
    """All callbacks of one call: they get copies, one at a time, and an error disables only that callback.

    The creator must close it.
    """

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
        return bool(self._left)

    def block(self, run: Run, rows: pl.DataFrame) -> None:
        if rows.height:  # a block may have no recorded row
            self._call("after_block", run.id, lambda each: each.after_block(run, rows.clone()))

    def run(self, run: Run, rows: pl.DataFrame) -> None:
        self._call("after_run", run.id, lambda each: each.after_run(run, rows.clone()))

    def close(self) -> None:
        self._call("close", "the end", lambda each: each.close())

    def _call(self, method: str, where: str, call: Callable[[Callback], None]) -> None:
        with self._lock:
            for each in list(self._left):
                try:
                    call(each)
                except Exception:
                    self._left.remove(each)
                    _log.exception(
                        "callback %s failed in %s at %s and is not called again; the runs continue, no row is lost",
                        type(each).__name__,
                        method,
                        where,
                    )


class Sink(Callback, Generic[Place]):
    """Opens a destination for each run at its first block, writes its rows there, and closes it after the run.

    Subclasses define `begin`, `write` and `end`.
    """

    def __init__(self, *, every: int = 1) -> None:
        self.every = integer("every", every, at_least=1)
        self._places: dict[str, Place] = {}

    def begin(self, run: Run) -> Place:
        """Open the destination of a run."""
        raise NotImplementedError

    def write(self, place: Place, run: Run, rows: Iterable[Row]) -> None:
        """Write rows to the destination of their run."""
        raise NotImplementedError

    def end(self, place: Place, *, finished: bool) -> None:
        """Close the destination of a run, which has `finished` or was interrupted."""
        raise NotImplementedError

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        if run.id not in self._places:
            self._places[run.id] = self.begin(run)
        self.write(self._places[run.id], run, self._chosen(run, rows))

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        self.end(self._places.pop(run.id), finished=True)

    def close(self) -> None:
        while self._places:
            self.end(self._places.popitem()[1], finished=False)

    def _chosen(self, run: Run, rows: pl.DataFrame) -> Iterator[Row]:
        for row in rows.iter_rows(named=True):
            if (row["episode"] + 1) % self.every == 0 or row["episode"] == run.episodes - 1:
                yield row


class JSONLines(Sink[TextIO]):
    """Appends a line to the file `path` for each row: an object with the run's labels and the row's columns.

    >>> import tempfile
    >>> from belated import Constant, RandomPolicy, RiverSwim, simulate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.jsonl"
    ...     rows = simulate(
    ...         RiverSwim(), RandomPolicy(), Constant(0), episodes=100, seed=7, callbacks=[JSONLines(path, every=50)]
    ...     )
    ...     lines = [json.loads(line) for line in path.read_text().splitlines()]
    >>> [(line["environment"], line["agent"], line["seed"], line["episode"]) for line in lines]
    [('riverswim-5', 'RandomPolicy', 7, 49), ('riverswim-5', 'RandomPolicy', 7, 99)]
    """

    def __init__(self, path: str | Path, *, every: int = 1) -> None:
        super().__init__(every=every)
        self.path = Path(path)

    def begin(self, run: Run) -> TextIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.open("a", encoding="utf-8")

    def write(self, place: TextIO, run: Run, rows: Iterable[Row]) -> None:
        labels = {"run": run.id, **run.labels, "seed": run.seed}
        place.write("".join(json.dumps({**labels, **row}) + "\n" for row in rows))
        place.flush()

    def end(self, place: TextIO, *, finished: bool) -> None:
        place.close()


class TensorBoard(Sink[Any]):
    """Writes curves of value, regret, return, arrivals and delays for `tensorboard --logdir folder`."""

    def __init__(self, folder: str | Path, *, every: int = 1) -> None:
        super().__init__(every=every)
        self.folder = Path(folder)
        self._writer = needed("tensorboard.summary", "tensorboard").Writer

    def begin(self, run: Run) -> Any:
        return self._writer(str(self.folder / run.id))

    def write(self, place: Any, run: Run, rows: Iterable[Row]) -> None:
        for row in rows:
            for name, number in _numbers(row):
                place.add_scalar(name, number, row["episode"])
        place.flush()

    def end(self, place: Any, *, finished: bool) -> None:
        place.close()


class MLflow(Sink[str]):
    """Writes each run as a run of an MLflow experiment, with its description as parameters.

    `tracking_uri` is the server or database, by default MLflow's current one.
    """

    def __init__(self, experiment: str = "belated", *, tracking_uri: str | None = None, every: int = 1) -> None:
        super().__init__(every=every)
        if not isinstance(experiment, str) or not experiment:
            raise refuse("experiment", experiment, "a name")
        self._entities = needed("mlflow.entities", "mlflow")
        self._client = needed("mlflow", "mlflow").MlflowClient(tracking_uri)
        self._experiment = experiment

    def begin(self, run: Run) -> str:
        known = self._client.get_experiment_by_name(self._experiment)
        where = self._client.create_experiment(self._experiment) if known is None else known.experiment_id
        created = self._client.create_run(where, run_name=run.id)
        identity: str = created.info.run_id
        described = [self._entities.Param(key, text[:LONGEST]) for key, text in _flat(run)]
        for some in _batches(described, 100):
            self._client.log_batch(identity, params=some)
        return identity

    def write(self, place: str, run: Run, rows: Iterable[Row]) -> None:
        now = int(1000 * time.time())
        metrics = (
            self._entities.Metric(name, number, now, row["episode"]) for row in rows for name, number in _numbers(row)
        )
        for some in _batches(metrics, BATCH):
            self._client.log_batch(place, metrics=some)

    def end(self, place: str, *, finished: bool) -> None:
        self._client.set_terminated(place, "FINISHED" if finished else "KILLED")


class WandB(Sink[Any]):
    """Writes each run as a run of a Weights & Biases `project`, grouped by the experiment's name.

    `options` are passed to `wandb.init`, such as `entity="my-team"` or `mode="offline"`.
    """

    def __init__(self, project: str = "belated", *, every: int = 1, **options: Any) -> None:
        super().__init__(every=every)
        self._wandb = needed("wandb", "wandb")
        self._options = {"project": project, **options}

    def begin(self, run: Run) -> Any:
        config = {key: text[:LONGEST] for key, text in _flat(run)}
        named = {"group": run.experiment, "name": run.id, "config": config, "reinit": "create_new"}
        return self._wandb.init(**(named | self._options))

    def write(self, place: Any, run: Run, rows: Iterable[Row]) -> None:
        for row in rows:
            place.log(dict(_numbers(row)), step=row["episode"])

    def end(self, place: Any, *, finished: bool) -> None:
        place.finish(exit_code=0 if finished else 1)


def _numbers(row: Row) -> list[tuple[str, float]]:
    return [(name, float(row[name])) for name in MEASURED if row.get(name) is not None]


def _flat(run: Run) -> list[tuple[str, str]]:
    """Return the description of a run as pairs of strings: `agent.ridge`, `1.0`."""
    pairs = list(run.labels.items())
    for part, value in run.describe().items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        pairs += [(f"{part}.{name}" if name else part, str(each)) for name, each in inner]
    return pairs


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(values)
    while some := list(itertools.islice(left, size)):
        yield some
