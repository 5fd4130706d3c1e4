"""Sessions: sequences of decisions, drawn by one member of a set of plans.

With a floor ε and K actions on offer, let π_j be the members of the set that a session draws from. The session follows
its member with probability 1 − ε and acts uniformly otherwise. Given the earlier steps, but not the member, action a of
step t has the probability

    p_t(a) = Σ_j w_j(t)·m_j(a | s_t),    m_j(a | s) = ε/K + (1 − ε)·π_j(a | s),    w_j(t) ∝ Π_{i<t} m_j(a_i | s_i).

This is the propensity that is logged, so the product over a session is the true probability of its actions. An action
chosen by the caller carries no information about the member and leaves the weights unchanged.

The events of a session (its end, its rewards, its cancellation) have an id of their own. A step's window starts at the
end of its session, so the history of a step consists of its own events and that end; the history of the last step
includes the session's rewards.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from belated._util.validate import flag, refuse
from belated.decisions._encoding import check_text
from belated.decisions._operations import (
    ConflictError,
    Decide,
    End,
    Entry,
    ForgottenError,
    SessionEntry,
    SessionState,
    StoreError,
)
from belated.decisions._rows import DISCARD, END, FULL, IDLE, REWARD, SEPARATOR, DecisionRow, EventRow, session_id
from belated.decisions._sampling import pick
from belated.decisions._session_settings import TERMINAL
from belated.errors import DamagedFileError
from belated.types import Floats

Arrays = dict[str, npt.NDArray[Any]]

if TYPE_CHECKING:
    from belated.decisions._core import Offer, State
    from belated.decisions._ledger import Tally
    from belated.decisions._plans import StepState

#: Maximum number of open sessions, and of sessions cached in memory.
MOST_OPEN, CACHED = 200_000, 10_000

_log = logging.getLogger(__name__)


class Members(Protocol):
    """A set of plans; see `_plans`."""

    @property
    def members(self) -> int: ...

    def distributions(self, step: int, state: Any) -> Floats:
        """Return π_j(a | s) of each member over the actions on offer, shape (members, actions)."""


class Opening(NamedTuple):
    """An open session; they are ordered by their latest steps."""

    latest: float
    """Log time of its latest step."""
    plan: int | None


class Session:
    """The current state of a session: its steps, its events, and the weights of the members of its set."""

    __slots__ = ("events", "ids", "last", "name", "plan", "weights")

    def __init__(self, name: str, plan: int | None, events: tuple[EventRow, ...] = ()) -> None:
        self.name, self.plan, self.events = name, plan, events
        self.ids: tuple[str, ...] = ()
        self.last: DecisionRow | None = None
        self.weights: Floats | None = None
        """w_j before the next step; None if uniform."""

    def copy(self) -> Session:
        """Return a copy to change; a shallow one is enough, since the contents are immutable."""
        other = Session(self.name, self.plan, self.events)
        other.ids, other.last, other.weights = self.ids, self.last, self.weights
        return other

    def add(self, row: DecisionRow, floor: float) -> None:
        """Append the next step."""
        if not self.ids:
            self.plan = row.plan
        self.ids, self.last = (*self.ids, row.id), row
        if row.votes is not None and row.probabilities is not None:
            votes = np.frombuffer(row.votes)
            actions = len(row.probabilities) // 8
            likely = mixed(votes, floor, actions)  # w_j(t + 1) ∝ w_j(t)·m_j(a_t | s_t)
            weights = likely if self.weights is None else self.weights * likely
            self.weights = weights / weights.sum()

    @property
    def number(self) -> int:
        """The learner's key of the session: a 63-bit hash of its name."""
        return int.from_bytes(hashlib.blake2b(self.name.encode(), digest_size=8).digest(), "little") >> 1

    @property
    def end(self) -> EventRow | None:
        """The row that ended the session; the latest one if a clock repair has reopened it."""
        return next((each for each in reversed(self.events) if each.kind == END), None)

    @property
    def discarded(self) -> bool:
        return any(each.kind == DISCARD for each in self.events)


