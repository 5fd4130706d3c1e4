"""The state behind the HTTP routes: the models of one store, their writer, and the metrics."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from belated.decisions import Model, ModelSettings, Store
from belated.decisions._engine import clock_of
from belated.decisions._ids import CheckedClock, Clock
from belated.decisions._operations import Answer, Operation
from belated.errors import UnknownNameError
from belated.service._keys import Keyring
from belated.service._metrics import Metrics
from belated.service._planning import Planning
from belated.service._visits import Looks
from belated.service._writer import Answers, Request, Writer

_Waiting = asyncio.Future[list[Answer]]
_Shown = TypeVar("_Shown")


class Service:
    """All models of a store, with their writer and metrics."""

    def __init__(
        self,
        store: Store,
        settings: Mapping[str, ModelSettings],
        *,
        clock: Clock | None = None,
        keys: Keyring | None = None,
    ) -> None:
        self.store, self.keys = store, keys or Keyring()
        self.clock = clock_of(store) if clock is None else clock
        self.log = logging.getLogger(__name__)
        self._changing = threading.Lock()
        self._showing: dict[object, threading.Lock] = defaultdict(threading.Lock)
        self._shown: dict[object, tuple[float, object]] = {}
        self.models = {name: self._made(name, settings.get(name)) for name in self._names(settings)}
        self.writer = Writer(self.all, lambda committed: self.metrics.committed(committed))
        self.visits = Looks()
        self.planning = Planning(self.all, lambda name: self.writer.count(name, "plan"))
        self.metrics = Metrics(self.all, self.writer, store.sizes, self.now, self.offset)

    def now(self) -> float:
        """Return the time for monitoring; never raises, even if the clock is implausible."""
        return self.clock.carried() if isinstance(self.clock, CheckedClock) else self.clock()

    def offset(self) -> float:
        """Return how many seconds this machine's clock is ahead of the store's."""
        return self.clock.offset() if isinstance(self.clock, CheckedClock) else 0.0

    def show(self, what: object, make: Callable[[], _Shown]) -> _Shown:
        """Return `make()`; concurrent callers that ask for the same thing share one call."""
        asked = time.monotonic()
        with self._showing[what]:
            known = self._shown.get(what)
            if known is not None and known[0] >= asked:
                return known[1]  # type: ignore[return-value]
            began = time.monotonic()
            made = make()
            self._shown[what] = began, made
            return made

    def _made(self, name: str, settings: ModelSettings | None) -> Model:
        """Return a model with everything compiled, so that its first request is not slow."""
        model = Model(name, settings, self.store, clock=self.clock)
        model.rehearse()
        return model

    def _names(self, settings: Mapping[str, ModelSettings]) -> list[str]:
        return sorted({*settings, *self.store.models()})

    def all(self) -> Sequence[Model]:
        return tuple(self.models.values())

    def model(self, name: str) -> Model:
        if name not in self.models:
            listed = ", ".join(self.models) or "none yet"
            raise UnknownNameError(f"model must be one of the service's models ({listed}), got {name!r}")
        return self.models[name]

    def configure(self, name: str, settings: ModelSettings) -> int:
        """Create a model, or change its settings; return their version."""
        with self._changing:
            if name in self.models:
                return self.models[name].change(settings)
            self.models = {**self.models, name: self._made(name, settings)}
            self.writer.watch_over(self.models[name])
            return self.models[name].settings_version

    async def run(self, model: Model, operations: Sequence[Operation]) -> list[Answer]:
        """Queue `operations`, wait for their commit, and return their answers."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting = loop.create_future()
        self.writer.submit(Request(model, operations, partial(_settle, waiting), loop))
        answers = await waiting
        for answer in answers:
            self.metrics.noted(model.name, answer)
        return answers

    def close(self) -> None:
        """Answer waiting requests, store a snapshot of each model, and close the store unless it hangs."""
        planned = self.planning.close()
        if self.writer.close() and planned:
            self._keep_learned()
            self.store.close()
        else:
            self.log.warning("the store does not respond: it is left open, and the fate of pending writes is unknown")

    def _keep_learned(self) -> None:
        for model in self.all():
            try:
                model.keep_learned()
            except Exception:  # everything is in the log: only the next plan takes longer
                self.log.warning("the planner's memory of %s could not be stored", model.name, exc_info=True)


def _settle(waiting: _Waiting, answer: Answers) -> None:
    if waiting.done():
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)
