"""One run of an experiment: its rows are kept, and only then its checkpoint goes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Run, Simulation, Store
from belated.runner._backends import play_apart, play_run
from belated.runner._simulation import CHUNK

WORLD, LAW = belated.RiverSwim(states=3, horizon=4), belated.Poisson(5)


def a_run(algorithm: belated.Algorithm) -> Run:
    return Run(WORLD, algorithm, LAW, CHUNK + 10, 0, 1, "long", "river", "a", "late")


def leave_checkpoint(store: Store, run: Run) -> Path:
    """Write the state of `run` after the first chunk."""
    file = store.checkpoint(run)
    assert file is not None
    half = Simulation(run)
    while half.played < CHUNK:
        half.advance()
    half.save(file)
    return file


def test_when_the_rows_cannot_be_kept_the_checkpoint_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = a_run(belated.RandomPolicy()), Store(tmp_path)
    file = leave_checkpoint(store, run)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("belated._util.files.Folder.write", full)
        with pytest.raises(OSError, match="No space left"):
            play_run(run, store)
    assert file.exists()
    heard: list[int] = []
    rows = play_run(run, store, heard.append)
    assert heard[0] == CHUNK
    assert not file.exists()
    kept = store.read(run)
    assert kept is not None
    assert_frame_equal(kept, rows, check_exact=True)
    assert_frame_equal(rows, play_run(run, None), check_exact=True)


def test_a_worker_keeps_the_rows_or_sends_them() -> None:
    run, store = a_run(belated.RandomPolicy()), Store("memory://playing")
    assert play_apart(run, store) is None
    sent = play_apart(run, None)
    assert isinstance(sent, pl.DataFrame)
    kept = store.read(run)
    assert kept is not None
    assert_frame_equal(kept, sent, check_exact=True)


def test_an_error_names_the_run_and_keeps_its_kind() -> None:
    class Refusing:
        def start(self, problem: belated.Problem) -> belated.Agent:
            raise belated.UnknownNameError("nobody knows it")

    with pytest.raises(belated.UnknownNameError, match=r"^long/river/a/late/seed-00: nobody knows it$"):
        play_run(a_run(Refusing()), None)


def test_a_worker_with_another_belated_is_refused() -> None:
    run = a_run(belated.RandomPolicy())
    run.__dict__["_description"] = {**run.describe(), "made_by": {"belated": "0.0.9", "code": "00"}}
    with pytest.raises(
        belated.InvalidInputError, match=r"^long/river/a/late/seed-00: its worker has another version of belated, .*"
    ):
        play_apart(run, None)
