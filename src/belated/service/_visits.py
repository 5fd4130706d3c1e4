"""The dashboard's data about sessions: their returns over time, and how they move from step to step.

They are computed from a sample of whole sessions: some spread over the log, and the latest ones. To keep this cheap,
nothing is sampled again while the log has not grown, nor before many times the duration of the last sample has passed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from belated.decisions import Entry, ForgottenError, Model, SessionEntry
from belated.decisions._rows import DecisionRow
from belated.errors import UnknownNameError

#: Rows read to find where sessions begin, and in how many pieces; sampled sessions, and latest sessions.
ROWS, PARTS, SPREAD, LATEST = 3_000, 30, 300, 150
#: Maximum number of steps in the diagram, and of values of a category; the other values are merged.
STEPS, PLACES, OTHER = 12, 7, "others"
#: Pause between samples, as a multiple of the duration of the last one.
REST = 50.0


class Visits(NamedTuple):
    """A sample of sessions."""

    entries: list[Entry]
    """Steps of sessions spread over the log."""
    latest: list[Entry]
    """Steps of the latest sessions."""
    returns: list[tuple[float, float]]
    """Start time and return of each session that has ended with known rewards."""
    flow: dict[str, Any]
    """How the latest sessions moved from step to step."""


class Looks:
    """The latest sample of each model's sessions."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, float, Visits]] = {}

    def __call__(self, model: Model) -> Visits:
        place, began = model.store.last(model.name), time.monotonic()
        seen, until, visits = self._known.get(model.name, (-1, 0.0, None))
        if visits is None or (place != seen and began >= until):
            visits = visits_of(model, place)
            now = time.monotonic()
            self._known[model.name] = place, now + REST * (now - began), visits
        return visits


def visits_of(model: Model, last: int) -> Visits:
    """Sample the sessions that began before position `last` of the log."""
    ends = [last * part // PARTS for part in range(1, PARTS + 1)]
    parts = [(0, last)] if last <= ROWS else [(end - ROWS // PARTS, end) for end in ends]
    spread = [name for after, upto in parts for name in _beginnings(model, after, upto)]
    names = spread[:: max(1, -(-len(spread) // SPREAD))]
    recent = list(_beginnings(model, max(0, last - ROWS), last))[-LATEST:]
    found = {name: session for name in dict.fromkeys([*names, *recent]) if (session := _look_up(model, name))}
    latest = [found[name] for name in recent if name in found]
    return Visits(
        [step for name in names if name in found for step in found[name].steps],
        [step for session in latest for step in session.steps],
        [earned for name in names if name in found and (earned := _earned(found[name]))],
        flow(latest, model.settings.encoding.categories),
    )


def _beginnings(model: Model, after: int, upto: int) -> Iterator[str]:
    """Yield the names of sessions whose first steps have positions in (after, upto]."""
    for row in model.store.log(model.name, after, upto):
        if isinstance(row, DecisionRow) and row.step == 0 and row.session is not None:
            yield row.session


def _look_up(model: Model, name: str) -> SessionEntry | None:
    try:
        return model.lookup_session(name)
    except (ForgottenError, UnknownNameError):  # erased in the meantime
        return None


def _earned(session: SessionEntry) -> tuple[float, float] | None:
    learned = [step.learned for step in session.steps if step.learned is not None]
    whole = session.status == "ended" and len(learned) == len(session.steps)
    return (session.steps[0].made, sum(learned)) if whole else None


def flow(sessions: Sequence[SessionEntry], categories: Sequence[str]) -> dict[str, Any]:
    """Return how sessions move from step to step: counts by value of the first category and by action."""
    by = categories[0] if categories else None
    paths = [[(place(step.context, by), step.action) for step in session.steps[:STEPS]] for session in sessions]
    often = Counter(where for path in paths for where, _ in path)
    kept = {where for where, _ in often.most_common(PLACES if len(often) <= PLACES else PLACES - 1)}
    short = [[(where if where in kept else OTHER, action) for where, action in path] for path in paths]
    at = Counter((step, *each) for path in short for step, each in enumerate(path))
    on = Counter((step, path[step][0], path[step + 1][0]) for path in short for step in range(len(path) - 1))
    return {
        "by": by,
        "sessions": len(sessions),
        "places": list(dict.fromkeys(where for path in short for where, _ in path)),
        "steps": [[*key, count] for key, count in sorted(at.items())],
        "moves": [[*key, count] for key, count in sorted(on.items())],
        "longest": max((len(session.steps) for session in sessions), default=0),
    }


def place(context: Mapping[str, Any], by: str | None) -> str:
    """Return where a step is taken: the value of a category, or a constant without categories."""
    return "all" if by is None else str(context.get(by, "–"))