class Sessions:
    """The part of a model's state that is about sessions."""

    def __init__(self) -> None:
        self.open: dict[str, Opening] = {}
        """Open sessions by name, least recently active first."""
        self.plan: int | None = None
        """The latest published set of plans, by the log position it was made from."""
        self.planned = 0.0
        """When that set was published."""
        self.opened = self.ended = 0
        """Numbers of sessions opened and ended."""
        self.seen = 0
        """Number of sessions that had ended in the rows that the latest set was made from."""
        self.cache: OrderedDict[str, Session] = OrderedDict()
        self.sets: dict[int, Members | None] = {}
        """Sets in memory, by the log position they were made from."""
        self.memory: Arrays | None = None
        """What was learned from the rows before the base snapshot, in a state that starts there."""
        self.told = 0
        """Position of the latest row from which something can be learned."""
        self.news = False
        """Whether the row being applied is such a row."""
        self.moved: list[tuple[DecisionRow, Tally]] | None = None
        """For a learner: the steps whose tally has changed; None if nobody listens."""

    def used(self) -> set[int]:
        """Return the sets in use: those of open sessions, and the latest."""
        found = {each.plan for each in self.open.values()} | {self.plan}
        return {place for place in found if place is not None}

    def header(self) -> dict[str, Any]:
        """Return the part of a snapshot about sessions, in canonical form."""
        return {
            "open": [[name, *each] for name, each in self.open.items()],
            "plan": self.plan,
            "planned": self.planned,
            "opened": self.opened,
            "ended": self.ended,
            "seen": self.seen,
            "told": self.told,
        }

    def restore(self, header: Mapping[str, Any]) -> None:
        self.open = {str(name): Opening(float(latest), _place(plan)) for name, latest, plan in header["open"]}
        self.plan, self.planned = _place(header["plan"]), float(header["planned"])
        self.opened, self.ended, self.seen = (int(header[name]) for name in ("opened", "ended", "seen"))
        self.told = int(header["told"])
        self.cache.clear()

    def forget(self, name: str) -> None:
        """Remove a dropped session."""
        self.cache.pop(name, None)
        self.open.pop(name, None)


def _place(value: Any) -> int | None:
    return None if value is None else int(value)


def mixed(shares: Floats, floor: float, actions: int) -> Floats:
    """Return m_j = ε/K + (1 − ε)·π_j."""
    return floor / actions + (1.0 - floor) * shares


