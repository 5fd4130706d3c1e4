"""Decisions out to a file and in from it, and copies of a store that is in use."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from belated import DamagedFileError, InvalidInputError
from belated.decisions import MemoryStore, Model, ModelSettings, SQLiteStore
from belated.decisions.transfer import COLUMNS, back_up, export_log, import_log, to_frame

SETTINGS = ModelSettings.from_table({"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}})


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
    assert frame["click"].null_count() == 7
    assert (frame["propensity_score"] > 0).all()


def test_an_import_learns_the_same_weights_and_can_be_repeated(tmp_path: Path) -> None:
    model = played(MemoryStore())
    export_log(model, tmp_path / "log.parquet")
    other = Model("ads", SETTINGS, MemoryStore())
    assert import_log(other, tmp_path / "log.parquet") == 20
    assert import_log(other, tmp_path / "log.parquet") == 0
    for name, weights in model.weights().items():
        assert other.weights()[name] == pytest.approx(weights, rel=1e-9, abs=1e-9)
    assert to_frame(other)["id"].to_list() == to_frame(model)["id"].to_list()


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
    with pytest.raises(InvalidInputError, match="not there yet"):
        back_up(tmp_path / "live.db", tmp_path / "copy.db")
    copy.store.close()
    store.close()
