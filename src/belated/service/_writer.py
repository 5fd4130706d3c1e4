"""The one thread that writes: takes all requests that are waiting, stores them in one commit, then answers them.

While a commit waits for the disk, further requests gather, and go together into the next one: the more there is to do,
the larger the commits, with no setting to tune. The queue is bounded; what does not fit is refused at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from belated.decisions import ConflictError, Model, Store, StoreError, commit
from belated.decisions._operations import Answer, Operation
from belated.errors import BelatedError

LIMIT, MOST = 10_000, 2_000
"""Requests that may wait, and operations that go into one commit."""
PAUSE = 0.25
"""Seconds between two looks at windows that end while there is no traffic."""

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


class Request(NamedTuple):
    """Operations of one model, and the callback for their answers."""

    model: Model
    operations: Sequence[Operation]
    done: Callable[[list[Answer] | Exception], object]
    """Called with the answers, one for each operation, or with the error that stopped them all."""


class Committed(NamedTuple):
    """One commit, for the metrics."""

    seconds: float
    operations: int


class Writer:
    """Writes for all models of one store; `watch` is called with each commit, `flush` after its callbacks."""

    def __init__(
        self,
        store: Store,
        models: Callable[[], Sequence[Model]],
        watch: Callable[[Committed], None] = lambda committed: None,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._models, self._watch, self._flush = store, models, watch, flush
        self._waiting: deque[Request] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self.problem = ""
        """Why the last commit failed; empty if it did not."""
        self._thread = threading.Thread(target=self._run, name="belated-writer", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        return len(self._waiting)

    @property
    def alive(self) -> bool:
        """Whether requests are answered at all."""
        return self._thread.is_alive() and not self._closing

    def submit(self, request: Request) -> None:
        """Queue a request; its `done` is called from the writer's thread, after the commit."""
        with self._changed:
            if self._closing:
                raise FullError("the service is stopping")
            if len(self._waiting) >= LIMIT:
                raise FullError(f"{LIMIT} requests are waiting already")
            self._waiting.append(request)
            self._changed.notify()

    def close(self) -> None:
        """Answer what is waiting, and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        looked = time.monotonic()
        while True:
            taken = self._take()
            if taken:
                self._write(taken)
            elif self._closing:
                return
            if time.monotonic() - looked >= PAUSE:
                looked = time.monotonic()
                self._tick()

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
        began = time.perf_counter()
        try:
            answers: Sequence[list[Answer] | Exception] = self._commit(taken)
            self.problem = ""
        except (ConflictError, _RejectedError) as error:  # nothing was stored: find out which request it was
            if len(taken) > 1:
                for request in taken:
                    self._write([request])
                return
            if self._store.shared and isinstance(error, ConflictError) and attempt < ATTEMPTS:
                self._write(taken, attempt + 1)  # another process was faster with the same: see what it says
                return
            answers = [error.error if isinstance(error, _RejectedError) else error]
        except StoreError as error:
            self.problem = str(error)
            answers = [error] * len(taken)
        except Exception as error:  # a mistake of ours must not end the thread that all others wait for
            _log.exception("a commit failed")
            self.problem = f"{type(error).__name__}: {error}"
            answers = [error] * len(taken)
        self._watch(Committed(time.perf_counter() - began, sum(len(request.operations) for request in taken)))
        for request, answer in zip(taken, answers, strict=True):
            request.done(answer)
        self._flush()

    def _commit(self, taken: list[Request]) -> list[list[Answer]]:
        together: dict[str, list[Operation]] = {}
        for request in taken:
            together.setdefault(request.model.name, []).extend(request.operations)
        models = {request.model.name: request.model for request in taken}
        with ExitStack() as held:
            for name in sorted(models):
                held.enter_context(models[name].lock)
            try:
                batches = {name: models[name].prepare(operations) for name, operations in together.items()}
            except StoreError:
                raise
            except Exception as error:
                raise _RejectedError(error) from error
            commit(self._store, list(batches.values()))
        answers = {name: iter(batch.answers) for name, batch in batches.items()}
        return [[next(answers[request.model.name]) for _ in request.operations] for request in taken]

    def _tick(self) -> None:
        for model in self._models():
            try:
                model.tick()
                if self.problem:  # nobody may send anything as long as we are not ready: try by ourselves
                    model.snapshot()
                    self.problem = ""
            except StoreError as error:
                self.problem = str(error)
            except Exception:
                _log.exception("windows of %s could not be ended", model.name)
