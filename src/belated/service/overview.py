"""What people want to see of a model: what it decided, what is in flight, how late rewards are, what it learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from belated.decisions import Entry, Model, State, Status
from belated.decisions.store.rows import DecisionRow
from belated.service.service import Service

RECENT = 5_000
"""Rows of the log that are looked at: enough for the pictures, and no more work for a long log."""
BINS, POINTS = 20, 30


def overview(service: Service, model: Model) -> dict[str, Any]:
    """Return the figures of one model, from its state and the last part of its log."""
    entries = recent(model)
    now = service.clock()
    summary = model.summary()
    return {
        **summary,
        "now": now,
        "settings": model.settings.to_table(),
        "actions": dict(Counter(entry.action for entry in entries)),
        "in_flight": _in_flight(model, entries, now),
        "delays": _delays(entries),
        "rewards": _rewards(entries),
        "weights": {name or "all": [float(one) for one in weights] for name, weights in model.weights().items()},
        "weight_names": list(model.settings.encoding.names),
        "alarms": alarms(service, model, entries, now),
        "looked_at": len(entries),
    }


def recent(model: Model) -> list[Entry]:
    """Return the latest decisions as they stand now."""
    with model.lock:
        first = max(0, model.store.last(model.name) - RECENT)
        rows = [row for row in model.store.log(model.name, first) if isinstance(row, DecisionRow)]
    return [model.lookup(row.id) for row in rows]


def _in_flight(model: Model, entries: Sequence[Entry], now: float) -> dict[str, Any]:
    ages = [now - entry.made for entry in entries if entry.status is State.IN_FLIGHT]
    return {"count": model.in_flight, "oldest_seconds": max(ages, default=None), "histogram": _histogram(ages)}


def _delays(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return how long rewards took that came: to the first news of each, not to its corrections."""
    late = [max(0.0, received - entry.made) for entry in entries for received in _news(entry)]
    return {
        "count": len(late),
        "median_seconds": float(np.median(late)) if late else None,
        "histogram": _histogram(late),
    }


def _news(entry: Entry) -> Iterable[float]:
    """Return when each event that counts was first heard of."""
    came = [event for event in entry.history if event.kind == "reward"]
    counted = {event.event for event in came if event.counted}
    return {event.event: event.received for event in reversed(came) if event.event in counted}.values()


def _histogram(values: Sequence[float]) -> dict[str, list[float]]:
    """Return counts between edges that grow by a constant factor: delays of minutes and of days in one picture."""
    if not values:
        return {"edges": [], "counts": []}
    largest = max(1.0, *values)
    edges = np.concatenate([[0.0], np.geomspace(min(1.0, largest / 10), largest * (1 + 1e-9), BINS)])
    counts, _ = np.histogram(values, edges)
    return {"edges": edges.tolist(), "counts": counts.astype(float).tolist()}


def _rewards(entries: Sequence[Entry]) -> list[dict[str, float]]:
    """Return the mean reward over time, of decisions that count, with a band of two standard errors."""
    known = [(entry.made, entry.learned) for entry in entries if entry.learned is not None]
    points = []
    for part in np.array_split(np.array(known, dtype=float), min(POINTS, max(1, len(known) // 5))) if known else []:
        if len(part):
            error = float(part[:, 1].std(ddof=1) / np.sqrt(len(part))) if len(part) > 1 else 0.0
            mean = float(part[:, 1].mean())
            points.append(
                {"time": float(part[:, 0].mean()), "mean": mean, "low": mean - 2 * error, "high": mean + 2 * error}
            )
    return points


def alarms(service: Service, model: Model, entries: Sequence[Entry], now: float) -> list[str]:
    """Return what somebody should look at, as sentences."""
    found = []
    if service.writer.problem:
        found.append(f"The last commit failed: {service.writer.problem}")
    if service.writer.depth > 1_000:
        found.append(f"The learner is behind: {service.writer.depth} requests are waiting.")
    came = [event.received for entry in entries for event in entry.history if event.kind == "reward"]
    late = sorted(event.received - entry.made for entry in entries for event in entry.history if event.kind == "reward")
    if len(came) >= 20:
        usual = 10 * max(60.0, float(np.quantile(late, 0.9)))
        if now - max(came) > usual and model.in_flight:
            found.append(f"Rewards have stopped: the last one came {(now - max(came)) / 3600:.1f} hours ago.")
    elif len(entries) >= 100 and not came:
        found.append("No reward has come for any of the decisions shown.")
    drawn = [entry.probability for entry in entries if entry.probability is not None]
    count = max(1, len(model.settings.names))
    if len(drawn) >= 100 and np.mean(np.array(drawn) <= model.settings.floor / count * (1 + 1e-9)) > 0.1:
        found.append("More than a tenth of the decisions have the least probability there is: the floor decides.")
    unknown = model.counts[Status.UNKNOWN]
    if unknown > 10 and unknown > model.counts[Status.ACCEPTED]:
        found.append(f"{unknown} rewards were for decisions that do not exist: is the sender using another store?")
    return found
