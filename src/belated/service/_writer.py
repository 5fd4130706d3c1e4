"""The writer threads, one for each model: all waiting requests are stored in one commit and then answered.

While a commit waits for the disk, further requests queue up for the next one: the higher the load, the larger the
commits, with nothing to tune. The queue is bounded; requests beyond its limit are rejected at once (backpressure).
Models wait for each other only while the store appends another model's rows, never while another model computes.
"""

from __future__ import annotations

import logging
import threading
import time
from asyncio import AbstractEventLoop
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from belated.decisions import ClockError, ConflictError, Model, PosteriorError, StateError, StoreError, commit
from belated.decisions._operations import Answer, Operation
from belated.errors import BelatedError

LIMIT, MOST = 10_000, 2_000
"""Maximum number of requests waiting for a model, and of operations in one commit."""
PAUSE = 0.25
"""Seconds between two checks for due windows while there is no traffic."""
STALLED, CLOSING = 5.0, 20.0
"""Seconds after which a slow commit is reported as a problem, and within which all models must close."""

ATTEMPTS = 5
"""How often a request is retried after a conflicting write by another process."""

_log = logging.getLogger(__name__)


class FullError(BelatedError):
    """The queue is full, or the service is stopping."""


class _RejectedError(Exception):
    """A request that could not be prepared; nothing has changed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


Answers = list[Answer] | Exception


class Request(NamedTuple):
    """Operations of one model, and the callback for their answers."""

    model: Model
    operations: Sequence[Operation]
    done: Callable[[Answers], object]
    """Called with the answers, one for each operation, or with the error that stopped them all."""
    loop: AbstractEventLoop | None = None
    """The event loop to call it in; None to call it in the writer thread."""


class Committed(NamedTuple):
    """One commit, for the metrics."""

    seconds: float
    operations: int


class Writer:
    """Writes for all models of a store; `watch` is called with each commit."""

    def __init__(
        self, models: Callable[[], Sequence[Model]], watch: Callable[[Committed], None] = lambda committed: None
    ) -> None:
        self._watch, self._models = watch, models
        self._lanes: dict[str, _Lane] = {}
        self._changing = threading.Lock()
        self._closing = False
        self.failures: Counter[tuple[str, ...]] = Counter()
        """Number of failures by model and kind: clock, state, store or error."""
        for model in models():
            self._lane(model)

    def _lane(self, model: Model) -> _Lane:
        lane = self._lanes.get(model.name)
        if lane is None:
            with self._changing:
                if self._closing:
                    raise FullError("the service is stopping")
                if model.name not in self._lanes:
                    self._lanes = {**self._lanes, model.name: _Lane(model, self)}
                lane = self._lanes[model.name]
        return lane

    @property
    def depth(self) -> int:
        return sum(lane.depth for lane in self._lanes.values())

    @property
    def alive(self) -> bool:
        """Whether the writer threads are running."""
        return not self._closing and all(lane.is_alive() for lane in self._lanes.values())

    @property
    def problems(self) -> dict[str, str]:
        """Why models cannot be served, by name; models without problems are not included."""
        return {name: problem for name, lane in self._lanes.items() if (problem := lane.problem)}

    @property
    def problem(self) -> str:
        """Why no model can be served; empty if at least one can."""
        if not self.alive:
            return "the writer has stopped"
        problems = self.problems
        return next(iter(problems.values())) if problems and len(problems) == len(self._lanes) else ""

    def submit(self, request: Request) -> None:
        """Queue a request; its `done` is called after the commit."""
        self._lane(request.model).submit(request)

    def watch_over(self, model: Model) -> None:
        """Close the windows of a new model, too."""
        self._lane(model)

    def close(self) -> bool:
        """Answer waiting requests, store snapshots, and stop; return whether that took at most `CLOSING` seconds."""
        with self._changing:
            self._closing = True
        deadline = time.monotonic() + CLOSING
        for lane in self._lanes.values():
            lane.stop()
        for lane in self._lanes.values():
            lane.join(max(0.0, deadline - time.monotonic()))
        left = [lane for lane in self._lanes.values() if lane.is_alive()]
        for lane in left:
            lane.give_up()
        return not left

    def committed(self, seconds: float, operations: int) -> None:
        with self._changing:
            self._watch(Committed(seconds, operations))

    def count(self, model: str, kind: str) -> None:
        with self._changing:
            self.failures[model, kind] += 1

    def failed(self, model: str, error: BaseException) -> None:
        """Count an error; an error of the store affects all models that use it."""
        kind = next((name for name, kinds in _KINDS if isinstance(error, kinds)), "error")
        self.count(model, kind)
        for lane in self._lanes.values() if kind == "store" else [self._lanes[model]]:
            lane.trouble = str(error) if isinstance(error, BelatedError) else f"{type(error).__name__}: {error}"


_KINDS: tuple[tuple[str, type[BaseException]], ...] = (
    ("clock", ClockError),
    ("posterior", PosteriorError),
    ("state", StateError),
    ("store", StoreError),
)


class _Lane(threading.Thread):
    """The thread that writes for one model."""

    def __init__(self, model: Model, writer: Writer) -> None:
        super().__init__(name=f"belated-writer-{model.name}", daemon=True)
        self._model, self._writer = model, writer
        self._waiting: deque[Request] = deque()
        self._taken: Sequence[Request] = ()
        self._changed = threading.Condition()
        self._closing = False
        self._began: float | None = None  # when the work in progress began
        self.trouble = ""
        """Why the last commit failed; empty if it did not."""
        self.start()

    @property
    def depth(self) -> int:
        return len(self._waiting)

    @property
    def problem(self) -> str:
        began = self._began
        age = 0.0 if began is None else time.monotonic() - began
        if age > STALLED:
            return f"a commit of {self._model.name!r} has been in progress for {age:.0f} seconds"
        return self._model.doubt or self.trouble

    def submit(self, request: Request) -> None:
        with self._changed:
            if self._closing:
                raise FullError("the service is stopping")
            if len(self._waiting) >= LIMIT:
                raise FullError(f"{LIMIT} requests are already waiting")
            self._waiting.append(request)
            self._changed.notify()

    def stop(self) -> None:
        """Accept no more requests."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def give_up(self) -> None:
        """Answer the requests that the store has kept waiting for too long; their outcome is unknown."""
        with self._changed:
            left = [*self._taken, *self._waiting]
            self._waiting.clear()
        _tell([(request, StoreError(f"the store has not answered in time: {_AGAIN}")) for request in left])

    def run(self) -> None:
        """Write until stopped and the queue is empty; then store a snapshot."""
        looked = time.monotonic()
        while True:
            taken = self._take()
            if taken:
                self._busy(partial(self._write, taken))
            elif self._closing:
                break
            if time.monotonic() - looked >= PAUSE:
                looked = time.monotonic()
                self._busy(self._tick)
        self._busy(self._save)

    def _busy(self, work: Callable[[], None]) -> None:
        """Do some work; no error may end the thread that others wait for."""
        self._began = time.monotonic()
        try:
            work()
        except BaseException as error:
            _log.exception("writing for %s failed", self._model.name)
            self._writer.failed(self._model.name, error)
        finally:
            self._began = None

    def _take(self) -> list[Request]:
        """Wait for requests, and return as many as fit into one commit."""
        with self._changed:
            if not self._waiting and not self._closing:
                self._changed.wait(PAUSE)
            taken, operations = [], 0
            while self._waiting and operations < MOST:
                taken.append(self._waiting.popleft())
                operations += len(taken[-1].operations)
            return taken

    def _write(self, taken: list[Request], attempt: int = 0) -> None:
        began, self._taken = time.perf_counter(), taken
        answers: Sequence[Answers]
        try:
            answers = self._commit(taken)
        except (ConflictError, _RejectedError) as error:  # nothing was stored: retry the requests one by one
            if len(taken) > 1:
                for request in taken:
                    self._write([request])
                return
            if self._model.store.shared and isinstance(error, ConflictError) and attempt < ATTEMPTS:
                self._write(taken, attempt + 1)  # another process has stored the same key or event first
                return
            answers = [error.error if isinstance(error, _RejectedError) else error]
            if not isinstance(answers[0], BelatedError):
                self._writer.count(self._model.name, "error")
        except BaseException as error:
            self._writer.failed(self._model.name, error)
            if not isinstance(error, BelatedError):
                _log.exception("a commit failed")
                error = StoreError(f"it is unknown whether this was stored ({type(error).__name__}): {_AGAIN}")
            answers = [error] * len(taken)
        self._writer.committed(time.perf_counter() - began, sum(len(request.operations) for request in taken))
        self._taken = ()
        _tell(list(zip(taken, answers, strict=True)))

    def _commit(self, taken: list[Request]) -> list[list[Answer]]:
        model = self._model
        operations = [one for request in taken for one in request.operations]
        with model.lock:
            try:
                batch = model.prepare(operations)
            except (StoreError, ClockError):
                raise
            except Exception as error:
                raise _RejectedError(error) from error
            commit(model.store, [batch])
        self.trouble = ""
        undecided = next((each for each in batch.answers if isinstance(each, PosteriorError)), None)
        if undecided is not None:  # rewards are still stored and learned
            self._writer.failed(model.name, undecided)
        answers = iter(batch.answers)
        return [[next(answers) for _ in request.operations] for request in taken]

    def _tick(self) -> None:
        model = self._model
        try:
            model.tick()
            if self.trouble:  # clients may wait until the service is ready: retry without a request
                model.snapshot()
                self.trouble = ""
        except (StoreError, ClockError) as error:
            self._writer.failed(model.name, error)

    def _save(self) -> None:
        try:
            self._model.snapshot()
        except (StoreError, ClockError) as error:  # the log is safe; only a restart takes longer
            _log.warning("no snapshot of %s could be stored: %s", self._model.name, error)


_AGAIN = "retry with the same key or event, which counts once"


def _tell(told: Sequence[tuple[Request, Answers]]) -> None:
    """Call the callbacks of a commit, with one call per event loop."""
    for loop in {request.loop for request, _ in told}:
        here = [(request.done, answer) for request, answer in told if request.loop is loop]
        if loop is None:
            _call(here)
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_call, here)


def _call(here: Sequence[tuple[Callable[[Answers], object], Answers]]) -> None:
    for done, answer in here:
        done(answer)
