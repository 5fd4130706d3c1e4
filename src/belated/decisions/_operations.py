"""The operations of a model, its answers and its errors. All of them are plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy.typing as npt

from belated.decisions._rows import DecisionRow
from belated.errors import BelatedError, UnknownNameError

#: Maximum magnitude of features, rewards and settings; noise and ridge are at least its inverse. Nothing can overflow,
#: since a feature is at most a product of two numbers, and the sums hold all bits of the products of features.
LARGEST = 1e12
#: Seconds by which a clock may jump or be behind the log: clocks get adjusted, and those of two machines differ a
#: little.
STEP = 300.0


class ConflictError(BelatedError):
    """A decision or a reward contradicts what is already stored under the same id or key."""


class ForgottenError(UnknownNameError):
    """The decision existed, but is no longer stored."""


class StoreError(BelatedError):
    """The store could not write a batch: nothing was stored or learned."""


class StoreFullError(StoreError):
    """The store has no space left. Everything acknowledged is safe; it continues once there is space."""


class PosteriorError(BelatedError):
    """The posterior is not finite: no decisions are made until the cause is cancelled or corrected. Nothing is lost."""


class StateError(StoreError):
    """Rebuilding the state of a model from its log has failed: nothing was stored or learned."""


class ClockError(BelatedError):
    """The clock is implausible: it has jumped, or the log is far ahead of it. Nothing was stored or learned."""


def duration(seconds: float) -> str:
    """Format a number of seconds.

    >>> duration(310.0), duration(30 * 86400.0)
    ('310 seconds', '30.0 days')
    """
    return f"{seconds / 86400.0:.1f} days" if seconds >= 86400.0 else f"{seconds:.0f} seconds"


class Decide(NamedTuple):
    """Choose an action, or record the caller's own choice."""

    context: Mapping[str, Any] | npt.ArrayLike
    """For a `Model`: numbers, categories and tags, as declared by the encoding. For a `DecisionLearner`: the features
    of each action, shape (actions, d)."""
    actions: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None
    """The actions on offer; None for all that are not retired. A mapping gives features for this request only."""
    key: str | None = None
    """Idempotency key: a repeated request with the same key returns the same decision."""
    active: bool = True
    """If False, the decision counts only once it is activated."""
    size: int = 1
    """Number of actions to rank."""
    chosen: str | Sequence[str] | None = None
    """Shadow mode: the action or the ranking that the caller chose; the model's own choice is only recorded."""
    probability: float | None = None
    """The probability with which the caller chose it, if known."""
    id: str | None = None
    """The caller's id for the decision; None for a generated one."""
    made: float | None = None
    """When the decision was made, if it is recorded later."""
    session: str | None = None
    """For a model of sessions: the session of which this is the next step; the first step opens it."""


class Reward(NamedTuple):
    """A reward for a decision, or for a session."""

    id: str
    """Id of the decision; empty if the reward is for a session."""
    reward: float
    event: str = ""
    """The sender's name of the event: repeats are ignored, and equal rewards with different names both count."""
    version: int = 0
    """0 for the original; corrections have higher versions, and the highest counts."""
    correction: bool = False
    """Replace the newest version. With a queue that may deliver twice or out of order, use `version` instead."""
    observed: float | None = None
    """When it happened, in seconds since 1970; the aggregates `first` and `last` use it."""
    slot: int | None = None
    """Index in the ranking that the reward is for, from 0."""
    session: str | None = None
    """The session that the reward is for; it counts at the last step."""


class Signal(NamedTuple):
    """Something that may precede a reward: a click, a return on the second day, a first measurement."""

    id: str
    signal: str
    """One of the model's `signals`."""
    value: float = 1.0
    version: int = 0
    """0 for the original; corrections have higher versions, and the highest counts."""
    correction: bool = False
    """Replace the newest version."""
    observed: float | None = None
    """When it happened, in seconds since 1970."""


class Activate(NamedTuple):
    """Activate a decision made with `active=False`: it counts from now on."""

    id: str


class Cancel(NamedTuple):
    """Cancel a decision: it is unlearned exactly, and its rewards are no longer learned.

    For a step of a session only its reward is unlearned, not its transition. With `session`, the whole session is
    cancelled.
    """

    id: str = ""
    session: str | None = None


class End(NamedTuple):
    """End a session."""

    session: str
    terminal: bool = False
    """Whether the session ended in a terminal state, of value zero; otherwise it was cut and could have continued."""
    context: Mapping[str, Any] | None = None
    """The context in which the session was cut, if known."""


Operation = Decide | Reward | Signal | Activate | Cancel | End


