"""Errors at every step after a commit: what was stored is learned once, and a wrong state is never used or saved."""

from __future__ import annotations

import logging
from contextlib import suppress
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

TABLE: dict[str, Any] = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
TABLES: dict[str, dict[str, Any]] = {
    "decisions": TABLE,
    "learned by age": {**TABLE, "silence": {"kind": "by_age", "seconds": 30.0, "ages": 3}},
    "sessions": {**TABLE, "horizon": 2, "agent": "greedy"},
}
ERRORS = (MemoryError, OSError, KeyboardInterrupt, RuntimeError)
#: What is called after a commit, or at its end.
STEPS: tuple[tuple[Any, str], ...] = (
    (engine, "apply"),
    (engine, "take"),
    (Posterior, "learn"),
    (Posterior, "correct"),
    (SQLiteStore, "append"),
    (SQLiteStore, "save_snapshot"),
    (SQLiteStore, "publish"),
)


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Let `tries` steps fail, each before or after it has done its work."""
    logging.getLogger("belated").setLevel(logging.CRITICAL)
    for number in range(tries):
        if not tally.left():
            return
        (where, name), error = STEPS[number % len(STEPS)], ERRORS[int(rng.integers(len(ERRORS)))]
        late, kind = bool(rng.random() < 0.5), list(TABLES)[number % len(TABLES)]
        with tally.attempt(f"{number}: {kind}, {error.__name__} {'after' if late else 'in'} {name}"):
            _attack(folder / f"{number}.db", TABLES[kind], (where, name), error, late, rng)


def _attack(
    path: Path,
    table: dict[str, Any],
    step: tuple[Any, str],
    error: type[BaseException],
    late: bool,
    rng: np.random.Generator,
) -> None:
    (where, name), now = step, [2e9]
    model = Model("ads", ModelSettings.from_table(table), SQLiteStore(path, durable=False), clock=lambda: now[0])
    visits = [f"visit {i}" if model.settings.sessions is not None else None for i in range(20)]
    ids = [model.decide({"x": float(rng.random())}, session=visit).id for visit in visits]
    rewards = [Reward("" if visit else made, 1.0, session=visit) for made, visit in zip(ids, visits, strict=True)]
    whole, left = getattr(where, name), int(rng.integers(1, 3 if name == "publish" else 20))

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
                told = []
                for i, reward in enumerate(rewards):
                    now[0] += 1.0  # ages end meanwhile
                    told.append(_ask(writer, model, reward._replace(correction=bool(i % 2))))
                    if reward.session and i % 5 == 4:
                        _plan(model)
            again = [_ask(writer, model, reward) for reward in rewards]
        finally:
            assert writer.close(), "the writer has not ended"
    for one in told:
        assert isinstance(one, StoreError) or one[0].status in (Status.ACCEPTED, Status.DUPLICATE), one
    assert all(one[0].status in (Status.ACCEPTED, Status.DUPLICATE) for one in again), again
    assert all(model.lookup(made).reward == 1.0 for made in ids), "a reward was lost"
    assert model.verify() == [], "a state that is not the log's"
    model.store.close()
    restarted = Model("ads", None, SQLiteStore(path, durable=False))
    assert differences(model.state, restarted.state) == [], "a snapshot of a state that is not the log's"
    assert restarted.verify() == []
    restarted.store.close()


def _plan(model: Model) -> None:
    """Publish a set of plans, which may fail."""
    with suppress(Exception, KeyboardInterrupt):
        model.plan()


def _ask(writer: Writer, model: Model, operation: Reward) -> Any:
    """Return the answers to a reward, or the error."""
    told, found = Event(), list[Any]()

    def done(answer: Any) -> None:
        found.append(answer)
        told.set()

    writer.submit(Request(model, [operation], done))
    assert told.wait(60), "no answer"
    return found[0]
