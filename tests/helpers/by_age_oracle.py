"""What a model that learns by age should believe, from its log: plain regressions with dummies for the actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from belated.decisions import ByAge, DecisionState, Model
from belated.decisions._operations import Event

Floats = npt.NDArray[np.float64]


def reached(model: Model) -> list[list[tuple[int, Floats, Floats, Floats]]]:
    """Return for each age the decisions that have reached it: action, x, what had come before, and what came.

    What has come is (reward, signals), each as it was known at the end of an age.
    """
    silence, names = model.settings.silence, model.settings.names
    assert isinstance(silence, ByAge)
    rows: list[list[tuple[int, Floats, Floats, Floats]]] = [[] for _ in range(silence.ages)]
    for entry in model.log():
        if entry.due is None or entry.status in (DecisionState.CANCELLED, DecisionState.INACTIVE):
            continue
        began = entry.due - silence.seconds
        before = np.zeros(1 + len(model.settings.signals))
        for b, end in enumerate(silence.ends):
            if began + end > model.state.over + 1e-9:
                break
            last = b == silence.ages - 1
            known = [event for event in entry.history if last or event.received <= began + end + 1e-9]
            rewards = _newest([event for event in known if event.kind == "reward"])
            signals = _newest([event for event in known if event.kind == "signal"])
            value = sum(rewards.values()) if rewards else silence.default
            now = np.array([value, *(signals.get(name, 0.0) for name in model.settings.signals)])
            x = np.array([1.0, entry.context["x"], entry.context["y"]])
            rows[b].append((names.index(entry.action), x, before, now - before))
            before = now
    return rows


def _newest(events: list[Event]) -> dict[str, float]:
    known: dict[str, tuple[int, float]] = {}
    for event in events:
        if event.reward is not None and (event.event not in known or event.version > known[event.event][0]):
            known[event.event] = event.version, event.reward
    return {name: value for name, (_, value) in known.items()}


def weights(model: Model) -> dict[str, Any]:
    """Return the weights of E[R | x] of every action."""
    names, d = model.settings.names, 3
    k = 1 + len(model.settings.signals)
    total, gain = {name: np.zeros(d) for name in names}, np.eye(k)[0]
    for rows in reversed(reached(model)):
        if not rows:
            continue
        actions, xs, s, c = (np.array(each) for each in zip(*rows, strict=True))
        kappa = 2.0 ** round(np.log2(np.mean((xs**2).sum(axis=1))))
        dummies = np.zeros((len(rows), len(names) * d))
        for i, action in enumerate(actions):
            dummies[i, action * d : action * d + d] = xs[i]
        left = np.eye(len(rows)) - dummies @ np.linalg.solve(
            dummies.T @ dummies + kappa * np.eye(len(names) * d), dummies.T
        )
        varied = np.flatnonzero(np.abs(s).max(axis=0) > 0.0)
        slopes = np.zeros((k, k))
        if varied.size:
            before = s[:, varied].T @ left @ s[:, varied]
            before += np.diag(np.diag(before)) / len(rows)
            slopes[varied] = np.linalg.solve(before, s[:, varied].T @ left @ c)
        rest = c - s @ slopes
        common = np.linalg.solve(xs.T @ xs + kappa * np.eye(d), xs.T @ rest)
        for place, name in enumerate(names):
            mine = actions == place
            gram = xs[mine].T @ xs[mine] + kappa * np.eye(d)
            total[name] += np.linalg.solve(gram, xs[mine].T @ rest[mine] + kappa * common) @ gain
        gain = gain + slopes @ gain
    return total
