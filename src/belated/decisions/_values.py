"""The values that pass between an application and its learner."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from belated.errors import BelatedError, UnknownNameError
from belated.types import Floats

#: No feature, reward or setting may be larger, and no noise or ridge smaller than its inverse: nothing can overflow,
#: and what is taken back leaves no trace that matters (the sums hold 32 digits).
LARGEST = 1e12


class ConflictError(BelatedError):
    """A decision or a reward that contradicts what is already known under the same id or key."""


class ForgottenError(UnknownNameError):
    """The decision was made, but is no longer kept."""


class StoreError(BelatedError):
    """The store could not keep what it was given: nothing of the batch was kept, and nothing was learned."""


class StoreFullError(StoreError):
    """The store has no space left. What it has acknowledged is safe; it goes on once there is space."""


class Status(StrEnum):
    """What became of one event. Every event ends as exactly one of these, and is counted."""

    ACCEPTED = "accepted"
    """Known from now on; it counts now, or when its decision is mature or activated."""
    DUPLICATE = "duplicate"
    """Known already, or replaced by a newer version: nothing changed."""
    CONFLICT = "conflict"
    """Contradicts what is known under the same event and version: nothing changed."""
    LATE = "late"
    """Its decision has expired or was cancelled: written down, never learned."""
    PARKED = "parked"
    """Its decision is not known yet: written down, and attached when the decision appears."""
    UNKNOWN = "unknown"
    """There is no such decision: it never existed, or it was forgotten."""
    INVALID = "invalid"
    """It cannot be read: nothing changed."""


class State(StrEnum):
    """Where a decision stands."""

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


class Outcome(NamedTuple):
    """What became of an event."""

    status: Status
    id: str
    """Of the decision."""
    detail: str = ""
    """A sentence for people, if there is something to explain."""
    reward: float | None = None
    """What is known of the decision's reward afterwards: all its events together."""
    forgotten: bool = False
    """Of an unknown decision: it was made, but is no longer kept."""


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
    features: Floats = field(compare=False, repr=False)
    """That row itself."""


class Choice(NamedTuple):
    """What a `Model` decided."""

    id: str
    action: str
    """The chosen action; the caller's own in shadow mode."""
    probability: float | None
    """The probability with which it was drawn; None if the choice was the caller's and nobody knows it."""
    model_version: int
    """How much had been learned when it was made: changes of the posterior since the beginning."""
    ranking: tuple[str, ...] = ()
    """The chosen actions, best first: more than one if a ranking was asked for."""
    suggestion: str | None = None
    """In shadow mode, what the model would have chosen."""


class RepeatedChoice(Choice):
    """What a `Model` had decided before, found again by its key; equal to what it answered then."""

    __slots__ = ()


class Happening(NamedTuple):
    """One entry of a decision's history."""

    kind: str
    """`reward`, `activate` or `cancel`."""
    received: float
    reward: float | None = None
    event: str = ""
    version: int = 0
    counted: bool = True
    """False if it came too late to be learned, or if a newer version has replaced it."""


class Entry(NamedTuple):
    """All that is known of one decision."""

    id: str
    number: int
    made: float
    """Seconds since 1970."""
    action: str
    probability: float | None
    status: State
    reward: float | None
    """All its events together; None if none has arrived."""
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
    history: tuple[Happening, ...]
