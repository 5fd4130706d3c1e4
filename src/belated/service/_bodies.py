"""What requests and answers look like. Parsing is strict: NaN, 1e999, "0.5" and unknown fields are refused."""

from __future__ import annotations

from typing import Any

import msgspec

from belated.decisions import Activate, Cancel, Choice, Decide, Entry, Outcome, Reward
from belated.errors import InvalidInputError

MOST_ITEMS = 10_000
"""Requests in one list."""


class DecideBody(msgspec.Struct, forbid_unknown_fields=True):
    """Ask for a decision."""

    context: dict[str, Any]
    """Numbers, categories and lists of tags, as the model's encoding declares them."""
    actions: list[str] | dict[str, dict[str, Any]] | None = None
    """The actions on offer, or actions with features for this request; all of the model's if left out."""
    key: str | None = None
    """A name of yours for this request: sent again, it gives the same answer."""
    active: bool = True
    """False: it counts only after /activate."""
    size: int = 1
    """How many actions to rank."""
    chosen: str | None = None
    """Shadow mode: what you chose yourself; it is logged and learned, and ours is only compared."""
    probability: float | None = None
    """With which probability you chose it, if you know."""

    def operation(self) -> Decide:
        """Return the operation of a model."""
        return Decide(
            self.context,
            actions=self.actions,
            key=self.key,
            active=self.active,
            size=self.size,
            chosen=self.chosen,
            probability=self.probability,
        )


class FeedbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Report a reward."""

    id: str
    """Of the decision."""
    reward: float
    event: str = ""
    """Your name of the event: a repeat is harmless, two equal rewards with two names are two."""
    version: int = 0
    """0 for the original; a correction has a higher one, and the highest counts."""
    correction: bool = False
    """Replace whatever is newest."""
    observed_at: float | None = None
    """When it happened, in seconds since 1970."""
    slot: int | None = None
    """Which place of a ranking was chosen, from 0."""

    def operation(self) -> Reward:
        """Return the operation of a model."""
        return Reward(
            self.id,
            self.reward,
            event=self.event,
            version=self.version,
            correction=self.correction,
            observed=self.observed_at,
            slot=self.slot,
        )


class IdBody(msgspec.Struct, forbid_unknown_fields=True):
    """Name a decision."""

    id: str


class ActivateBody(IdBody):
    """Let a decision count from now on."""

    def operation(self) -> Activate:
        """Return the operation of a model."""
        return Activate(self.id)


class CancelBody(IdBody):
    """Take a decision back, and what it taught."""

    def operation(self) -> Cancel:
        """Return the operation of a model."""
        return Cancel(self.id)


class DecideAnswer(msgspec.Struct, omit_defaults=True):
    """A decision."""

    id: str
    action: str
    probability: float | None
    model_version: int
    ranking: tuple[str, ...] = ()
    suggestion: str | None = None

    @classmethod
    def of(cls, choice: Choice) -> DecideAnswer:
        """Return what a model decided as an answer; a ranking of one is left out."""
        ranking = choice.ranking if len(choice.ranking) > 1 else ()
        return cls(choice.id, choice.action, choice.probability, choice.model_version, ranking, choice.suggestion)


class EventAnswer(msgspec.Struct, omit_defaults=True):
    """What became of an event."""

    id: str
    status: str
    detail: str = ""
    reward: float | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> EventAnswer:
        """Return the outcome of an event as an answer."""
        return cls(outcome.id, outcome.status.value, outcome.detail, outcome.reward)


class DecisionAnswer(msgspec.Struct):
    """All that is known of one decision."""

    id: str
    model: str
    action: str
    probability: float | None
    reward: float | None
    status: str
    learned: float | None
    made: float
    due: float | None
    ranking: tuple[str, ...]
    context: Any
    actions: Any
    probabilities: tuple[float, ...] | None
    suggestion: str | None
    history: list[dict[str, Any]]

    @classmethod
    def of(cls, model: str, entry: Entry) -> DecisionAnswer:
        """Return an entry of the log as an answer."""
        return cls(
            id=entry.id,
            model=model,
            action=entry.action,
            probability=entry.probability,
            reward=entry.reward,
            status=entry.status.value,
            learned=entry.learned,
            made=entry.made,
            due=entry.due,
            ranking=entry.ranking,
            context=entry.context,
            actions=entry.actions,
            probabilities=entry.probabilities,
            suggestion=entry.suggestion,
            history=[each._asdict() for each in entry.history],
        )


class ErrorAnswer(msgspec.Struct):
    """Why a request was refused, as a sentence."""

    error: str


#: The bodies, and what a body that cannot be read should have been.
BODIES: dict[type[Any], str] = {
    DecideBody: "a request for a decision",
    FeedbackBody: "a reward with the id of its decision",
    ActivateBody: "the id of a decision",
    CancelBody: "the id of a decision",
}
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in BODIES}
_LISTS = msgspec.json.Decoder(list[msgspec.Raw])


def parse(kind: type[Any], content: bytes) -> Any:
    """Return one body of `kind`, or refuse it in a sentence."""
    try:
        return _DECODERS[kind].decode(content)
    except RecursionError:
        raise InvalidInputError("the body must not be nested so deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the body must be {BODIES[kind]}: {error}") from None


def parse_list(content: bytes) -> list[bytes]:
    """Return the items of a list, each as its own JSON."""
    try:
        items = _LISTS.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"the body must be an object or a list of objects: {error}") from None
    if not 0 < len(items) <= MOST_ITEMS:
        raise InvalidInputError(f"a list must have 1 to {MOST_ITEMS} items, got {len(items)}")
    return [bytes(item) for item in items]
