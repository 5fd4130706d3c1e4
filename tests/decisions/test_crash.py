"""A process is killed while it writes: what it had acknowledged is there, once, and the model is what the log says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belated.decisions import Model, SQLiteStore, Status
from belated.decisions._store.postgres import PostgresStore

WORKER = """
import sys, random
from belated.decisions import Model, ModelSettings, SQLiteStore, Reward, Decide, Cancel
from belated.decisions._store.postgres import PostgresStore
kind, address, seed, silence = sys.argv[1:]
store = SQLiteStore(address) if kind == "sqlite" else PostgresStore(address)
table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": silence, "seconds": 0.05}}
model = Model("m", ModelSettings.from_table(table), store)
random.seed(int(seed))
ids = []
print("ready", flush=True)
while True:
    operations = [Decide(context={"x": random.random()}) for _ in range(random.randint(1, 5))]
    for _ in range(random.randint(0, 5)):
        if ids:
            name, reward = random.choice(ids), float(random.randint(0, 1))
            event, corrects = str(random.randint(0, 1)), random.random() < 0.2
            operations.append(Reward(id=name, reward=reward, event=event, correction=corrects))
    if ids and random.random() < 0.1:
        operations.append(Cancel(id=random.choice(ids)))
    results = model.run(operations)
    for given, result in zip(operations, results):
        if isinstance(given, Decide):
            ids.append(result.id)
            print("decided", result.id, result.action, result.probability, flush=True)
        elif isinstance(given, Reward) and result.status.value == "accepted":
            print("rewarded", given.id, given.event, given.reward, flush=True)
        elif isinstance(given, Cancel):
            print("cancelled", given.id, flush=True)
"""


def crash(kind: str, address: str, seed: int, seconds: float, silence: str) -> list[list[str]]:
    """Return what a process had acknowledged when it was killed."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    arguments = [sys.executable, "-c", WORKER, kind, address, str(seed), silence]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(seconds)
        worker.send_signal(signal.SIGKILL)
        lines = worker.stdout.read().splitlines(keepends=True)
    return [line.split() for line in lines if line.endswith("\n")]


def check(model: Model, acknowledged: list[list[str]]) -> None:
    rewards: dict[tuple[str, str], list[float]] = {}
    for kind, name, *rest in acknowledged:
        entry = model.lookup(name)
        if kind == "decided":
            assert (entry.action, str(entry.probability)) == (rest[0], rest[1])
        elif kind == "rewarded":
            rewards.setdefault((name, rest[0]) if len(rest) == 2 else (name, ""), []).append(float(rest[-1]))
        else:
            assert any(each.kind == "cancel" for each in entry.history)
    for (name, event), values in rewards.items():
        kept = [each.reward for each in model.lookup(name).history if each.kind == "reward" and each.event == event]
        assert kept[: len(values)] == values
        assert len(kept) <= len(values) + 5  # at most one batch more than was acknowledged
    assert model.verify() == []
    if acknowledged:
        name = acknowledged[0][1]
        known = [each for each in model.lookup(name).history if each.kind == "reward"]
        for each in known:
            assert each.reward is not None
            outcome = model.feedback(name, each.reward, event=each.event, version=each.version)
            assert outcome.status is Status.DUPLICATE


def crashes(kind: str, address: str, times: int, silence: str = "by_age") -> int:
    acknowledged: list[list[str]] = []
    for seed in range(times):
        acknowledged += crash(kind, address, seed, 0.2 + 0.3 * (seed % 4), silence)
        store = SQLiteStore(address) if kind == "sqlite" else PostgresStore(address)
        check(Model("m", None, store), acknowledged)
        store.close()
    return len(acknowledged)


def test_killed_processes_lose_nothing(tmp_path: Path) -> None:
    assert crashes("sqlite", str(tmp_path / "store.db"), 2) > 10


@pytest.mark.slow
@pytest.mark.parametrize("silence", ["mature", "by_age"])
def test_killed_processes_lose_nothing_in_many_runs(tmp_path: Path, silence: str) -> None:
    assert crashes("sqlite", str(tmp_path / "store.db"), 20, silence) > 500


@pytest.mark.slow
@pytest.mark.parametrize("silence", ["mature", "by_age"])
def test_killed_processes_lose_nothing_on_a_server(postgres_address: str, silence: str) -> None:
    assert crashes("postgres", postgres_address, 8, silence) > 100
