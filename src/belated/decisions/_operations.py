"""What can be asked of a model, what it answers, and the errors it raises. All of them are plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy.typing as npt

from belated.decisions._rows import DecisionRow
from belated.errors import BelatedError, UnknownNameError

#: Maximum magnitude of features, rewards and settings; noise and ridge are at least its inverse. So nothing can
#: overflow: a feature is at most a product of two numbers, and the sums hold all bits of the products of features.
LARGEST = 1e12
#: Seconds by which a clock may step, or be behind the log: clocks are set, and those of two machines differ a little.
STEP = 300.0


class ConflictError(BelatedError):
    """A decision or a reward that contradicts what is already known under the same id or key."""


class ForgottenError(UnknownNameError):
    """The decision was made, but is no longer kept."""


class StoreError(BelatedError):
    """The store could not write a batch: nothing of it was kept, and nothing was learned."""


class StoreFullError(StoreError):
    """The store has no space left. What it has acknowledged is safe; it goes on once there is space."""


class PosteriorError(BelatedError):
    """What a model has learned is not finite: it decides nothing until the cause is taken back. Nothing is lost."""


class StateError(StoreError):
    """The state of a model must be computed again from its log, and that has failed: nothing was stored or learned."""


class ClockError(BelatedError):
    """The clock cannot be right: it has jumped, or the log is far ahead of it. Nothing was stored or learned."""


def duration(seconds: float) -> str:
    """Return a number of seconds in words.

    >>> duration(310.0), duration(30 * 86400.0)
    ('310 seconds', '30.0 days')
    """
    return f"{seconds / 86400.0:.1f} days" if seconds >= 86400.0 else f"{seconds:.0f} seconds"


class Decide(NamedTuple):
    """Choose an action, or record the caller's own choice."""

    context: Mapping[str, Any] | npt.ArrayLike
    """Of a `Model`: numbers, categories and tags, as the encoding declares them. Of a `DecisionLearner`: the features
    of each action, shape (actions, d)."""
    actions: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None
    """The actions on offer; None: all that are not retired. A mapping gives features for this request only."""
    key: str | None = None
    """Idempotency key: a repeated request with the same key returns the same decision."""
    active: bool = True
    """False: it counts only once it is activated."""
    size: int = 1
    """How many actions to rank."""
    chosen: str | Sequence[str] | None = None
    """Shadow mode: the action or the ranking that the caller chose; the model's own choice is only recorded."""
    probability: float | None = None
    """The probability with which the caller chose it, if known."""
    id: str | None = None
    """An id of the caller's; None: a new one."""
    made: float | None = None
    """When it was made, if it is recorded later than that."""
    session: str | None = None
    """Of a model of sessions: the session that this is the next step of; the first one opens it."""


class Reward(NamedTuple):
    """A reward for a decision, or for a session."""

    id: str
    """Of the decision; empty if it is for a session."""
    reward: float
    event: str = ""
    """The sender's name of the event: a repeat is harmless, and two equal rewards with two names are two."""
    version: int = 0
    """0 for the original; a correction has a higher one, and the highest counts."""
    correction: bool = False
    """Replace the newest version. With a queue that may deliver twice or out of order, use versions."""
    observed: float | None = None
    """When it happened, in seconds since 1970; the aggregates `first` and `last` go by it."""
    slot: int | None = None
    """Which place of the ranking it is for, from 0."""
    session: str | None = None
    """The session that it is for: it counts at its last step."""


class Signal(NamedTuple):
    """What may announce a reward, and is none: a click, a return on the second day, a first measurement."""

    id: str
    signal: str
    """One of the model's `signals`."""
    value: float = 1.0
    version: int = 0
    """0 for the original; a correction has a higher one, and the highest counts."""
    correction: bool = False
    """Replace the newest version."""
    observed: float | None = None
    """When it happened, in seconds since 1970."""


class Activate(NamedTuple):
    """A decision made with `active=False` was shown: from now on it counts."""

    id: str


class Cancel(NamedTuple):
    """Take a decision back: what it taught is unlearned exactly, and its rewards are no longer learned.

    Of a step that is its reward: where it led to stays. With `session` all of the session is taken back.
    """

    id: str = ""
    session: str | None = None


class End(NamedTuple):
    """A session has ended: it has no further step."""

    session: str
    terminal: bool = False
    """Whether what it led to is worth nothing more; else it was cut, and could have gone on."""
    context: Mapping[str, Any] | None = None
    """Where it was cut, if that is known: a context such as that of a step."""


Operation = Decide | Reward | Signal | Activate | Cancel | End


class Status(StrEnum):
    """What became of one event. Every event ends as exactly one of these, and is counted."""

    __hash__ = str.__hash__  # faster than that of Enum, which is called several times for each event

    ACCEPTED = "accepted"
    """Stored; it counts now, or when its decision is mature or activated."""
    DUPLICATE = "duplicate"
    """Already known, or replaced by a newer version: nothing changed."""
    CONFLICT = "conflict"
    """Contradicts what is known under the same event and version: nothing changed."""
    LATE = "late"
    """Its decision has expired or was cancelled: stored, never learned."""
    PARKED = "parked"
    """Its decision is not known yet: stored, and attached when the decision appears."""
    UNKNOWN = "unknown"
    """There is no such decision: it never existed, or it was forgotten."""
    INVALID = "invalid"
    """It has a bad value: nothing changed."""