def member_of(model: str, seed: int, session: str, members: int) -> int:
    """Return the member that a session follows: uniform, and a function of the session's name."""
    digest = hashlib.blake2b(f"{model}/{seed}{SEPARATOR}{session}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % members


def find(state: State, name: str) -> Session | None:
    """Return a session as of the state's position in the log; None if it has no step."""
    sessions = state.sessions
    assert sessions is not None
    known = sessions.cache.get(name)
    if known is None:
        rows = state.lookup.steps(state.model, name, state.seq + 1)
        if not rows:
            return None
        known = Session(name, rows[0].plan, state.lookup.events(session_id(state.model, name), state.seq + 1))
        for row in rows:
            known.add(row, state.settings_of(row.settings).floor)
        keep(sessions, known)
    return known


def keep(sessions: Sessions, session: Session) -> None:
    """Cache a session, evicting the one that was cached first."""
    if len(sessions.cache) >= CACHED:
        sessions.cache.popitem(last=False)
    sessions.cache[session.name] = session


def history(own: tuple[EventRow, ...], session: Session, *, last: bool) -> tuple[EventRow, ...]:
    """Return the history of a step: its own events, its session's end and, for the last step, the session's rewards."""
    if not session.events:
        return own
    ends = [each for each in session.events if each.kind in (END, DISCARD)]
    given = [replace(each, event=SEPARATOR + each.event) for each in session.events if each.kind == REWARD and last]
    return (*own, *ends, *given)  # renamed, since the step may have an event with the same name


def history_of(state: State, row: DecisionRow, own: tuple[EventRow, ...]) -> tuple[EventRow, ...]:
    """Return the history of a step that is not cached."""
    assert row.session is not None
    session = find(state, row.session)
    return own if session is None else history(own, session, last=row.id == session.ids[-1])


def members_of(state: State, place: int | None) -> Members | None:
    """Return a set of plans; None if there is none or it is lost, in which case actions are uniform."""
    sessions = state.sessions
    assert sessions is not None
    if place is None:
        return None
    if place not in sessions.sets:
        hold(sessions, place, _load(state, place))
    return sessions.sets[place]


def hold(sessions: Sessions, place: int, members: Members | None) -> None:
    """Keep a set of plans in memory, and drop the sets that are no longer in use."""
    sessions.sets[place] = members
    for each in set(sessions.sets) - sessions.used() - {place}:
        del sessions.sets[each]


def warm_up(state: State) -> None:
    """Load what the first step would otherwise wait for: the agents, the latest set and its compiled code."""
    from belated.decisions._plans import StepState, numbers_of

    assert state.sessions is not None
    members, names = members_of(state, state.sessions.plan), state.settings.names
    if members is not None and names:
        members.distributions(0, StepState(np.zeros(0, np.int64), np.zeros(0), numbers_of(state.settings, names)))


def _load(state: State, place: int) -> Members | None:
    from belated.decisions._plans import plans_from_bytes

    try:
        row = state.lookup.plan(state.model, place)
        if row is not None:
            members: Members = plans_from_bytes(state.settings_of(row.settings), row.content)
            return members
        problem = "is no longer stored"
    except DamagedFileError as error:
        problem = f"cannot be used: {error}"
    _log.warning("the set of plans at position %d of %s %s: its sessions act at random", place, state.model, problem)
    return None


class Steps:
    """The sessions changed by a batch, as they will be once its rows are applied."""

    __slots__ = ("opened", "pending", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.pending: dict[str, Session] = {}
        self.opened = 0

    def find(self, name: str) -> Session | None:
        return self.pending.get(name) or find(self.state, name)

    def change(self, session: Session) -> Session:
        """Return this batch's own copy of a session."""
        return self.pending.setdefault(session.name, session.copy())

    def check(self, given: Decide, offer: Offer) -> tuple[Session, StepState]:
        """Return the session of a request, and the step's state; raise an error if it cannot continue."""
        from belated.decisions._plans import encode_state  # imports all agents

        state, name = self.state, given.session
        assert state.settings.sessions is not None
        check_text("session", name)
        assert name is not None
        if given.size != 1 or not (given.chosen is None or isinstance(given.chosen, str)):
            raise refuse("size", given.size, "1 in a session, since a step is one action")
        encoded = encode_state(state.settings, given.context, offer.names)
        session = self.find(name)
        if session is None:
            if state.lookup.forgotten(state.model, session_id(state.model, name)):
                raise ForgottenError(f"session must be new or still stored, got {name!r}, which was forgotten")
            assert state.sessions is not None
            if len(state.sessions.open) + self.opened >= MOST_OPEN:
                raise StoreError(f"{MOST_OPEN} sessions are already open: end some of them, or shorten idle")
            return Session(name, state.sessions.plan), encoded
        if session.discarded:
            raise ConflictError(f"session {name!r} was cancelled: it cannot have another step")
        if session.end is not None:
            raise ConflictError(f"session {name!r} has ended{_how(session.end)}: it cannot have another step")
        return session, encoded

    def take(
        self, session: Session, encoded: StepState, row: DecisionRow, given: Decide, offer: Offer, now: float
    ) -> Iterator[EventRow]:
        """Complete the row of a step; yield the end of the session if the step is its last."""
        state = self.state
        assert state.settings.sessions is not None
        if not session.ids:
            self.opened += 1
        session = self.change(session)
        row.session, row.step, row.plan = session.name, len(session.ids), session.plan
        draw(state, session, encoded, row, given, offer)
        session.add(row, state.settings.floor)
        if len(session.ids) >= state.settings.sessions.horizon:
            yield self.close(session, FULL, now)

    def close(
        self, session: Session, how: int, now: float, context: str = "", before: EventRow | None = None
    ) -> EventRow:
        """Return the row that ends a session, or completes an earlier end `before`, from which its windows run."""
        state, session = self.state, self.change(session)
        window = state.settings.silence.seconds
        due = before.due if before is not None else None if window is None else now + window
        row = EventRow(
            0, state.model, session_id(state.model, session.name), END, context, how, None, None, now, None, 1, due
        )  # fmt: skip
        session.events = (*session.events, row)
        return row

    def idle(self, now: float, limit: int) -> Iterator[EventRow]:
        """Yield the ends of idle sessions, at most `limit`."""
        state = self.state
        assert state.sessions is not None
        assert state.settings.sessions is not None
        how = IDLE + (state.settings.sessions.leaving == TERMINAL)
        for name, each in state.sessions.open.items():
            if each.latest + state.settings.sessions.idle > now or limit == 0:
                return
            limit -= 1
            session = self.find(name)
            assert session is not None
            yield self.close(session, how, now)

    def discard(self, session: Session, now: float) -> EventRow:
        """Return the row that cancels a session."""
        session, model = self.change(session), self.state.model
        row = EventRow(0, model, session_id(model, session.name), DISCARD, "", 0, None, None, now, None, 1, None)
        session.events = (*session.events, row)
        return row

    def context(self, given: End) -> str:
        """Return the last context of a session as JSON, or an empty string, after validating it."""
        if flag("terminal", given.terminal) and given.context is not None:
            raise refuse("context", given.context, "left out if the end is terminal: a terminal state has no value")
        if given.context is None:
            return ""
        from belated.decisions._plans import encode_state

        encode_state(self.state.settings, given.context, self.state.settings.names)
        return self.state.requests.encode(Decide(given.context), self.state.settings).context


def _how(end: EventRow) -> str:
    return " by being idle" if end.version & IDLE else " with its last step" if end.version & FULL else ""


def draw(state: State, session: Session, encoded: StepState, row: DecisionRow, given: Decide, offer: Offer) -> None:
    """Draw an action and complete the row with it: see the top of this module."""
    names, settings = offer.names, state.settings
    members = members_of(state, session.plan)
    (uniform,) = state.sampler.uniforms(row.number, row.id, 1)
    count = len(names)
    if members is None:
        shares = None
        probabilities: Floats = np.full(count, 1.0 / count)
        chosen = pick(probabilities.tolist(), uniform)
    else:
        shares = members.distributions(len(session.ids), encoded)
        likely = mixed(shares, settings.floor, count)
        weights = session.weights
        probabilities = likely.mean(axis=0) if weights is None else weights.dot(likely)
        member = member_of(state.model, settings.seed, session.name, len(shares))
        chosen = pick(likely[member].tolist(), uniform)
    row.probabilities = probabilities.tobytes()
    if given.chosen is not None:
        assert isinstance(given.chosen, str)
        row.suggestion, row.probability = names[chosen], given.probability
        row.ranking = (given.chosen,)
    else:
        row.ranking, row.probability = (names[chosen],), float(probabilities[chosen])
        row.votes = None if shares is None else np.ascontiguousarray(shares[:, chosen]).tobytes()


def attach(state: State, row: DecisionRow, session: Session | None) -> Session:
    """Add a step to its session, creating the session at its first step; return the session."""
    sessions = state.sessions
    assert sessions is not None
    assert row.session is not None
    if session is None:
        early: tuple[EventRow, ...] = ()
        if state.parked or state.lapsed:
            early = state.lookup.events(session_id(state.model, row.session), row.seq)
        session = Session(row.session, row.plan, early)
        keep(sessions, session)
        sessions.opened += 1
    session.add(row, state.settings_of(row.settings).floor)
    if session.end is None and not session.discarded:
        sessions.open.pop(session.name, None)
        sessions.open[session.name] = Opening(state.latest, session.plan)
    return session


def conclude(state: State, row: EventRow, session: Session) -> None:
    """Add an event to its session."""
    sessions = state.sessions
    assert sessions is not None
    session.events = (*session.events, row)
    sessions.news = sessions.news or row.kind in (END, DISCARD)
    if row.kind in (END, DISCARD) and sessions.open.pop(session.name, None) is not None:
        sessions.ended += 1


def published(state: State, row: EventRow) -> None:
    """Switch to the set of plans that a row has published."""
    sessions = state.sessions
    assert sessions is not None
    sessions.plan, sessions.planned, sessions.seen = row.version, row.received, row.slot or 0
    sessions.sets.pop(row.version, None)
    state.version += 1


def settle_back(sessions: Sessions, now: float) -> None:
    """Move latest steps that a fast clock stamped later than now back to now."""
    sessions.open = {name: each._replace(latest=min(each.latest, now)) for name, each in sessions.open.items()}


def standing(session: Session) -> SessionState:
    """Return whether a session is open, ended or cancelled."""
    end, status = session.end, "open"
    if session.discarded:
        status = "cancelled"
    elif end is not None:
        status = "ended"
    if end is None:
        return SessionState(status, len(session.ids), False, None, None)
    return SessionState(status, len(session.ids), bool(end.version % 2), end.received, end.due)


def session_entry(session: Session, steps: tuple[Entry, ...]) -> SessionEntry:
    """Return the public view of a session."""
    now, end = standing(session), session.end
    context = json.loads(end.event) if end is not None and end.event else None
    return SessionEntry(session.name, now.status, steps, now.terminal, now.ended, context, now.due, session.plan)
