"""The rows of the log. They are appended and never change; old ones can be dropped. All else is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

#: Kinds of events. A tick is of the model as a whole: every window with an end up to its `due` is over. So is a drop:
#: rows before it are gone, and what they taught is only in the base, the snapshot at its place. And so is a row of kind
#: clock: it sets the log's time back to when it was `received`, after a clock was ahead. What that clock had stamped is
#: activated once more, since a decision counts as made no later than it was activated.
REWARD, ACTIVATE, CANCEL, TICK, DROP, CLOCK = "reward", "activate", "cancel", "tick", "drop", "clock"
#: Not a reward, but what may announce one: its `event` is the name of the signal, its `reward` the value.
SIGNAL = "signal"


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
    """When its window ends, if it is active and has one."""
    chain: bytes = field(default=b"", compare=False)
    """Digest of this row and of those before it, from a store on a disk."""


@dataclass(slots=True)
class EventRow:
    """Something that happened to a decision later, a tick or a drop."""

    seq: int
    model: str
    id: str
    """Of the decision; empty for a tick or a drop."""
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
    """Of an activation: when the window ends. Of a tick: up to when windows are over."""
    chain: bytes = field(default=b"", compare=False)


Row = DecisionRow | EventRow


class SettingsRow(NamedTuple):
    """One version of a model's settings."""

    model: str
    version: int
    made: float
    text: str
    """JSON."""


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