class DecisionState(StrEnum):
    """Where a decision stands."""

    __hash__ = str.__hash__

    INACTIVE = "inactive"
    """Made but not shown; it counts only once it is activated."""
    IN_FLIGHT = "in flight"
    """Neither a reward nor the end of its window has come."""
    REWARDED = "rewarded"
    """A reward has arrived."""
    DEFAULTED = "defaulted"
    """Its window is over without a reward, and it counts with the default."""
    EXPIRED = "expired"
    """Its window is over without a reward, and it counts for nothing."""
    CANCELLED = "cancelled"
    """Taken back."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """Where a session stands."""

    status: str
    """`open`, `ended` or `cancelled`."""
    steps: int
    terminal: bool
    """Whether what it led to is worth nothing more; False as long as it is open."""
    ended: float | None
    """When it ended."""
    due: float | None
    """When the window for its rewards ends; None as long as it is open, or if there is none."""


class Outcome(NamedTuple):
    """What became of a reward, an activation, a cancellation or an end."""

    status: Status
    id: str
    """Of the decision, or the name of the session."""
    detail: str = ""
    """A sentence for people, if there is something to explain."""
    reward: float | None = None
    """The decision's reward after this event, all its events aggregated."""
    forgotten: bool = False
    """Of an unknown decision: it was made, but is no longer kept."""
    session: SessionState | None = None
    """Of an end: where the session stands now."""


class Decided(NamedTuple):
    """A decision that was made, or found again by its key."""

    row: DecisionRow
    repeated: bool


#: The answer to an operation: a decision or the error that rejects it, or the outcome of an event.
Answer = Decided | Outcome | BelatedError


@dataclass(frozen=True, slots=True)
class Decision:
    """What `DecisionLearner` decided, under an id with which the reward can be reported later."""

    id: str
    """The caller's key, or an id that no other decision anywhere has."""
    number: int
    """How many decisions there were, this one included."""
    action: int
    """Row of the contexts."""
    probability: float | None
    """The probability with which this action was drawn; None with a single draw, or if the choice was not ours."""
    features: Any = field(compare=False, repr=False)
    """That row itself; if there are more than 256 features, a `SparseVector` of those that are not zero."""


class Choice(NamedTuple):
    """What a `Model` decided."""

    id: str
    action: str
    """The chosen action; the caller's own in shadow mode."""
    probability: float | None
    """The probability with which it was drawn; None if the choice was the caller's and nobody knows it."""
    model_version: int
    """How often the posterior had changed when it was made."""
    ranking: tuple[str, ...] = ()
    """The chosen actions, best first: more than one if a ranking was asked for."""
    suggestion: str | None = None
    """In shadow mode, what the model would have chosen."""
    session: str | None = None
    step: int | None = None
    """Its number within the session, from 0."""


class Event(NamedTuple):
    """One event of a decision's history."""

    kind: str
    """`reward`, `signal`, `activate` or `cancel`; of a session also `end` and `discard`."""
    received: float
    reward: float | None = None
    event: str = ""
    version: int = 0
    counted: bool = True
    """False if it came too late to be learned, or if a newer version has replaced it."""
    observed: float | None = None
    """When it happened, as the sender says."""


class Entry(NamedTuple):
    """All that is known of one decision."""

    id: str
    number: int
    made: float
    """Seconds since 1970."""
    action: str
    probability: float | None
    status: DecisionState
    reward: float | None
    """All its events aggregated; None if none has arrived."""
    learned: float | None
    """The reward with which it counts now; None if it does not."""
    slot: int
    """The place in the ranking that the reward is for."""
    due: float | None
    """When its window ends."""
    ranking: tuple[str, ...]
    context: Any
    actions: Any
    """Those on offer: names, or names with the features that came with the request."""
    probabilities: tuple[float, ...] | None
    """What the model draws from, one for each action on offer."""
    suggestion: str | None
    """In shadow mode, what the model would have chosen."""
    history: tuple[Event, ...]
    parts: tuple[float, ...] = ()
    """What is learned of it: that reward, or what came of it at each age that is over."""
    session: str | None = None
    """The session that it is a step of."""
    step: int | None = None
    """Its number within the session, from 0."""


class SessionEntry(NamedTuple):
    """All that is known of one session."""

    session: str
    status: str
    """`open`, `ended` or `cancelled`."""
    steps: tuple[Entry, ...]
    terminal: bool
    """Whether what it led to is worth nothing more; False as long as it is open."""
    ended: float | None
    """When it ended."""
    context: Any
    """The context in which it was cut, if that is known."""
    due: float | None
    """When the window for its rewards ends; None as long as it is open, or if there is none."""
    plan: int | None
    """The set of plans that it draws from; None: any action alike."""