class Status(StrEnum):
    """The outcome of one event. Every event has exactly one of these, and is counted."""

    __hash__ = str.__hash__  # faster than Enum's, which would be called several times per event

    ACCEPTED = "accepted"
    """Stored; it counts now, or once its decision is mature or activated."""
    DUPLICATE = "duplicate"
    """Already known, or replaced by a newer version: nothing changed."""
    CONFLICT = "conflict"
    """Contradicts what is stored for the same event and version: nothing changed."""
    LATE = "late"
    """Its decision has expired or was cancelled: stored, never learned."""
    PARKED = "parked"
    """Its decision is not known yet: stored, and attached when the decision appears."""
    UNKNOWN = "unknown"
    """There is no such decision: it never existed, or it was forgotten."""
    INVALID = "invalid"
    """A value is invalid: nothing changed."""


class DecisionState(StrEnum):
    """The state of a decision."""

    __hash__ = str.__hash__

    INACTIVE = "inactive"
    """Made but not shown; it counts only once it is activated."""
    IN_FLIGHT = "in flight"
    """Without a reward, and with an open window."""
    REWARDED = "rewarded"
    """A reward has arrived."""
    DEFAULTED = "defaulted"
    """Its window is over without a reward; it counts with the default."""
    EXPIRED = "expired"
    """Its window is over without a reward; it does not count."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session."""

    status: str
    """`open`, `ended` or `cancelled`."""
    steps: int
    terminal: bool
    """Whether it ended in a terminal state; False while it is open."""
    ended: float | None
    """When it ended; None while it is open."""
    due: float | None
    """When the window for its rewards ends; None while it is open, or without a window."""


class Outcome(NamedTuple):
    """The outcome of a reward, an activation, a cancellation or an end."""

    status: Status
    id: str
    """Id of the decision, or name of the session."""
    detail: str = ""
    """An explanation for humans; empty if there is nothing to explain."""
    reward: float | None = None
    """The decision's aggregated reward after this event."""
    forgotten: bool = False
    """Whether an unknown decision existed, but is no longer stored."""
    session: SessionState | None = None
    """For an end: the state of the session now."""


class Decided(NamedTuple):
    """A decision that was made, or found by its idempotency key."""

    row: DecisionRow
    repeated: bool


#: The answer to an operation: a decision or the error that rejects it, or the outcome of an event.
Answer = Decided | Outcome | BelatedError


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of `DecisionLearner`, with the id under which its reward is reported later."""

    id: str
    """The caller's key, or a globally unique id."""
    number: int
    """Number of the decision, from 1."""
    action: int
    """Index of the chosen row of the contexts."""
    probability: float | None
    """The probability with which the action was drawn; None with a single draw, or if the caller chose it."""
    features: Any = field(compare=False, repr=False)
    """The chosen row itself; with more than 256 features, a `SparseVector`."""


class Choice(NamedTuple):
    """A decision of a `Model`."""

    id: str
    action: str
    """The chosen action; the caller's own in shadow mode."""
    probability: float | None
    """The probability with which it was drawn; None if unknown, as it may be for a caller's choice."""
    model_version: int
    """Version of the posterior that it was drawn from."""
    ranking: tuple[str, ...] = ()
    """The chosen actions, best first; more than one if a ranking was requested."""
    suggestion: str | None = None
    """In shadow mode, what the model would have chosen."""
    session: str | None = None
    step: int | None = None
    """Number of the step within its session, from 0."""


class Event(NamedTuple):
    """One event of a decision's history."""

    kind: str
    """`reward`, `signal`, `activate` or `cancel`; for a session also `end` and `discard`."""
    received: float
    reward: float | None = None
    event: str = ""
    version: int = 0
    counted: bool = True
    """False if it arrived too late to be learned, or if a newer version has replaced it."""
    observed: float | None = None
    """When it happened, as reported by the sender."""


class Entry(NamedTuple):
    """Everything known about one decision."""

    id: str
    number: int
    made: float
    """Seconds since 1970."""
    action: str
    probability: float | None
    status: DecisionState
    reward: float | None
    """The aggregate of its events; None if none has arrived."""
    learned: float | None
    """The reward with which it is learned now; None if it is not."""
    slot: int
    """The index in the ranking that the reward is for."""
    due: float | None
    """When its window ends."""
    ranking: tuple[str, ...]
    context: Any
    actions: Any
    """The actions on offer: names, or names with the features given in the request."""
    probabilities: tuple[float, ...] | None
    """The model's probabilities, one for each action on offer."""
    suggestion: str | None
    """In shadow mode, what the model would have chosen."""
    history: tuple[Event, ...]
    parts: tuple[float, ...] = ()
    """What is learned from it: that reward, or the increment of each completed age."""
    session: str | None = None
    """The session that it is a step of."""
    step: int | None = None
    """Number of the step within its session, from 0."""


class SessionEntry(NamedTuple):
    """Everything known about one session."""

    session: str
    status: str
    """`open`, `ended` or `cancelled`."""
    steps: tuple[Entry, ...]
    terminal: bool
    """Whether it ended in a terminal state; False while it is open."""
    ended: float | None
    """When it ended; None while it is open."""
    context: Any
    """The context in which it was cut, if known."""
    due: float | None
    """When the window for its rewards ends; None while it is open, or without a window."""
    plan: int | None
    """The set of plans that it draws from; None if its actions are uniform."""
