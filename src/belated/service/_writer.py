"""The threads that write, one for each model: all requests that are waiting go into one commit, and are then answered.

While a commit waits for the disk, further requests gather, and go together into the next one: the more there is to do,
the larger the commits, with no setting to tune. The queue is bounded; what does not fit is refused at once. Models wait
for one another only while the store takes the rows of another, never while another computes.
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
"""Requests that may wait for a model, and operations that go into one commit."""
PAUSE = 0.25
"""Seconds between two looks at windows that end while there is no traffic."""
STALLED, CLOSING = 5.0, 20.0
"""Seconds after which a commit under way is a problem, and that all models have to end in."""

ATTEMPTS = 5
"""How often a request is tried again because another process was faster."""

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
    """Where it is called; None: in the thread that writes."""


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
        """How often what went wrong, by model and kind: clock, state, store or error."""
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
        """Whether requests are answered at all."""
        return not self._closing and all(lane.is_alive() for lane in self._lanes.values())

    @property
    def problems(self) -> dict[str, str]:
        """What keeps a model from being served, by its name: those with none are not in it."""
        return {name: problem for name, lane in self._lanes.items() if (problem := lane.problem)}

    @property
    def problem(self) -> str:
        """Why nothing can be decided: a problem of every model; empty as long as one goes on."""
        if not self.alive:
            return "the writer has stopped"
        problems = self.problems
        return next(iter(problems.values())) if problems and len(problems) == len(self._lanes) else ""

    def submit(self, request: Request) -> None:
        """Queue a request; its `done` is called after the commit."""
        self._lane(request.model).submit(request)

    def watch_over(self, model: Model) -> None:
        """End the windows of a new model, too."""
        self._lane(model)

    def close(self) -> bool:
        """Answer what is waiting, store snapshots, and stop; tell whether all of it was done in `CLOSING` seconds."""
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
        """Count an error; one of the store is a problem of all models that go on with it."""
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
        self._began: float | None = None  # when what is under way began
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
            return f"a commit of {self._model.name!r} has been under way for {age:.0f} seconds"
        return self._model.doubt or self.trouble

    def submit(self, request: Request) -> None:
        with self._changed:
            if self._closing:
                raise FullError("the service is stopping")
            if len(self._waiting) >= LIMIT:
                raise FullError(f"{LIMIT} requests are waiting already")
            self._waiting.append(request)
            self._changed.notify()

    def stop(self) -> None:
        """Take no more requests."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def give_up(self) -> None:
        """Answer what the store has kept waiting for too long: nobody knows what became of it."""
        with self._changed:
            left = [*self._taken, *self._waiting]
            self._waiting.clear()
        _tell([(request, StoreError(f"the store has not answered in time: {_AGAIN}")) for request in left])

    def run(self) -> None:
        """Write until there is nothing left and no more to come; then store a snapshot."""
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
        """Do some work; whatever goes wrong must not end the thread that others wait for."""
        self._began = time.monotonic()
        try:
            work()
        except BaseException as error:
            _log.exception("writing for %s failed", self._model.name)
            self._writer.failed(self._model.name, error)
        finally:
            self._began = None

    def _take(self) -> list[Request]:
        """Wait for requests, and return as many as go into one commit."""
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
        except (ConflictError, _RejectedError) as error:  # nothing was stored: find out which request it was
            if len(taken) > 1:
                for request in taken:
                    self._write([request])
                return
            if self._model.store.shared and isinstance(error, ConflictError) and attempt < ATTEMPTS:
                self._write(taken, attempt + 1)  # another process was faster with the same: see what it says
                return
            answers = [error.error if isinstance(error, _RejectedError) else error]
            if not isinstance(answers[0], BelatedError):
                self._writer.count(self._model.name, "error")
        except BaseException as error:
            self._writer.failed(self._model.name, error)
            if not isinstance(error, BelatedError):
                _log.exception("a commit failed")
                error = StoreError(f"it is not known whether this was stored ({type(error).__name__}): {_AGAIN}")
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
        if undecided is not None:  # rewards are stored and learned all the same
            self._writer.failed(model.name, undecided)
        answers = iter(batch.answers)
        return [[next(answers) for _ in request.operations] for request in taken]

    def _tick(self) -> None:
        model = self._model
        try:
            model.tick()
            if self.trouble:  # nobody may send anything as long as we are not ready: try by ourselves
                model.snapshot()
                self.trouble = ""
        except (StoreError, ClockError) as error:
            self._writer.failed(model.name, error)

    def _save(self) -> None:
        try:
            self._model.snapshot()
        except (StoreError, ClockError) as error:  # the log is safe; a restart takes longer
            _log.warning("no snapshot of %s could be stored: %s", self._model.name, error)


_AGAIN = "send it again under the same key or event, which counts once"


def _tell(told: Sequence[tuple[Request, Answers]]) -> None:
    """Call back all who wait for a commit, with one call per event loop."""
    for loop in {request.loop for request, _ in told}:
        here = [(request.done, answer) for request, answer in told if request.loop is loop]
        if loop is None:
            _call(here)
        else:
            with suppress(RuntimeError):  # it is closed: nobody waits any more
                loop.call_soon_threadsafe(_call, here)


def _call(here: Sequence[tuple[Callable[[Answers], object], Answers]]) -> None:
    for done, answer in here:
        done(answer)
