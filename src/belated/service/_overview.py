"""The data of the dashboard: decisions, what is in flight, delays of rewards, learned weights, alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from belated.decisions import DecisionState, Entry, Model, Status
from belated.decisions._operations import STEP, duration
from belated.service._service import Service

ROWS, PARTS, LATEST = 5_000, 50, 1_000
"""Size of the sample: all rows of a log up to ROWS; of a longer one, PARTS evenly spaced pieces and the LATEST rows."""
BINS, POINTS = 20, 30
OLD = 600.0
"""Seconds after which outdated plans raise an alarm."""


def overview(service: Service, model: Model) -> dict[str, Any]:
    """Return the dashboard's data for one model, from its state and a sample of its log."""
    now, summary = service.now(), model.summary()
    if model.settings.sessions is None:
        entries, latest = look(model)
        known = [(entry.made, entry.learned) for entry in entries if entry.learned is not None]
    else:
        visits = service.visits(model)
        entries, latest = visits.entries, visits.latest
        known = visits.returns
        summary["sessions"] |= {"plan_age": max(0.0, now - summary["sessions"]["planned"]), "flow": visits.flow}
    encoding = model.settings.encoding
    shown = encoding.dimension - (encoding.hashed if model.state.sparse else 0)  # named features only, no hash buckets
    return {
        **summary,
        "now": now,
        "settings": model.settings.to_table(),
        "actions": _actions(model, latest),
        "in_flight": _in_flight(model, entries, now),
        "delays": _delays(entries),
        "rewards": _rewards(known),
        "arrival": {name or "all": each._asdict() for name, each in model.beliefs().items()},
        "signals": signals(model),
        "weights": {name or "all": weights[:shown].tolist() for name, weights in model.weights().items()},
        "weight_names": list(model.settings.encoding.names[:shown]),
        "alarms": alarms(service, model, entries, latest, now),
        "looked_at": len(entries),
        "latest": len(latest),
    }


def signals(model: Model) -> list[str]:
    """Describe how informative each signal of a model is."""
    found = []
    for name, part in model.worth().items():
        if part < 0.005:
            found.append(f"{name} says nothing about the reward so far. It costs almost nothing, but may be removed.")
        else:
            found.append(
                f"{name} explains {100 * part:.0f} % of the variance of the reward given the context, in advance."
            )
    return found


