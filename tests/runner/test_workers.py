"""Runs in workers that end as told."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Store
from belated.runner import _executor as executor
from belated.runner._backends import Played, packed, play_apart, play_run
from belated.runner._executor import ATTEMPTS, WorkerLostError, play_all
from belated.runner._experiment import Run


class DeadError(Exception):
    pass


class Scripted:
    """Workers of this process that end as told: "well", "dead" before the rows are kept, or "late", after.

    One that plays "for ever" has no end.
    """

    live = False
    deaths: tuple[type[Exception], ...] = (DeadError,)

    def __init__(self, *ends: str, at_once: int = 1) -> None:
        self.at_once = at_once
        self.ends = list(ends)
        self.played: list[str] = []
        self.closed = 0

    def submit(self, run: Run, store: Store | None) -> Played:
        future, end = Played(), self.ends.pop(0)
        self.played.append(run.agent_label)
        rows = None if end in ("dead", "for ever", "elsewhere") else play_apart(run, store)
        if end in ("dead", "late"):
            future.set_exception(DeadError())
        elif end != "for ever":
            future.set_result(rows)
        return future

    def close(self) -> None:
        self.closed += 1


def three() -> list[Run]:
    return belated.Experiment(
        name="three",
        environments=belated.RiverSwim(),
        agents={name: belated.RandomPolicy() for name in "abc"},
        delays=belated.Constant(0),
        episodes=10,
        seeds=1,
    ).runs()


def test_rows_kept_before_a_worker_died_are_not_played_again(tmp_path: Path) -> None:
    scripted = Scripted("late", "dead", "well", "well")
    rows = {run.id: frame for run, frame in play_all(scripted, three(), Store(tmp_path))}
    assert scripted.played == ["a", "b", "b", "c"]
    assert set(rows) == {run.id for run in three()}
    assert scripted.closed == 1


def test_without_a_folder_a_late_death_is_played_again() -> None:
    scripted = Scripted("late", "well", "well", "well")
    rows = {run.id: frame for run, frame in play_all(scripted, three(), None)}
    assert scripted.played == ["a", "a", "b", "c"]
    for run in three():
        assert_frame_equal(rows[run.id], play_run(run, None))


def test_giving_up_ends_what_is_being_played() -> None:
    scripted = Scripted("dead", "for ever", "dead", "dead", at_once=2)
    with pytest.raises(WorkerLostError, match="three/riverswim-5/a/"):
        list(play_all(scripted, three(), None))
    assert scripted.played == ["a", "b", *["a"] * (ATTEMPTS - 1)]
    assert scripted.closed == 1


def test_a_folder_that_the_machines_do_not_share_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PATIENCE", 0.05)
    scripted = Scripted("elsewhere", "for ever", "for ever", at_once=2)
    with pytest.raises(belated.InvalidInputError, match=r"shared by all.*three/riverswim-5/a/.*is not visible"):
        list(play_all(scripted, three(), Store(tmp_path)))
    assert scripted.closed == 1


def test_a_worker_finds_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, content = packed(three()[0], Store("rows"))
    _, sent = pickle.loads(content)
    assert sent.folder.path == tmp_path / "rows"
