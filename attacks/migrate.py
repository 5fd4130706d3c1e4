"""Models migrated to other settings: everything is kept, and learned as if with these settings from the start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attacks.tally import Tally
from belated.decisions import MemoryStore, Model, ModelSettings, SQLiteStore
from belated.decisions._copying import migrate

NAMES = ["u", "v", "w"]
NOW = 1_800_000_000.0


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Write a store, migrate it to another encoding, and compare it with a model that has had that from the start."""
    for number in range(tries):
        if tally.left():
            old, new = _settings(rng, NAMES, ["z"]), _settings(rng, [name for name in NAMES if rng.random() < 0.6])
            with tally.attempt(f"{old} to {new}"):
                _migrate(folder / str(number), old, new, rng)


def _settings(rng: np.random.Generator, features: list[str], categories: Sequence[str] = ()) -> dict[str, Any]:
    """Return settings with such contexts, at random: places, and whether weights are shared."""
    table: dict[str, Any] = {"actions": ["a", "b", "c"], "features": features, "silence": {"kind": "unknown"}}
    if categories or rng.random() < 0.5:
        table |= {"categories": ["z"], "hashed": int(rng.integers(2, 20))}
    if rng.random() < 0.3:
        table |= {"actions": {"a": {"s": 1.0}, "b": {"s": 2.0}, "c": {"s": -1.0}}, "action_features": ["s"]}
    return table


def _migrate(folder: Path, old: dict[str, Any], new: dict[str, Any], rng: np.random.Generator) -> None:
    now = [NOW]
    store = SQLiteStore(folder / "old.db", durable=False)
    model = Model("ads", ModelSettings.from_table(old), store, clock=lambda: now[0])
    rounds, ids = int(rng.integers(5, 60)), list[str]()
    for i in range(rounds):
        now[0] += float(rng.exponential(10.0))
        context = {**{name: float(rng.normal()) for name in NAMES}, "z": str(rng.integers(4))}
        some = ["a", "b"] if rng.random() < 0.3 and isinstance(old["actions"], list) else None
        ids.append(model.decide(context, actions=some, key=f"k{i}").id)
        which = ids[int(rng.integers(len(ids)))]
        model.feedback(which, float(rng.normal()), event=f"e{i % 4}", correction=True)
        if rng.random() < 0.1:
            model.cancel(ids[int(rng.integers(len(ids)))])
    before = list(model.log())
    store.close()
    migrate(str(folder / "old.db"), str(folder / "new.db"), {"ads": ModelSettings.from_table(new)})
    store = SQLiteStore(folder / "new.db")
    model = Model("ads", None, store, clock=lambda: now[0])
    assert model.verify() == [], model.verify()
    after = list(model.log())
    for one, other in zip(before, after, strict=True):
        assert one == other, f"{one} became {other}"
    fresh = Model("ads", ModelSettings.from_table(new), MemoryStore(), clock=lambda: now[0])
    known = {*new["features"], *new.get("categories", ())}
    for entry in before:
        context = {name: value for name, value in entry.context.items() if name in known}
        fresh.record(context, entry.action, entry.learned, actions=list(entry.actions), made=entry.made)
    for name, weights in fresh.weights().items():
        np.testing.assert_allclose(model.weights()[name], weights, rtol=1e-9, atol=1e-12)
    assert model.feedback(ids[-1], 1.0, event="late").status in ("accepted", "late")
    store.close()
