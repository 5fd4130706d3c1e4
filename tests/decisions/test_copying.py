"""Copies of a store: under another encoding, on a server, and what is whole of a damaged one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, TABLE, Clock, model_of

from belated.decisions import Model, ModelSettings, SQLiteStore
from belated.decisions._copying import migrate, salvage
from belated.decisions._rows import REWARD, DecisionRow
from belated.decisions._store.postgres import PostgresStore
from belated.errors import DamagedFileError, InvalidInputError

OTHER = {**TABLE, "features": ["y"], "categories": ["z"], "hashed": 4}


def settings(table: dict[str, Any]) -> dict[str, ModelSettings]:
    return {"ads": ModelSettings.from_table(table)}


def made(path: Path, clock: Clock, count: int = 40, **changes: Any) -> list[str]:
    """Play with a store of two models, and return the ids of the first."""
    store = SQLiteStore(path, durable=False)
    model, other = model_of(store=store, clock=clock, **changes), model_of(store=store, clock=clock, name="mail")
    ids, rng = [], np.random.default_rng(0)
    for i in range(count):
        clock.now += 1.0
        some = ["a", "b"] if i % 5 == 0 else None
        ids.append(model.decide({"x": float(rng.random()), "y": i / count}, key=f"k{i}", actions=some).id)
        other.decide(CONTEXT)
        if i % 2:
            model.feedback(ids[i // 2], float(i % 3), event=f"e{i}")
    store.close()
    return ids


def test_a_model_goes_on_under_another_encoding(tmp_path: Path) -> None:
    clock = Clock()
    ids = made(tmp_path / "old.db", clock)
    old = Model("ads", None, SQLiteStore(tmp_path / "old.db"), clock=clock)
    before = {entry.id: entry for entry in old.log()}
    old.store.close()
    copied = migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), settings(OTHER))
    assert [(each.model, each.decisions, each.events, each.notes) for each in copied] == [
        ("ads", 40, 20, ()),
        ("mail", 40, 0, ()),
    ]
    store = SQLiteStore(tmp_path / "new.db")
    model = Model("ads", ModelSettings.from_table(OTHER), store, clock=clock)
    assert model.verify() == [] and Model("mail", None, store, clock=clock).verify() == []
    assert {entry.id: entry for entry in model.log()} == before  # with actions on offer, probabilities and rewards
    assert model.settings.encoding.dimension == 6
    again = ModelSettings.from_table(OTHER)
    fresh = model_of(clock=clock, **OTHER)
    for entry in before.values():
        fresh.record({"y": entry.context["y"]}, entry.action, entry.reward, actions=entry.actions, made=entry.made)
    for name, weights in fresh.weights().items():
        assert model.weights()[name] == pytest.approx(weights, rel=1e-9, abs=1e-12)
    assert model.feedback(ids[-1], 1.0).status == "accepted"  # late rewards still find their decisions
    assert again.encoding == model.settings.encoding
    store.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"kind": "mature", "seconds": 12}, {"kind": "by_age", "seconds": 20}),
        ({"kind": "unknown"}, {"kind": "by_age", "seconds": 20, "ages": 3}),
        ({"kind": "by_age", "seconds": 20}, {"kind": "mature", "seconds": 12}),
        ({"kind": "by_age", "seconds": 20}, {"kind": "by_age", "seconds": 30}),
    ],
)
def test_a_model_goes_on_with_other_ages(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """As if it had had them from the start: the same decisions and rewards, at the same times, are learned alike."""
    clock = Clock()
    made(tmp_path / "old.db", clock, silence=old)
    migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), settings({**TABLE, "silence": new}))
    store, before = SQLiteStore(tmp_path / "new.db"), SQLiteStore(tmp_path / "old.db")
    model = Model("ads", None, store, clock=clock)
    model.tick()
    fresh = model_of(clock=(now := Clock(0.0)), silence=new)
    for row in before.log("ads"):
        if isinstance(row, DecisionRow):
            now.now = row.made
            fresh.record(json.loads(row.context), row.ranking[0], actions=json.loads(row.actions), id=row.id)
        elif row.kind == REWARD:
            now.now = row.received
            assert row.reward is not None
            fresh.feedback(row.id, row.reward, event=row.event, observed=row.observed)
    now.now = clock.now
    fresh.tick()
    assert [entry.parts for entry in model.log()] == [entry.parts for entry in fresh.log()]
    assert len({len(entry.parts) for entry in model.log()}) > 1
    for name, weights in fresh.weights().items():
        assert model.weights()[name] == pytest.approx(weights, rel=1e-9, abs=1e-12)
    assert model.verify() == []
    before.close()
    store.close()


def test_shared_weights_are_encoded_for_each_action(tmp_path: Path) -> None:
    clock = Clock()
    made(tmp_path / "old.db", clock)
    table = {**TABLE, "actions": {"a": {"u": 1.0}, "b": {"u": 2.0}, "c": {"u": 3.0}}, "action_features": ["u"]}
    migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), settings(table))
    store = SQLiteStore(tmp_path / "new.db")
    row = next(iter(store.log("ads")))
    x, y = (json.loads(row.context)[name] for name in "xy")  # type: ignore[union-attr]
    u = {"a": 1.0, "b": 2.0, "c": 3.0}[row.ranking[0]]  # type: ignore[union-attr]
    expected = np.outer([1.0, x, y], [1.0, u]).ravel()
    np.testing.assert_array_equal(np.frombuffer(row.features), expected)  # type: ignore[union-attr]
    store.close()


def test_what_cannot_be_encoded_is_left_out_and_said(tmp_path: Path) -> None:
    clock = Clock()
    made(tmp_path / "old.db", clock)
    model = Model("ads", None, SQLiteStore(tmp_path / "old.db"), clock=clock)
    assert model.purge(clock.now - 30.0) > 0
    model.store.close()
    left = sum(1 for _ in Model("ads", None, SQLiteStore(tmp_path / "old.db", read_only=True)).log())
    copied, _ = migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), settings({**TABLE, "features": ["w"]}))
    assert copied.decisions == copied.events == 0
    assert f"{left} decisions were left out with their events, such as: w of context" in copied.notes[0]
    assert "purged or erased" in copied.notes[1]


def test_what_purged_decisions_taught_goes_along(tmp_path: Path) -> None:
    clock = Clock()
    ids = made(tmp_path / "old.db", clock, silence={"kind": "mature", "seconds": 5.0})
    store = SQLiteStore(tmp_path / "old.db")
    model = Model("ads", None, store, clock=clock)
    gone = model.purge(clock.now - 20.0)
    model.erase([ids[-3]], keep_learned=True)
    weights = model.weights()
    store.close()
    copied, _ = migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), {})
    assert (copied.decisions, copied.notes) == (39 - gone, ())
    store = SQLiteStore(tmp_path / "new.db")
    model = Model("ads", None, store, clock=clock)
    assert model.verify() == []
    for name, each in weights.items():
        np.testing.assert_array_equal(model.weights()[name], each)
    assert model.feedback(ids[0], 1.0).forgotten or gone == 0
    assert model.feedback(ids[-3], 1.0).forgotten
    store.close()


def test_a_store_moves_to_a_server_and_back(tmp_path: Path, postgres_address: str) -> None:
    clock = Clock()
    made(tmp_path / "old.db", clock)
    migrate(str(tmp_path / "old.db"), postgres_address, {})
    with pytest.raises(InvalidInputError, match="empty, but it has ads, mail"):
        migrate(str(tmp_path / "old.db"), postgres_address, {})
    migrate(postgres_address, str(tmp_path / "new.db"), {})
    one, two = (Model("ads", None, SQLiteStore(tmp_path / name), clock=clock) for name in ("old.db", "new.db"))
    there = Model("ads", None, PostgresStore(postgres_address), clock=clock)
    assert list(one.log()) == list(two.log()) == list(there.log())
    for name, weights in one.weights().items():
        np.testing.assert_array_equal(two.weights()[name], weights)
    for model in (one, two, there):
        assert model.verify() == []
        model.store.close()


def test_a_copy_is_whole_or_not_there(tmp_path: Path) -> None:
    made(tmp_path / "old.db", Clock())
    with pytest.raises(InvalidInputError, match="'nobody'"):
        migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), {"nobody": settings(OTHER)["ads"]})
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("UPDATE decision SET context = '{}' WHERE model = 'ads' AND number = 30")
    connection.close()
    with pytest.raises(DamagedFileError, match="was altered"):
        migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), {})
    assert [path.name for path in tmp_path.iterdir()] == ["old.db"]
    (tmp_path / "new.db").write_bytes(b"")
    with pytest.raises(InvalidInputError, match="does not exist yet"):
        migrate(str(tmp_path / "old.db"), str(tmp_path / "new.db"), {})


def nothing(connection: Any) -> None:
    """Do no harm."""


def lose_a_row(connection: Any) -> None:
    """Lose a decision; nobody can tell any more whether the row after it, another one, is as written."""
    connection.execute(
        "DELETE FROM decision WHERE id = (SELECT id FROM event WHERE seq = (SELECT min(seq) FROM event))"
    )


def change_rows(connection: Any) -> None:
    connection.execute("UPDATE decision SET features = zeroblob(24) WHERE model = 'ads' AND number IN (7, 20)")


def lose_the_end(connection: Any) -> None:
    for table in ("decision", "event"):
        connection.execute(f"DELETE FROM {table} WHERE model = 'ads' AND seq > 80")


def lose_settings(connection: Any) -> None:
    connection.execute("UPDATE settings SET text = '{}' WHERE model = 'ads'")


@pytest.mark.parametrize(
    ("damage", "decisions", "words"),
    [
        (nothing, 40, ""),
        (lose_a_row, 38, "events of lost decisions"),
        (change_rows, 38, "were altered"),
        (lose_the_end, 32, "end of the log"),
        (lose_settings, 0, "its settings"),
    ],
)
def test_what_is_whole_of_a_damaged_store_goes_on(
    damage: Callable[[Any], None], decisions: int, words: str, tmp_path: Path
) -> None:
    clock = Clock()
    ids = made(tmp_path / "old.db", clock)
    with sqlite3.connect(tmp_path / "old.db") as connection:
        damage(connection)
    connection.close()
    before = (tmp_path / "old.db").read_bytes()
    ads, mail = salvage(tmp_path / "old.db", str(tmp_path / "new.db"))
    assert (tmp_path / "old.db").read_bytes() == before
    assert (ads.decisions, mail.decisions, mail.notes) == (decisions, 40, ())
    assert words in "; ".join(ads.notes) and bool(words) == bool(ads.notes)
    store = SQLiteStore(tmp_path / "new.db")
    assert Model("mail", None, store, clock=clock).verify() == []
    if decisions:
        model = Model("ads", None, store, clock=clock)
        assert model.verify() == [] and len(list(model.log())) == decisions
        assert model.feedback(ids[10], 1.0, event="late").status == "accepted"
        assert model.verify() == []
    store.close()


def test_a_snapshot_keeps_what_lost_rows_taught(tmp_path: Path) -> None:
    clock = Clock()
    made(tmp_path / "old.db", clock)
    store = SQLiteStore(tmp_path / "old.db", durable=False)
    model = Model("ads", None, store, clock=clock)
    model.snapshot()
    weights = model.weights()
    store.close()
    with sqlite3.connect(tmp_path / "old.db") as connection:
        change_rows(connection)
    connection.close()
    ads, _ = salvage(tmp_path / "old.db", str(tmp_path / "new.db"))
    assert ads.notes[-1].startswith("not lost: what was learned up to position")
    store = SQLiteStore(tmp_path / "new.db")
    model = Model("ads", None, store, clock=clock)
    for name, each in weights.items():
        np.testing.assert_array_equal(model.weights()[name], each)
    assert model.verify() == []
    store.close()


def test_pages_that_cannot_be_read_cost_only_their_rows(tmp_path: Path) -> None:
    clock = Clock()
    made(tmp_path / "old.db", clock, count=400)
    with sqlite3.connect(tmp_path / "old.db") as connection:
        where = "SELECT max(pageno) FROM dbstat WHERE name = 'decision' AND pagetype = 'leaf' AND pageno < 60"
        try:
            page = connection.execute(where).fetchone()[0]
        except sqlite3.OperationalError:
            pytest.skip("needs a SQLite with dbstat")
    connection.close()
    content = bytearray((tmp_path / "old.db").read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\xff" * 4096
    (tmp_path / "old.db").write_bytes(content)
    store = SQLiteStore(tmp_path / "old.db", read_only=True)
    assert store.check("ads") != []
    store.close()
    ads, mail = salvage(tmp_path / "old.db", str(tmp_path / "new.db"))
    assert 370 < ads.decisions < 400 and 370 < mail.decisions < 400
    (tmp_path / "old.db").write_bytes(b"\xff" * 8192)
    with pytest.raises(DamagedFileError, match="cannot be read"):
        salvage(tmp_path / "old.db", str(tmp_path / "none.db"))
