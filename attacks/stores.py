"""Small stores of decisions to attack, with a clock that stands still until it is moved: models of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from belated.decisions import Model, ModelSettings, SQLiteStore

TABLE: dict[str, Any] = {
    "actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "mature", "seconds": 20.0},
}  # fmt: skip
#: By kind: decisions that stand for themselves, those that are learned by age with a signal, and steps of sessions.
TABLES: dict[str, dict[str, Any]] = {
    "ads": TABLE,
    "mail": {**TABLE, "silence": {"kind": "by_age", "seconds": 20.0, "ages": 4}, "signals": ["opened"]},
    "shop": {**TABLE, "horizon": 3, "idle": 10.0, "agent": "greedy"},
}
NOW = [1_800_000_000.0]


def model_of(store: Any, name: str = "ads", kind: str = "") -> Model:
    """Return a model of a kind, by default that of its name, whose clock is `NOW`."""
    return Model(name, ModelSettings.from_table(TABLES[kind or name]), store, clock=lambda: NOW[0])


def play(model: Model, rounds: int, rng: np.random.Generator) -> list[str]:
    """Decide and reward, and return the ids of what was acknowledged."""
    ids: list[str] = []
    of_sessions, first = model.settings.sessions is not None, rng.integers(2**62)
    for i in range(rounds):
        NOW[0] += 1.0
        visit = {"session": f"visit {first} {i // 3:03}"} if of_sessions else {}
        key = f"key {rng.integers(2**62)} {i}"
        ids.append(model.decide({"x": float(rng.random()), "y": 1.0}, key=key, **visit).id)
        if not of_sessions:
            model.feedback(ids[int(rng.integers(len(ids)))], float(rng.integers(3)), event=f"e{i}")
        elif rng.random() < 0.5:
            model.feedback("", float(rng.integers(2)), event=f"e{i}", **visit)
        if model.settings.signals:
            model.signal(ids[int(rng.integers(len(ids)))], "opened", float(rng.random()), correction=True)
    return ids


def store_with_a_past(path: Path, rng: np.random.Generator) -> None:
    """Write a store of models of every kind with snapshots, purged and erased decisions, and a set of plans."""
    store = SQLiteStore(path, durable=False)
    models = {name: model_of(store, name) for name in TABLES}
    for name, model in models.items():
        play(model, 21, rng)
        NOW[0] += 40.0
        model.tick()
        model.purge(NOW[0])
        ids = play(model, 21, rng)
        if name == "shop":
            model.plan()
            play(model, 9, rng)
        model.erase(ids[3:5], keep_learned=False)
        play(model, 9, rng)
        model.snapshot()
    for model in models.values():
        play(model, 9, rng)
    store.close()
