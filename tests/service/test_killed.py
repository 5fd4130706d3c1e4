"""Killed at any moment under load: nothing that was acknowledged is lost, and nothing counts twice."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from killing import THREADS, Known, Load, check
from serving import MODELS, ask, free_port, start

from belated.decisions import Model, SQLiteStore

BY_AGE = MODELS.replace('{kind = "unknown"}', '{kind = "by_age", seconds = 2}')


def attack(folder: Path, kills: int, seed: int, models: str = MODELS) -> Known:
    (folder / "models.toml").write_text(models)
    known, rng, before = Known(), random.Random(seed), 0
    for kill in range(kills):
        port = free_port()
        process = start(folder, port)
        # Of the decisions of the last round, and some before; at the end of all.
        check(known, port, list(known.actions)[before:])
        before = max(0, len(known.actions) - 50)
        loads = [Load(known, port, rng.getrandbits(32)) for _ in range(THREADS)]
        for load in loads:
            load.start()
        threading.Event().wait(rng.uniform(0.05, 0.8))
        process.kill()
        process.wait()
        for load in loads:
            load.join()
        assert [wrong for load in loads for wrong in load.wrong] == [], f"kill {kill}"
    port = free_port()
    process = start(folder, port)
    try:
        check(known, port, known.actions)
        decided = ask(port, "/v1/models/ads")["decisions"]
    finally:
        process.kill()
        process.wait()
    # What was sent and not answered may have been stored: one decision for each caller and kill at most.
    assert len(known.actions) <= decided <= len(known.actions) + kills * THREADS
    store = SQLiteStore(folder / "d.db")
    try:
        assert store.check("ads") == []
        assert Model("ads", None, store).verify() == []
    finally:
        store.close()
    return known


def test_three_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    known = attack(tmp_path, kills=3, seed=1)
    assert known.actions
    assert any(known.rewards.values())


@pytest.mark.slow
@pytest.mark.parametrize("models", [MODELS, BY_AGE])
def test_a_hundred_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, models: str) -> None:
    known = attack(tmp_path, kills=100, seed=2, models=models)
    rewards = sum(map(len, known.rewards.values()))
    print(
        f"\n100 kills: {len(known.actions)} decisions and {rewards} rewards acknowledged, none lost, none counted twice"
    )
    assert len(known.actions) > 1_000
