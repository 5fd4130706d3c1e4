"""Rows on disk: whole, recognised, and never mixed with those of other settings."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Run, Store
from belated.runner.store import to_parquet


def one_run(**changes: object) -> Run:
    experiment = belated.Experiment(
        name="x",
        environments=belated.RiverSwim(),
        agents={"a": belated.DelayedPSVI(**changes)},  # type: ignore[arg-type]
        delays=belated.Lossy(belated.Constant(1), 0.5),
        episodes=20,
        seeds=1,
    )
    return experiment.runs()[0]


def play(run: Run) -> pl.DataFrame:
    return belated.simulate(run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=run.seed)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    assert store.read(run) is None
    rows = play(run)
    store.write(run, rows)
    again = store.read(run)
    assert again is not None
    assert_frame_equal(again, rows, check_exact=True)
    assert store.path(run) == tmp_path / "x/riverswim-5/a/lossy-0.5-constant-1/seed-00.parquet"


def test_rows_of_other_settings_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(one_run(), play(one_run()))
    with pytest.raises(belated.InvalidInputError, match=r"holds rows of other settings: agent was .*'scale': 1\.0"):
        store.read(one_run(scale=2.0))


def test_damage_at_any_place_is_noticed(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    store.write(run, play(run))
    whole = store.path(run).read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        store.path(run).write_bytes(whole[:length])
        with pytest.raises(belated.DamagedFileError, match=r"seed-00\.parquet"):
            store.read(run)


def test_foreign_and_short_files_are_refused(tmp_path: Path) -> None:
    store, run = Store(tmp_path), one_run()
    path = store.path(run)
    path.parent.mkdir(parents=True)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(belated.DamagedFileError):
        store.read(run)
    path.write_bytes(to_parquet(pl.DataFrame({"a": [1]}), run.describe()))
    with pytest.raises(belated.DamagedFileError, match="does not have the columns"):
        store.read(run)
    path.write_bytes(to_parquet(play(run)[:10], run.describe()))
    with pytest.raises(belated.DamagedFileError, match="must have 20 rows, got 10"):
        store.read(run)
