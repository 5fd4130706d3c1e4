"""The rows of the log. They are appended and never change; old ones can be dropped. All else is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

#: Kinds of events. A tick is of the model as a whole: every window with an end up to its `due` is over. So is a drop:
#: rows before it are gone, and what they taught is only in the base, the snapshot at its place. And so is a row of kind
#: clock: it sets the log's time back to when it was `received`, after a clock was ahead. What that clock had stamped is
#: activated once more, since a decision counts as made no later than it was activated. Of the model, too, is a plan:
#: from here on sessions that open draw their member from the set that was drawn from the first `version` places, in
#: which as many sessions had ended as its `slot` says; its `event` is the digest of the set.
REWARD, ACTIVATE, CANCEL, TICK, DROP, CLOCK = "reward", "activate", "cancel", "tick", "drop", "clock"
#: Not a reward, but what may announce one: its `event` is the name of the signal, its `reward` the value.
SIGNAL = "signal"
#: An end and a discard are of a session: it has ended, it was taken back. The `version` of an end says how: odd if what
#: it led to is terminal, else it was cut; from 2 on it was idle, from 4 on it had as many steps as it may have. Its
#: `event` is the context in which it ended, as JSON, or empty.
END, DISCARD, PLAN = "end", "discard", "plan"
IDLE, FULL = 2, 4

#: Between the name of a session and that of its model: no name has it.
SEPARATOR = "\x1f"


def session_id(model: str, session: str) -> str:
    """Return the id under which the events of a session stand."""
    return f"{session}{SEPARATOR}{model}"


def session_of(id: str) -> str:  # noqa: A002
    """Return the name of the session that an id is of; empty if it is that of a decision.

    >>> session_of(session_id("shop", "visit 81")), session_of("order 7")
    ('visit 81', '')
    """
    return id.partition(SEPARATOR)[0] if SEPARATOR in id else ""


@dataclass(slots=True)
class DecisionRow:
    """A decision, as it was made."""

    seq: int
    """Place in the log, shared with the events. The store gives it; 0 until then."""
    model: str
    id: str
    number: int
    """Of the model's decisions, from 1."""
    made: float
    """Seconds since 1970."""
    key: str | None
    """The caller's idempotency key."""
    digest: bytes | None
    """Of the request, if it had a key."""
    settings: int
    """Version of the model's settings."""
    version: int
    """Of the posterior it was drawn from: how often that had changed."""
    context: str
    """JSON."""
    actions: str
    """JSON: the names that were on offer, or names with features if they were given with the request."""
    ranking: tuple[str, ...]
    """The chosen actions, best first."""
    probabilities: bytes | None
    """One float64 for each action on offer: what the model draws from; None if that is not known."""
    probability: float | None
    """With which the first of the ranking was drawn, by the model or by the caller; None if unknown."""
    suggestion: str | None
    """What the model would have chosen, if the choice was the caller's."""
    features: bytes
    """float64: the features of the chosen actions, one row each."""
    active: int
    due: float | None
    """When its window ends, if it is active and has one. Of a step None: its session's end says."""
    session: str | None = None
    """The name of the session that it is a step of; None if it stands for itself."""
    step: int | None = None
    """Its number within the session, from 0."""
    plan: int | None = None
    """The set that the session draws from, by the places of the log it was made from; None: any action alike."""
    votes: bytes | None = None
    """One float64 for each member of that set: the probability with which it takes the action. None if the choice was
    the caller's, or if there is no set."""
    chain: bytes = field(default=b"", compare=False)
    """Digest of this row and of those before it, from a store on a disk."""


@dataclass(slots=True)
class EventRow:
    """Something that happened to a decision later, a tick or a drop."""

    seq: int
    model: str
    id: str
    """Of the decision; of a session, see `session_id`; empty for what is of the model."""
    kind: str
    event: str
    """The sender's name of the event; empty if it has none."""
    version: int
    """0 for the original, more for its corrections."""
    reward: float | None
    slot: int | None
    """Which of the ranking the reward is for."""
    received: float
    observed: float | None
    """When it happened, as the sender says."""
    counted: int
    """0 if it came too late to be learned."""
    due: float | None
    """Of an activation or an end: when the window ends. Of a tick: up to when windows are over."""
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
    """1 if rows it was made from have been purged: it can no longer be computed from the log."""
    header: str
    """JSON."""
    arrays: bytes
    digest: bytes
    """SHA-256 of header and arrays."""
    chain: bytes = b""
    """That of the row at this place: it is a state of the very log that has it there."""
