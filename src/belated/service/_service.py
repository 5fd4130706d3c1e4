"""What runs behind the addresses: the models of one store, the writer, and the figures."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from belated.decisions import Model, ModelSettings, Store, StoreError
from belated.decisions._ids import Clock
from belated.decisions._operations import Answer, Operation
from belated.errors import UnknownNameError
from belated.service._keys import Keyring
from belated.service._metrics import Metrics
from belated.service._writer import Request, Writer

_Waiting = asyncio.Future[list[Answer]]


class Service:
    """All models of a store, with their writer and metrics; `close` answers what is waiting and closes the store."""

    def __init__(
        self, store: Store, settings: Mapping[str, ModelSettings], *, clock: Clock, keys: Keyring | None = None
    ) -> None:
        self.store, self.clock, self.keys = store, clock, keys or Keyring()
        self.log = logging.getLogger(__name__)
        self._changing = threading.Lock()
        self.models = {name: Model(name, settings.get(name), store, clock=clock) for name in self._names(settings)}
        self.metrics = Metrics(self.all, lambda: self.writer.depth, store.sizes, clock)
        self._outbox: list[tuple[_Waiting, list[Answer] | Exception]] = []  # of one commit; only the writer touches it
        self.writer = Writer(store, self.all, self.metrics.committed, self._deliver)

    def _names(self, settings: Mapping[str, ModelSettings]) -> list[str]:
        return sorted({*settings, *self.store.models()})

    def all(self) -> Sequence[Model]:
        return tuple(self.models.values())

    def model(self, name: str) -> Model:
        if name not in self.models:
            listed = ", ".join(self.models) or "there is none yet"
            raise UnknownNameError(f"model must be one of those of this service ({listed}), got {name!r}")
        return self.models[name]

    def configure(self, name: str, settings: ModelSettings) -> int:
        """Create a model, or change its settings; return their version."""
        with self._changing:
            if name in self.models:
                return self.models[name].change(settings)
            self.models = {**self.models, name: Model(name, settings, self.store, clock=self.clock)}
            return self.models[name].settings_version

    async def run(self, model: Model, operations: Sequence[Operation]) -> list[Answer]:
        """Queue `operations`, wait for their commit, and return their answers."""
        waiting: _Waiting = asyncio.get_running_loop().create_future()
        self.writer.submit(Request(model, operations, lambda answer: self._outbox.append((waiting, answer))))
        answers = await waiting
        for answer in answers:
            self.metrics.noted(model.name, answer)
        return answers

    def _deliver(self) -> None:
        """Wake all who wait for a commit, from the writer's thread, with one call per event loop."""
        told, self._outbox = self._outbox, []
        for loop in {waiting.get_loop() for waiting, _ in told}:
            with suppress(RuntimeError):  # it is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, loop, told)

    def close(self) -> None:
        """Answer what is waiting, store a snapshot of each model, and close the store."""
        self.writer.close()
        for model in self.all():
            try:
                model.snapshot()
            except StoreError as error:  # the log is safe all the same, and the next start reads more of it
                self.log.warning("no snapshot of %s could be stored: %s", model.name, error)
        self.store.close()


def _settle(loop: asyncio.AbstractEventLoop, told: Sequence[tuple[_Waiting, list[Answer] | Exception]]) -> None:
    for waiting, answer in told:
        if waiting.get_loop() is not loop or waiting.cancelled():
            continue
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)
