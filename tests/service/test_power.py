"""A power cut at any moment: the disk has what was synced, and any part of the rest."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from power import Said, Sync, Write, after_cut, recording

from belated.decisions import Model, ModelSettings, SQLiteStore

TABLE = {"actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "unknown"}}


def play(folder: Path, rounds: int, *, durable: bool) -> tuple[dict[str, bytes], list[Any]]:
    """Decide, reward and correct; return the files as they were before, and all that happened to them."""
    store = SQLiteStore(folder / "d.db")
    Model("ads", ModelSettings.from_table(TABLE), store)
    store.close()
    base = {"d.db": (folder / "d.db").read_bytes()}
    rng = random.Random(0)
    with recording(folder) as happened:
        store = SQLiteStore(folder / "d.db", durable=durable)
        store._connection.execute("PRAGMA wal_autocheckpoint = 20")  # many checkpoints in a short run
        model = Model("ads", None, store)
        for i in range(rounds):
            made = model.decide({"x": rng.random(), "y": 1.0})
            happened.append(Said((made.id, None)))
            if i % 3:
                model.feedback(made.id, float(i), event="e")
                happened.append(Said((made.id, float(i))))
            if i % 3 == 2:
                model.feedback(made.id, -float(i), event="e", version=1)
                happened.append(Said((made.id, -float(i))))
            if i % 50 == 49:
                model.snapshot()
        whole = list(happened)
        store.close()
    return base, whole


def lost(base: dict[str, bytes], happened: list[Any], folder: Path, rng: random.Random) -> int:
    """Cut, restart, and return how much of what was acknowledged is not there."""
    after_cut(base, happened, folder, rng)
    store = SQLiteStore(folder / "d.db")
    try:
        assert store.check("ads") == []
        model = Model("ads", None, store)
        assert model.verify() == []
        said: dict[str, list[float | None]] = {}
        for each in happened:
            if isinstance(each, Said):
                said.setdefault(each.what[0], []).append(each.what[1])
        there = {entry.id: entry.reward for entry in model.log()}
        newest = next(reversed(said), None)

        def is_lost(made: str) -> bool:
            if made not in there or there[made] in said[made][:-1]:
                return True
            return (
                there[made] != said[made][-1] and made != newest
            )  # its next event may be there, though nobody was told

        return sum(map(is_lost, said))
    finally:
        store.close()


def cuts(tmp_path: Path, count: int, *, durable: bool) -> list[int]:
    (tmp_path / "live").mkdir()
    base, happened = play(tmp_path / "live", 120, durable=durable)
    assert sum(isinstance(each, Write) for each in happened) > 200
    assert any(isinstance(each, Sync) and each.file == "d.db" for each in happened)  # checkpoints
    rng, found = random.Random(1), []
    for _ in range(count):
        folder = tmp_path / "cut"
        folder.mkdir()
        found.append(lost(base, happened[: rng.randrange(1, len(happened) + 1)], folder, rng))
        shutil.rmtree(folder)
    return found


def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    assert cuts(tmp_path, 40, durable=True) == [0] * 40


def test_without_waiting_for_the_disk_commits_are_lost_and_nothing_is_torn(tmp_path: Path) -> None:
    assert max(cuts(tmp_path, 20, durable=False)) > 0  # so that the test above can fail


@pytest.mark.slow
def test_a_thousand_power_cuts_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    found = cuts(tmp_path, 1_000, durable=True)
    print(f"\n{len(found)} power cuts, {sum(found)} of what was acknowledged lost")
    assert found == [0] * 1_000
