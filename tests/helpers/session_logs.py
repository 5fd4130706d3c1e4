"""Logs of sessions in a small world, written down without a model: what is known of every session is known here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.decisions import DecisionState, Entry, ModelSettings, SessionEntry
from belated.environments import ShopFunnel
from belated.types import Floats, Ints


def funnel_settings(horizon: int, **more: Any) -> ModelSettings:
    table = {"actions": list(ShopFunnel.ACTIONS), "categories": ["page"], "hashed": 8, "silence": {"kind": "unknown"}}
    return ModelSettings.from_table({**table, "horizon": horizon, **more})


def step_entry(
    session: int, step: int, context: Any, actions: Sequence[str], action: int, chances: Floats, reward: float
) -> Entry:
    values: dict[str, Any] = dict.fromkeys(Entry._fields)
    values |= {
        "id": f"{session}.{step}",
        "number": 0,
        "made": float(session),
        "action": actions[action],
        "probability": float(chances[action]),
        "status": DecisionState.REWARDED,
        "reward": reward,
        "learned": reward,
        "slot": 0,
        "context": context,
        "actions": tuple(actions),
        "ranking": (actions[action],),
        "probabilities": tuple(chances.tolist()),
        "history": (),
        "session": str(session),
        "step": step,
    }
    return Entry(**values)


def session_entry(session: int, steps: Sequence[Entry], **more: Any) -> SessionEntry:
    values: dict[str, Any] = {
        "session": str(session), "status": "ended", "steps": tuple(steps), "terminal": True, "ended": float(session),
        "context": None, "due": None, "plan": 0,
    }  # fmt: skip
    return SessionEntry(**{**values, **more})


def funnel_log(
    funnel: ShopFunnel, sessions: int, members: Ints, floor: float, rng: np.random.Generator
) -> list[SessionEntry]:
    """Play sessions by members of a set, each a table of actions by step and page, until visitors are gone."""
    found, count = [], funnel.actions
    for session in range(sessions):
        page, steps, weights, own = 0, [], np.full(len(members), 1 / len(members)), rng.integers(len(members))
        for h in range(funnel.horizon):
            likely = np.full((len(members), count), floor / count)
            likely[np.arange(len(members)), members[:, h, page]] += 1 - floor
            action = int(np.searchsorted(np.cumsum(likely[own])[:-1], rng.random(), side="right"))
            reward = float(rng.random() < funnel.rewards[0, page, action])
            context = {"page": funnel.PAGES[page]}
            steps.append(step_entry(session, h, context, funnel.ACTIONS, action, weights @ likely, reward))
            weights = weights * likely[:, action]
            weights /= weights.sum()
            follows = np.cumsum(funnel.transitions[0, page, action])[:-1]
            page = int(np.searchsorted(follows, rng.random(), side="right"))
            if page == funnel.states - 1:
                break
        found.append(session_entry(session, steps))
    return found


def value_of(funnel: ShopFunnel, policy: Floats) -> float:
    """Return the mean return of a policy π(a | page), shape (pages, actions), by going backwards."""
    value = np.zeros(funnel.states)
    for _ in range(funnel.horizon):
        value = (policy * (funnel.rewards[0] + funnel.transitions[0] @ value)).sum(axis=1)
    return float(value[0])