def look(model: Model) -> tuple[list[Entry], list[Entry]]:
    """Return a sample of all decisions, with everything known by now, and the latest decisions."""
    last = model.store.last(model.name)
    if last <= ROWS:
        entries = list(model.log())
        return entries, entries
    ends = [last * part // PARTS for part in range(1, PARTS + 1)]
    spread = [entry for end in ends for entry in model.log(after=end - ROWS // PARTS, last=end)]
    back = LATEST
    while len(latest := list(model.log(after=last - back))) < LATEST // 10 and back < ROWS:  # there may be only rewards
        back *= 2
    return spread, latest


def _actions(model: Model, latest: Sequence[Entry]) -> dict[str, int]:
    """Return how often each action was chosen recently, in the order of the settings."""
    found = Counter(entry.action for entry in latest)
    return {name: found[name] for name in dict.fromkeys((*model.settings.names, *found))}


def _in_flight(model: Model, entries: Sequence[Entry], now: float) -> dict[str, Any]:
    """Return the number of decisions in flight and their ages, extrapolated from the sample."""
    ages = [now - entry.made for entry in entries if entry.status is DecisionState.IN_FLIGHT]
    count, found = model.in_flight, _histogram(ages)
    found["counts"] = [each * count / len(ages) for each in found["counts"]]
    oldest = model.oldest()
    return {"count": count, "oldest_seconds": None if oldest is None else now - oldest.made, "histogram": found}


def _delays(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the delays of rewards, up to the first report rather than to corrections."""
    late = _late(entries)
    return {
        "count": len(late),
        "median_seconds": float(np.median(late)) if late else None,
        "histogram": _histogram(late),
    }


def _late(entries: Sequence[Entry]) -> list[float]:
    return [max(0.0, received - entry.made) for entry in entries for received in _news(entry)]


def _news(entry: Entry) -> Iterable[float]:
    """Return when each reward that counts was first received."""
    came = [event for event in entry.history if event.kind == "reward"]
    counted = {event.event for event in came if event.counted}
    return {event.event: event.received for event in reversed(came) if event.event in counted}.values()


def _histogram(values: Sequence[float]) -> dict[str, list[float]]:
    """Return a histogram with logarithmic bins, for delays between minutes and days."""
    if not values:
        return {"edges": [], "counts": []}
    largest = max(1.0, *values)
    edges = np.concatenate([[0.0], np.geomspace(min(1.0, largest / 10), largest * (1 + 1e-9), BINS)])
    counts, _ = np.histogram(values, edges)
    return {"edges": edges.tolist(), "counts": counts.astype(float).tolist()}


def _rewards(known: Sequence[tuple[float, float]]) -> list[dict[str, float]]:
    """Return the mean reward or return over time, with a band of two standard errors."""
    points = []
    for part in np.array_split(np.array(known, dtype=float), min(POINTS, max(1, len(known) // 5))) if known else []:
        if len(part):
            error = float(part[:, 1].std(ddof=1) / np.sqrt(len(part))) if len(part) > 1 else 0.0
            mean = float(part[:, 1].mean())
            points.append(
                {"time": float(part[:, 0].mean()), "mean": mean, "low": mean - 2 * error, "high": mean + 2 * error}
            )
    return points


def alarms(service: Service, model: Model, entries: Sequence[Entry], latest: Sequence[Entry], now: float) -> list[str]:
    """Return problems that need attention, as sentences."""
    found = []
    problem = service.writer.problems.get(model.name)
    if problem:
        found.append(f"No decisions can be made: {problem}")
    if abs(service.offset()) > STEP:
        found.append(f"The clock of this machine differs from the store's by {duration(abs(service.offset()))}.")
    if service.writer.depth > 1_000:
        found.append(f"The learner is behind: {service.writer.depth} requests are waiting.")
    if model.lag > 10_000:
        found.append(f"The learner is behind: {model.lag} rows of other processes are waiting.")
    found += _stopped(model, entries, latest, now)
    least = [entry.probability <= _floor(model, entry) for entry in latest if entry.probability is not None]
    if len(least) >= 100 and np.mean(least) > 0.1:
        found.append("More than a tenth of the decisions have the minimum probability: they were drawn by the floor.")
    found += _old_plans(service, model, now)
    unknown = model.counts[Status.UNKNOWN]
    if unknown > 10 and unknown > model.counts[Status.ACCEPTED]:
        found.append(f"{unknown} rewards were for decisions that do not exist: is the sender using another store?")
    return found


def _old_plans(service: Service, model: Model, now: float) -> list[str]:
    """Return an alarm if the plans of a model of sessions are outdated."""
    problem = service.planning.problem(model.name)
    if problem:
        return [problem]
    found = model.summary().get("sessions")
    if found is None or not found["behind"] or not found["ended"]:
        return []
    late = now - found["planned"]
    if late <= max(OLD, 10 * service.planning.took.get(model.name, 0.0)):
        return []
    return [f"The plans for sessions are {duration(late)} old, and {found['unseen']} sessions have ended since."]


def _stopped(model: Model, entries: Sequence[Entry], latest: Sequence[Entry], now: float) -> list[str]:
    """Return an alarm if no reward has arrived for much longer than usual, although some are missing."""
    late = _late(entries)
    came = [event.received for entry in (*entries, *latest) for event in entry.history if event.kind == "reward"]
    last = max([*came, model.rewarded], default=0.0)
    if len(late) >= 20:
        usual = 10 * max(60.0, float(np.quantile(late, 0.9)))
        if now - last > usual and model.in_flight:
            return [f"Rewards have stopped: the last one arrived {(now - last) / 3600:.1f} hours ago."]
    elif not last and model.summary()["decisions"] >= 100:
        return ["No reward has arrived yet."]
    return []


def _floor(model: Model, entry: Entry) -> float:
    """Return the minimum possible probability of an action of this decision."""
    return model.settings.floor / max(1, len(entry.probabilities or ())) * (1 + 1e-9)
