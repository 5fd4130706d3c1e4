"""Sessions in other places: exported and imported, migrated, and saved from a damaged store."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import Clock
from session_models import HERE, SESSIONS, sessions_of

from belated.decisions import Model, ModelSettings, SQLiteStore
from belated.decisions._copying import migrate, salvage
from belated.decisions._transfer import Imported, export_log, import_log

TABLE = {**SESSIONS, "silence": {"kind": "unknown"}, "idle": 1e6}


def made(path: Path, clock: Clock) -> Model:
    """Play 12 sessions: some are open, some cut, some terminal, one was taken back."""
    model = sessions_of(SQLiteStore(path, durable=False), clock, **TABLE)
    rng = np.random.default_rng(1)
    for i in range(12):
        ids = [model.decide({"x": float(t)}, session=f"s{i}").id for t in range(1 + i % 3)]
        if i % 4:
            model.end(f"s{i}", terminal=i % 2 == 0)
        model.feedback(ids[0], float(rng.random()))
        model.feedback("", 0.5, session=f"s{i}", event="order")
        clock.now += 1.0
        if i == 5:
            model.plan()
    model.cancel(session="s1")
    return model


def shown(model: Model) -> list[Any]:
    """Return what is known of all sessions, but for what is of the store alone."""
    return [model.lookup_session(f"s{i}")._replace(plan=None) for i in range(12)]


def test_sessions_are_exported_and_imported(tmp_path: Path) -> None:
    clock = Clock()
    model = made(tmp_path / "one.db", clock)
    count = export_log(model, tmp_path / "log.parquet")
    other = sessions_of(None, clock, **TABLE)
    rewarded = sum(each.reward is not None for each in model.log())
    assert import_log(other, tmp_path / "log.parquet") == Imported(count, rewarded, 0, 0)
    assert import_log(other, tmp_path / "log.parquet") == Imported(0, 0, count, 0)
    for i in range(12):
        one, two = model.lookup_session(f"s{i}"), other.lookup_session(f"s{i}")
        assert [(each.id, each.action, each.probability) for each in one.steps] == [
            (each.id, each.action, each.probability) for each in two.steps
        ]
        assert [each.learned for each in one.steps] == pytest.approx([each.learned for each in two.steps])
        if i != 1:  # of one that was taken back all steps are
            assert (one.status, one.terminal) == (two.status, two.terminal)
    assert other.verify() == []
    model.store.close()


def test_sessions_move_to_another_store_and_go_on(tmp_path: Path, postgres_address: str) -> None:
    clock = Clock()
    model = made(tmp_path / "one.db", clock)
    before = shown(model)
    model.store.close()
    assert migrate(str(tmp_path / "one.db"), str(tmp_path / "two.db"), {})[0].notes == ()
    migrate(str(tmp_path / "two.db"), postgres_address, {})
    model = sessions_of(SQLiteStore(tmp_path / "two.db", durable=False), clock, **TABLE)
    assert shown(model) == before
    assert model.plan_is_due()
    model.plan()
    assert model.decide(HERE, session="s0").step == 1
    assert model.verify() == []
    model.store.close()


def test_what_was_purged_goes_along(tmp_path: Path) -> None:
    clock = Clock()
    model = made(tmp_path / "one.db", clock)
    assert model.purge(clock.now - 4.0) > 5
    steps = len(model._the_planner().learner)
    model.store.close()
    migrate(str(tmp_path / "one.db"), str(tmp_path / "two.db"), {})
    model = sessions_of(SQLiteStore(tmp_path / "two.db", durable=False), clock, **TABLE)
    model.plan()
    assert len(model._the_planner().learner) >= steps - 3  # without what was taken back
    assert model.verify() == []
    model.store.close()


def test_another_encoding_is_for_a_new_store(tmp_path: Path) -> None:
    clock = Clock()
    made(tmp_path / "one.db", clock).store.close()
    other = ModelSettings.from_table({**TABLE, "features": [], "categories": ["y"], "hashed": 4, "horizon": 2})
    notes = migrate(str(tmp_path / "one.db"), str(tmp_path / "two.db"), {"shop": other})[0].notes
    assert notes == ()
    model = Model("shop", other, SQLiteStore(tmp_path / "two.db", durable=False), clock=clock)
    model.plan()
    assert model.decide({"y": "z"}, session="new").step == 0
    assert model.verify() == []
    model.store.close()


def test_what_is_whole_of_a_damaged_store_is_saved(tmp_path: Path) -> None:
    clock = Clock()
    model = made(tmp_path / "one.db", clock)
    model.snapshot()
    first = model.lookup_session("s2").steps[0]
    kept = model.lookup_session("s8").steps
    model.store.close()
    with sqlite3.connect(tmp_path / "one.db") as damaged:
        damaged.execute("UPDATE decision SET context = ? WHERE id = ?", (json.dumps({"x": 9.0}), first.id))
    damaged.close()
    (copied,) = salvage(tmp_path / "one.db", str(tmp_path / "two.db"))
    assert any("steps of sessions after a lost step" in note for note in copied.notes)
    model = sessions_of(SQLiteStore(tmp_path / "two.db", durable=False), clock, **TABLE)
    assert model.lookup_session("s8").steps == kept
    model.plan()
    assert model.verify() == []
    model.store.close()


def test_what_was_learned_is_kept_for_the_next_process(tmp_path: Path) -> None:
    clock = Clock()
    model = made(tmp_path / "one.db", clock)
    model.keep_learned()
    model.plan()
    model.keep_learned()
    place = model.state.seq
    model.store.close()
    again = Model(model.name, None, SQLiteStore(tmp_path / "one.db"), clock=clock)
    assert again.new_planner().state.seq == place  # it need not read the log
    again.feedback("", 0.25, session="s2", event="order", version=2)  # a correction of what was learned before
    again.decide(HERE, session="later")
    again.end("later", terminal=True)
    again.plan()
    assert again.verify() == []  # the sets that the whole log gives
    again.erase(sessions=["s3"], keep_learned=False)
    assert [row.base for row in again.store.snapshots(again.name)] == [1]  # nothing of it is left anywhere
    again.store.close()
