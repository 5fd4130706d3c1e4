"""The rows of the log, append-only; old rows can be dropped. Everything else is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

#: Kinds of events. Some concern the model as a whole. Tick: every window that ends at or before its `due` is closed.
#: Drop: earlier rows are gone, and their effect is only in the base, the snapshot at its position. Clock: sets the
#: log's time back to when the row was `received`, after a clock was ahead; what that clock had stamped is activated
#: again, since a decision counts as made at the latest when it was activated. Plan: from here on, new sessions draw
#: their member from the set made from the first `version` rows, in which `slot` sessions had ended; `event` is the
#: digest of the set.
REWARD, ACTIVATE, CANCEL, TICK, DROP, CLOCK = "reward", "activate", "cancel", "tick", "drop", "clock"
#: A signal, which may precede a reward: its `event` is the name of the signal, its `reward` the value.
SIGNAL = "signal"
#: The end and the cancellation (discard) of a session. The `version` of an end has bit 0 set if it is terminal, else it
#: was cut; bit 1 if the session was idle; bit 2 if it had reached the maximum number of steps. Its `event` is the
#: context in which it ended, as JSON, or empty.
END, DISCARD, PLAN = "end", "discard", "plan"
IDLE, FULL = 2, 4

#: Separates the name of a session from that of its model; not allowed in names.
SEPARATOR = "\x1f"


def session_id(model: str, session: str) -> str:
    """Return the id of the events of a session."""
    return f"{session}{SEPARATOR}{model}"


def session_of(id: str) -> str:  # noqa: A002
    """Return the name of the session that an id belongs to; empty if it is the id of a decision.

    >>> session_of(session_id("shop", "visit 81")), session_of("order 7")
    ('visit 81', '')
    """
    return id.partition(SEPARATOR)[0] if SEPARATOR in id else ""


@dataclass(slots=True)
class DecisionRow:
    """A decision at the time it was made."""

    seq: int
    """Position in the log, in one sequence with the events. Assigned by the store; 0 until then."""
    model: str
    id: str
    number: int
    """Number among the model's decisions, from 1."""
    made: float
    """Seconds since 1970."""
    key: str | None
    """The caller's idempotency key."""
    digest: bytes | None
    """Digest of the request, if it had a key."""
    settings: int
    """Version of the model's settings."""
    version: int
    """Version of the posterior it was drawn from: how often that had changed."""
    context: str
    """JSON."""
    actions: str
    """JSON: the names on offer, or names with features if the request gave them."""
    ranking: tuple[str, ...]
    """The chosen actions, best first."""
    probabilities: bytes | None
    """The model's probabilities, one float64 for each action on offer; None if unknown."""
    probability: float | None
    """Propensity of the first action of the ranking, whether the model or the caller chose it; None if unknown."""
    suggestion: str | None
    """What the model would have chosen, if the caller chose."""
    features: bytes
    """The features of the chosen actions as float64, one row each."""
    active: int
    due: float | None
    """When its window ends, if it is active and has one. None for a step, whose window follows from its session's
    end."""
    session: str | None = None
    """The name of the session that it is a step of; None for a single decision."""
    step: int | None = None
    """Number of the step within its session, from 0."""
    plan: int | None = None
    """The set that the session draws from, by the log position it was made from; None if actions are uniform."""
    votes: bytes | None = None
    """For each member of that set, the probability with which it takes the action, as float64. None if the caller
    chose, or if there is no set."""
    chain: bytes = field(default=b"", compare=False)
    """Digest of this row and of all rows before it, from a durable store."""


@dataclass(slots=True)
class EventRow:
    """A later event of a decision, of a session or of the model as a whole."""

    seq: int
    model: str
    id: str
    """Id of the decision; for a session see `session_id`; empty for events of the model."""
    kind: str
    event: str
    """The sender's name of the event; empty if it has none."""
    version: int
    """0 for the original, higher for its corrections."""
    reward: float | None
    slot: int | None
    """Index in the ranking that the reward is for."""
    received: float
    observed: float | None
    """When it happened, as reported by the sender."""
    counted: int
    """0 if it arrived too late to be learned."""
    due: float | None
    """For an activation or an end: when the window ends. For a tick: windows that end by then are closed."""
    chain: bytes = field(default=b"", compare=False)


Row = DecisionRow | EventRow


class SettingsRow(NamedTuple):
    """One version of a model's settings."""

    model: str
    version: int
    made: float
    text: str
    """JSON."""


class PlanRow(NamedTuple):
    """A set of plans, drawn from a prefix of the log."""

    model: str
    place: int
    """All rows up to this one were learned."""
    settings: int
    """Version of the model's settings."""
    made: float
    content: bytes
    digest: bytes
    """SHA-256 of the content."""


class SnapshotRow(NamedTuple):
    """The state of a model after a prefix of the log."""

    model: str
    seq: int
    """All rows up to this one are in it."""
    made: float
    base: int
    """1 if rows it was made from have been purged, so that it cannot be recomputed from the log."""
    header: str
    """JSON."""
    arrays: bytes
    digest: bytes
    """SHA-256 of header and arrays."""
    chain: bytes = b""
    """Chain digest of the row at this position, which identifies the log that the state belongs to."""
