"""Errors at every step after a commit: what was stored is learned once, and a wrong state is never used or saved."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event
from typing import Any
from unittest import mock

import numpy as np

from attacks.tally import Tally
from belated.decisions import Model, ModelSettings, Reward, SQLiteStore, Status, StoreError
from belated.decisions import _engine as engine
from belated.decisions._posterior import Posterior
from belated.decisions._snapshot import differences
from belated.service._writer import Request, Writer

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
ERRORS = (MemoryError, OSError, KeyboardInterrupt, RuntimeError)
#: What is called after a commit, or at its end.
STEPS: tuple[tuple[Any, str], ...] = (
    (engine, "apply"),
    (engine, "take"),
    (Posterior, "learn"),
    (Posterior, "correct"),
    (SQLiteStore, "append"),
    (SQLiteStore, "save_snapshot"),
)


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Let `tries` steps fail, each before or after it has done its work."""
    logging.getLogger("belated").setLevel(logging.CRITICAL)
    for number in range(tries):
        if not tally.left():
            return
        (where, name), error = STEPS[number % len(STEPS)], ERRORS[int(rng.integers(len(ERRORS)))]
        late = bool(rng.random() < 0.5)
        with tally.attempt(f"{number}: {error.__name__} {'after' if late else 'in'} {name}"):
            _attack(folder / f"{number}.db", (where, name), error, late, rng)


def _attack(
    path: Path, step: tuple[Any, str], error: type[BaseException], late: bool, rng: np.random.Generator
) -> None:
    where, name = step
    model = Model("ads", ModelSettings.from_table(TABLE), SQLiteStore(path, durable=False))
    ids = [model.decide({"x": float(rng.random())}).id for _ in range(20)]
    whole, left = getattr(where, name), int(rng.integers(1, 20))

    def failing(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left:
            return whole(*given, **named)
        if late:
            whole(*given, **named)
        raise error("injected")

    with mock.patch.object(engine, "SNAPSHOT_EVERY", 5):
        writer = Writer(lambda: [model])
        try:
            with mock.patch.object(where, name, failing):
                told = [_ask(writer, model, Reward(made, 1.0, correction=bool(i % 2))) for i, made in enumerate(ids)]
            again = [_ask(writer, model, Reward(made, 1.0)) for made in ids]
        finally:
            assert writer.close(), "the writer has not ended"
    for one in told:
        assert isinstance(one, StoreError) or one[0].status in (Status.ACCEPTED, Status.DUPLICATE), one
    assert all(one[0].status in (Status.ACCEPTED, Status.DUPLICATE) for one in again), again
    assert all(model.lookup(made).learned == 1.0 for made in ids), "a reward was lost"
    assert model.verify() == [], "a state that is not the log's"
    model.store.close()
    restarted = Model("ads", None, SQLiteStore(path, durable=False))
    assert differences(model.state, restarted.state) == [], "a snapshot of a state that is not the log's"
    assert restarted.verify() == []
    restarted.store.close()


def _ask(writer: Writer, model: Model, operation: Reward) -> Any:
    """Return the answers to a reward, or the error."""
    told, found = Event(), list[Any]()

    def done(answer: Any) -> None:
        found.append(answer)
        told.set()

    writer.submit(Request(model, [operation], done))
    assert told.wait(60), "no answer"
    return found[0]
