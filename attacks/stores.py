"""Small stores of decisions to attack, with a clock that stands still until it is moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from belated.decisions import Model, ModelSettings, SQLiteStore

TABLE: dict[str, Any] = {
    "actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "mature", "seconds": 20.0},
}  # fmt: skip
NOW = [1_800_000_000.0]


def model_of(store: Any, name: str = "ads") -> Model:
    """Return a model whose clock is `NOW`."""
    return Model(name, ModelSettings.from_table(TABLE), store, clock=lambda: NOW[0])


def play(model: Model, rounds: int, rng: np.random.Generator) -> list[str]:
    """Decide and reward, and return what was acknowledged."""
    ids: list[str] = []
    for i in range(rounds):
        NOW[0] += 1.0
        ids.append(model.decide({"x": float(rng.random()), "y": 1.0}, key=f"key {rng.integers(2**62)} {i}").id)
        model.feedback(ids[int(rng.integers(len(ids)))], float(rng.integers(3)), event=f"e{i}")
    return ids


def store_with_a_past(path: Path, rng: np.random.Generator) -> None:
    """Write a store of two models with snapshots, purged and erased decisions."""
    store = SQLiteStore(path, durable=False)
    one, two = model_of(store), model_of(store, "mail")
    play(one, 20, rng)
    one.purge(NOW[0])
    ids = play(one, 20, rng)
    one.erase(ids[3:5], keep_learned=False)
    play(two, 20, rng)
    two.snapshot()
    play(one, 10, rng)
    play(two, 10, rng)
    store.close()
