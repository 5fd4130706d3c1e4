"""The bodies of requests and answers. Parsing is strict: NaN, 1e999, "0.5" and unknown fields are rejected."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from belated.decisions import (
    Activate,
    Cancel,
    Choice,
    Decide,
    End,
    Entry,
    Outcome,
    Reward,
    SessionEntry,
    SessionState,
    Signal,
    Status,
)
from belated.decisions._rows import DecisionRow
from belated.errors import InvalidInputError

MOST_ITEMS = 10_000
"""Maximum number of items in a batch."""


class DecideBody(msgspec.Struct, forbid_unknown_fields=True):
    """Request a decision: the fields of `Decide` that a caller may set, in the same order."""

    context: dict[str, Any]
    actions: list[str] | dict[str, dict[str, Any]] | None = None
    key: str | None = None
    active: bool = True
    size: int = 1
    chosen: str | None = None
    probability: float | None = None
    session: str | None = None

    def operation(self) -> Decide:
        return Decide(
            self.context, self.actions, self.key, self.active, self.size, self.chosen, self.probability,
            session=self.session,
        )  # fmt: skip


def _check_target(id: str, session: str | None) -> None:  # noqa: A002
    """Raise ValueError, which becomes a 422, unless exactly one of the two is given."""
    if not id and session is None:
        raise ValueError("give the id of a decision, or a session")


class FeedbackBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Report a reward of a decision or of a session: the fields of `Reward`, in the same order."""

    id: str = ""
    reward: float
    event: str = ""
    version: int = 0
    correction: bool = False
    observed_at: float | None = None
    slot: int | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        _check_target(self.id, self.session)

    def operation(self) -> Reward:
        return Reward(*msgspec.structs.astuple(self))


class SignalBody(msgspec.Struct, forbid_unknown_fields=True):
    """Report a signal: the fields of `Signal`, in the same order."""

    id: str
    signal: str
    value: float = 1.0
    version: int = 0
    correction: bool = False
    observed_at: float | None = None

    def operation(self) -> Signal:
        return Signal(*msgspec.structs.astuple(self))


class IdBody(msgspec.Struct, forbid_unknown_fields=True):
    id: str


class ActivateBody(IdBody):
    """Activate a decision."""

    def operation(self) -> Activate:
        return Activate(self.id)


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Cancel a decision or a whole session, and unlearn it."""

    id: str = ""
    session: str | None = None

    def __post_init__(self) -> None:
        _check_target(self.id, self.session)

    def operation(self) -> Cancel:
        return Cancel(self.id, self.session)


class EndBody(msgspec.Struct, forbid_unknown_fields=True):
    """End a session: terminal or cut, with its last context if known."""

    session: str
    terminal: bool = False
    context: dict[str, Any] | None = None

    def operation(self) -> End:
        return End(self.session, self.terminal, self.context)


DecideAnswer = msgspec.defstruct(
    "DecideAnswer",
    [
        (name, kind, Choice._field_defaults.get(name, msgspec.NODEFAULT))
        for name, kind in get_type_hints(Choice).items()
    ],
    omit_defaults=True,
    namespace={"__doc__": "A decision."},
)
"""A `Choice`."""


def decided(row: DecisionRow) -> msgspec.Struct:
    """Return a decision as an answer; a ranking of one action is omitted."""
    ranking = row.ranking
    return DecideAnswer(
        row.id, ranking[0], row.probability, row.version, ranking if len(ranking) > 1 else (), row.suggestion,
        row.session, row.step,
    )  # fmt: skip


class EventAnswer(msgspec.Struct, omit_defaults=True):
    """The outcome of an event."""

    id: str
    status: Status
    detail: str = ""
    reward: float | None = None
    session: SessionState | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> EventAnswer:
        return cls(outcome.id, outcome.status, outcome.detail, outcome.reward, outcome.session)


class DecisionAnswer(msgspec.Struct):
    """Everything known about one decision."""

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
    session: str | None
    step: int | None

    @classmethod
    def of(cls, model: str, entry: Entry) -> DecisionAnswer:
        values = {name: getattr(entry, name) for name in cls.__struct_fields__ if name not in ("model", "history")}
        return cls(**values, model=model, history=[each._asdict() for each in entry.history])


class SessionAnswer(msgspec.Struct):
    """Everything known about one session."""

    session: str
    model: str
    status: str
    steps: list[DecisionAnswer]
    terminal: bool
    ended: float | None
    context: Any
    due: float | None
    plan: int | None

    @classmethod
    def of(cls, model: str, entry: SessionEntry) -> SessionAnswer:
        steps = [DecisionAnswer.of(model, each) for each in entry.steps]
        return cls(**{**entry._asdict(), "steps": steps}, model=model)


class ModelsAnswer(msgspec.Struct):
    """The names of all models."""

    models: list[str]


class ConfiguredAnswer(msgspec.Struct):
    """A model was created, or its settings were changed."""

    model: str
    settings_version: int


class ErasedAnswer(msgspec.Struct):
    """Decisions were erased, or dropped."""

    model: str
    erased: int


class ErrorAnswer(msgspec.Struct):
    """Why a request was rejected, as a sentence."""

    error: str


#: The kinds of bodies, and what an error message calls them.
BODIES: dict[type[Any], str] = {
    DecideBody: "a request for a decision",
    FeedbackBody: "a reward with the id of its decision, or with its session",
    SignalBody: "a signal with the id of its decision",
    ActivateBody: "the id of a decision",
    CancelBody: "the id of a decision, or a session",
    EndBody: "a session that has ended",
}
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in BODIES}
_LISTS = msgspec.json.Decoder(list[msgspec.Raw])


def parse(kind: type[Any], content: bytes) -> Any:
    """Return one body of `kind`; raise InvalidInputError unless it can be parsed."""
    try:
        return _DECODERS[kind].decode(content)
    except RecursionError:
        raise InvalidInputError("the body must not be nested this deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"the body must be {BODIES[kind]}: {error}") from None


def parse_list(content: bytes) -> list[bytes]:
    """Return the items of a list, each as its own JSON."""
    try:
        items = _LISTS.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"the body must be a list of objects: {error}") from None
    if not 0 < len(items) <= MOST_ITEMS:
        raise InvalidInputError(f"a list must have 1 to {MOST_ITEMS} items, got {len(items)}")
    return [bytes(item) for item in items]
