"""Decisions out to a file and in from it, and copies of a store that is in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from belated import DamagedFileError, InvalidInputError
from belated.decisions import MemoryStore, Model, ModelSettings, SQLiteStore
from belated.decisions._rows import Row
from belated.decisions._transfer import COLUMNS, Imported, back_up, export_log, import_log, to_frame

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
SETTINGS = ModelSettings.from_table(TABLE)


def played(store: MemoryStore | SQLiteStore, count: int = 20) -> Model:
    model = Model("ads", SETTINGS, store)
    for i in range(count):
        made = model.decide({"x": i / count})
        if i % 3:
            model.feedback(made.id, float(i % 2))
    return model


def test_an_export_has_a_row_for_each_decision(tmp_path: Path) -> None:
    model = played(MemoryStore())
    assert export_log(model, tmp_path / "log.parquet") == 20
    frame = pl.read_parquet(tmp_path / "log.parquet")
    assert frame.columns == list(COLUMNS)
    assert frame["click"].null_count() == frame["reported"].null_count() == 7
    assert (frame["propensity_score"] > 0).all()


def test_an_import_learns_the_same_weights_and_can_be_repeated(tmp_path: Path) -> None:
    model = played(MemoryStore())
    export_log(model, tmp_path / "log.parquet")
    other = Model("ads", SETTINGS, MemoryStore())
    assert import_log(other, tmp_path / "log.parquet") == Imported(20, 13, 0, 0)
    assert import_log(other, tmp_path / "log.parquet") == Imported(0, 0, 20, 0)
    for name, weights in model.weights().items():
        assert other.weights()[name] == pytest.approx(weights, rel=1e-9, abs=1e-9)
    assert to_frame(other)["id"].to_list() == to_frame(model)["id"].to_list()


class Counting(MemoryStore):
    """A store that counts its commits."""

    commits = 0

    def append(self, rows: Sequence[Row]) -> None:
        self.commits += 1
        super().append(rows)


def test_an_import_commits_many_rows_at_once_and_each_id_once(tmp_path: Path) -> None:
    frame = to_frame(played(MemoryStore(), 30))
    pl.concat([frame, frame]).write_parquet(tmp_path / "twice.parquet")
    store = Counting()
    other = Model("ads", SETTINGS, store)
    assert import_log(other, tmp_path / "twice.parquet") == Imported(30, 20, 0, 30)
    assert (store.commits, other.summary()["decisions"]) == (1, 30)
    frame.drop("id").write_parquet(tmp_path / "nameless.parquet")
    assert import_log(other, tmp_path / "nameless.parquet").decisions == 30
    assert other.summary()["states"]["rewarded"] == 2 * (30 - frame["click"].null_count())
    assert other.verify() == []


def test_a_row_that_cannot_be_learned_stops_an_import_before_anything_of_its_commit(tmp_path: Path) -> None:
    frame = to_frame(played(MemoryStore(), 10))
    bad = frame.with_columns(pl.lit("nobody").alias("item_id"))
    pl.concat([frame, bad.with_columns(id=pl.lit("x") + pl.col("id"))]).write_parquet(tmp_path / "bad.parquet")
    other = Model("ads", SETTINGS, MemoryStore())
    with pytest.raises(InvalidInputError, match="nobody"):
        import_log(other, tmp_path / "bad.parquet")
    assert other.summary()["decisions"] == 0
    infinite = frame.drop("rewards").with_columns(reported=pl.lit(float("inf")))
    infinite.write_parquet(tmp_path / "infinite.parquet")
    with pytest.raises(InvalidInputError, match="reported in"):
        import_log(other, tmp_path / "infinite.parquet")
    for odd in ("[[1.0, 2.0]]", '[[1.0, "", 0, "x"]]', "nothing"):
        frame.with_columns(rewards=pl.lit(odd)).write_parquet(tmp_path / "odd.parquet")
        with pytest.raises(InvalidInputError, match="rewards in"):
            import_log(other, tmp_path / "odd.parquet")


def test_what_is_recorded_with_its_reward_is_one_commit() -> None:
    store = Counting()
    model = Model("ads", SETTINGS, store)
    made = model.record({"x": 1.0}, "b", 0.5)
    assert (store.commits, model.lookup(made.id).learned) == (1, 0.5)
    first, again = (model.record({"x": 1.0}, "b", 0.5, key="k") for _ in range(2))
    assert (first == again, model.summary()["decisions"]) == (True, 2)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    with pytest.raises(DamagedFileError, match="Parquet"):
        import_log(Model("ads", SETTINGS, MemoryStore()), tmp_path / "no.parquet")
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InvalidInputError, match="item_id and context"):
        import_log(Model("ads", SETTINGS, MemoryStore()), tmp_path / "other.parquet")


def test_a_backup_of_a_store_in_use_is_the_same_store(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "live.db")
    model = played(store)
    back_up(tmp_path / "live.db", tmp_path / "copy.db")
    model.decide({"x": 1.0})  # the live one goes on
    copy = Model("ads", None, SQLiteStore(tmp_path / "copy.db"))
    assert copy.summary()["decisions"] == 20
    assert copy.verify() == []
    with pytest.raises(InvalidInputError, match="does not exist yet"):
        back_up(tmp_path / "live.db", tmp_path / "copy.db")
    copy.store.close()
    store.close()


def test_the_mean_of_click_is_that_of_the_log_when_nobody_reports_a_no(tmp_path: Path) -> None:
    now = [1000.0]
    table = {**TABLE, "silence": {"kind": "mature", "seconds": 10.0}}
    model = Model("ads", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    ids = [model.decide({"x": 0.1}).id for _ in range(10)]
    for name in ids[:2]:
        model.feedback(name, 1.0)
    assert to_frame(model)["click"].null_count() == 10  # nothing is known before the windows are over
    now[0] += 11.0
    model.tick()
    model.decide({"x": 0.1})
    frame = to_frame(model)
    assert frame["click"].mean() == pytest.approx(0.2)
    assert (frame["reported"].mean(), frame["click"].null_count()) == (1.0, 1)


def test_an_import_takes_over_what_an_export_says(tmp_path: Path) -> None:
    model = played(MemoryStore())
    few = model.decide({"x": 0.1}, actions=["b"])
    never = model.decide({"x": 0.1}, active=False)
    back = model.decide({"x": 0.1})
    model.feedback(back.id, 5.0)
    model.cancel(back.id)
    export_log(model, tmp_path / "log.parquet")
    other = Model("ads", SETTINGS, MemoryStore())
    import_log(other, tmp_path / "log.parquet")
    assert to_frame(other).equals(to_frame(model))
    assert other.lookup(few.id).actions == ["b"]
    assert (other.lookup(never.id).status, other.lookup(back.id).status) == ("inactive", "cancelled")
    assert other.summary()["states"] == model.summary()["states"]


def test_rewards_are_of_the_age_at_which_they_came_wherever_they_go(tmp_path: Path) -> None:
    now = [1000.0]
    table = {**TABLE, "silence": {"kind": "by_age", "seconds": 16.0, "ages": 4}}
    model = Model("ads", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    for i in range(20):
        made = model.decide({"x": 0.1 * i})
        now[0] += 2.0
        model.feedback(made.id, 1.0, event="sold")
        now[0] += 5.0
        model.feedback(made.id, 0.25, event="sold", correction=True)
        model.feedback(made.id, 2.0, event="again")
    now[0] += 1.0
    model.tick()
    export_log(model, tmp_path / "log.parquet")
    other = Model("ads", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    import_log(other, tmp_path / "log.parquet")
    assert [entry.parts for entry in other.log()] == [entry.parts for entry in model.log()]
    assert next(entry.parts for entry in model.log()) == (0.0, 1.0, 1.25, 0.0)
    for name, weights in model.weights().items():
        assert other.weights()[name] == pytest.approx(weights, rel=1e-9, abs=1e-9)
    assert to_frame(other).equals(to_frame(model))
