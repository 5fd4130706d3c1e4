"""A PostgreSQL server that hangs is given up, and nothing is lost or counted twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from decision_models import CONTEXT, settings_of

from belated.decisions import Model, PostgresStore, StoreError
from belated.decisions._store import postgres as module

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs signals")


@pytest.fixture
def model(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setattr(module, "SILENCE", 0.3)
    monkeypatch.setattr(module, "LOCK", 1)
    store = PostgresStore(postgres_address)
    yield Model("ads", settings_of(), store)
    store.close()


def backend(model: Model) -> int:
    """Return the process of the server that this store talks to."""
    store: Any = model.store
    return int(store._connection.info.backend_pid)


@pytest.mark.parametrize("at", ["a read", "a commit"])
def test_a_server_that_hangs_is_given_up(model: Model, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = model.decide(CONTEXT, key="before").id
    stopped = backend(model)
    if at == "a commit":
        store: Any = model.store
        heads = store._heads

        def stop() -> Any:
            os.kill(stopped, signal.SIGSTOP)
            return heads()

        monkeypatch.setattr(store, "_heads", stop)
    else:
        os.kill(stopped, signal.SIGSTOP)
    try:
        with pytest.raises(StoreError, match="no response within"):
            model.decide(CONTEXT, key="k")
        monkeypatch.undo()
        monkeypatch.setattr(module, "SILENCE", 30.0)
        if at == "a commit":  # it holds the lock
            with pytest.raises(StoreError, match="lock timeout"):
                model.decide(CONTEXT, key="k")
    finally:
        os.kill(stopped, signal.SIGCONT)
    made = model.decide(CONTEXT, key="k")
    assert backend(model) != stopped
    assert model.decide(CONTEXT, key="k") == made and model.decide(CONTEXT, key="before").id == kept
    assert model.summary()["decisions"] == 2 and model.verify() == []


def test_a_statement_that_takes_too_long_is_ended_by_the_server(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATEMENT", 1)
    monkeypatch.setattr(module, "SILENCE", 30.0)
    store: Any = model.store
    store._connection.close()
    store._connect()
    with pytest.raises(StoreError, match="statement timeout"):
        store._read("SELECT pg_sleep(20)")
    assert model.decide(CONTEXT).id


def test_the_clock_is_the_servers(model: Model) -> None:
    store: Any = model.store
    found = [store._read("SELECT extract(epoch FROM clock_timestamp())")[0][0], store.time()]
    assert 0.0 <= found[1] - float(found[0]) < 60.0
