"""Small models with a clock that the test moves."""

from __future__ import annotations

from typing import Any

from belated.decisions import MemoryStore, Model, ModelSettings

TABLE: dict[str, Any] = {"actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "unknown"}}
CONTEXT = {"x": 0.3, "y": 1.0}


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def settings_of(**changes: Any) -> ModelSettings:
    """Return the settings of `TABLE`, with changes."""
    return ModelSettings.from_table({**TABLE, **changes})


def model_of(store: Any = None, clock: Any = None, name: str = "ads", **changes: Any) -> Model:
    """Return a model of these settings."""
    return Model(name, settings_of(**changes), MemoryStore() if store is None else store, clock=clock or Clock())
