"""Models of sessions, and sets of plans that a test writes down instead of drawing them."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pytest
from decision_models import Clock

from belated.decisions import MemoryStore, Model, ModelSettings
from belated.decisions._rows import PlanRow
from belated.types import Floats

SESSIONS: dict[str, Any] = {
    "horizon": 3,
    "idle": 50.0,
    "actions": ["a", "b", "c"],
    "features": ["x"],
    "floor": 0.2,
    "agent": "greedy",
    "silence": {"kind": "mature", "seconds": 100.0, "default": 0.0},
}
HERE = {"x": 0.5}


class WrittenPlans(NamedTuple):
    """What each member does at each step, whatever the context."""

    shares: Floats
    """Shape (steps, members, actions)."""

    @property
    def members(self) -> int:
        return int(self.shares.shape[1])

    def distributions(self, step: int, state: Any) -> Floats:
        offered = self.shares[step][:, state.offered]
        found: Floats = offered / offered.sum(axis=1, keepdims=True)
        return found

    def to_bytes(self) -> bytes:
        return np.array(self.shares.shape).tobytes() + self.shares.tobytes()


def read_plans(settings: Any, content: bytes) -> WrittenPlans:
    """Return what `to_bytes` wrote."""
    return WrittenPlans(np.frombuffer(content[24:]).reshape(np.frombuffer(content[:24], np.int64)))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sets of plans be those that a test has written."""
    monkeypatch.setattr("belated.decisions._plans.plans_from_bytes", read_plans)
    monkeypatch.setattr("belated.decisions._planner.different", lambda *_: [])


def publish(model: Model, members: list[str], actions: str = "abc") -> None:
    """Publish a set of plans: of each member, the actions of its steps, such as "aab"; "." is any action alike."""
    shares = np.array([[[_share(each[t], name, actions) for name in actions] for each in members] for t in range(3)])
    content = WrittenPlans(shares).to_bytes()
    row = PlanRow(model.name, model.state.seq, 1, model.now(), content, hashlib.sha256(content).digest())
    sessions = model.state.sessions
    assert sessions is not None
    assert model.publish(row, sessions.ended)


def _share(taken: str, name: str, actions: str) -> float:
    return 1.0 / len(actions) if taken == "." else float(taken == name)


def sessions_of(store: Any = None, clock: Any = None, **changes: Any) -> Model:
    """Return a model of sessions."""
    settings = ModelSettings.from_table({**SESSIONS, **changes})
    return Model("shop", settings, MemoryStore() if store is None else store, clock=clock or Clock())
