"""The core of decisions: two functions on the state of a model.

    rows, answers = step(state, operations, now, ids)    what to append to the log, and what to answer; changes nothing
    state = apply(state, row)                            applies one row; nothing else changes a state

A state is a function of a log prefix. A live model, a restart, the verification of a state against its log, a process
that follows the writes of others and the replay of a log under other settings all use these two functions, so they
agree to the last bit. Whatever a state does not hold in memory it reads through `Lookup`, as of its own position in the
log; what was read or computed is cached, which changes no result. The draws are a function of the state; new ids come
from `ids`. Stores, threads and HTTP are outside this module.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from belated._util.validate import flag, integer, real, refuse
from belated.decisions import _sessions
from belated.decisions._aged import AgedPosterior
from belated.decisions._ageing import Ages
from belated.decisions._encoding import LONGEST, check_text
from belated.decisions._ledger import IN_FLIGHT, Tally, aggregate, judge, made_of, tally
from belated.decisions._members import Row as SparseRow
from belated.decisions._members import SparseOffer, SparsePosterior, digest, salt_of, unpacked
from belated.decisions._operations import (
    LARGEST,
    STEP,
    Activate,
    Answer,
    Cancel,
    ClockError,
    ConflictError,
    Decide,
    Decided,
    DecisionState,
    End,
    Operation,
    Outcome,
    PosteriorError,
    Reward,
    Signal,
    Status,
    duration,
)
from belated.decisions._posterior import Posterior
from belated.decisions._revenue import RevenuePosterior
from belated.decisions._rows import (
    ACTIVATE,
    CANCEL,
    CLOCK,
    DISCARD,
    END,
    FULL,
    IDLE,
    PLAN,
    REWARD,
    SEPARATOR,
    SIGNAL,
    TICK,
    DecisionRow,
    EventRow,
    PlanRow,
    Row,
    SettingsRow,
    session_id,
    session_of,
)
from belated.decisions._sampling import Drawn, Sampler
from belated.decisions._sessions import Session, Sessions, Steps
from belated.decisions._settings import (
    REVENUE,
    ModelSettings,
    check_blocks,
    check_noise,
    check_sparse_memory,
    check_sparse_work,
    check_work,
    most_actions,
    most_blocks,
)
from belated.errors import BelatedError, InvalidInputError
from belated.types import Floats

if TYPE_CHECKING:
    from belated.decisions._plans import StepState

#: Roughly how many windows one step closes; how many histories are kept in memory.
WINDOWS, CACHED = 1_000, 10_000
#: Maximum number of parked rewards, in total and per decision.
MOST_PARKED, MOST_OF_ONE = 10_000, 100
#: Seconds of log time for which a parked reward counts towards that maximum, and the resolution of that count.
PARKED_FOR, SPAN = 3600.0, 360.0
#: Kinds of rewards that are rows of the log, whether or not they count.
_STORED = (Status.ACCEPTED, Status.LATE, Status.PARKED)
#: Maximum number of feature values in one ranking, since they are stored with the decision.
MOST_RANKED = 2**20


class Lookup(Protocol):
    """Read access to a log, as the core needs it. Every `Store` provides it."""

    shared: bool
    """Whether other processes may write to the log, too. Positions still follow the order of commits."""

    def decision(self, id: str, before: int | None = None) -> DecisionRow | None:  # noqa: A002
        """Return the decision with this id, if it is in the log (before position `before`)."""

    def keyed(self, model: str, key: str) -> DecisionRow | None:
        """Return the decision with this idempotency key."""

    def steps(self, model: str, session: str, before: int | None = None) -> tuple[DecisionRow, ...]:
        """Return the steps of a session (before position `before`), in order."""

    def plan(self, model: str, place: int) -> PlanRow | None:
        """Return the set of plans made from the first `place` rows; raise DamagedFileError if it is damaged."""

    def events(self, id: str, before: int | None = None) -> tuple[EventRow, ...]:  # noqa: A002
        """Return the events with this id (before position `before`), in log order."""

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        """Return the windows that end in (after, upto], of rows before position `before`: end and id, earliest first.

        At most `limit` windows, plus those that end at the same moment as the last of them.
        """

    def next_due(self, model: str, after: float) -> float | None:
        """Return when the next window after `after` ends."""

    def forgotten(self, model: str, id: str) -> bool:  # noqa: A002
        """Whether an unknown id belonged to a decision that is no longer stored."""

    def log(self, model: str, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Yield the model's rows with positions in (after, upto], in order."""

    def settings(self, model: str) -> list[SettingsRow]:
        """Return all versions of a model's settings, oldest first; empty if the model does not exist."""


class Offer(NamedTuple):
    """The encoded actions of one request, and what the log stores of the request."""

    names: tuple[str, ...]
    features: Floats | SparseOffer
    """Shape (actions, d); (1, d) if every action has its own weights. Sparse if d is large."""
    context: str
    """JSON."""
    actions: str
    """JSON."""


class Requests(Protocol):
    """The form of a model's requests: JSON with named actions, or arrays of features."""

    dimension: int
    own_weights: bool
    """Whether each action has its own block of weights."""

    def encode(self, given: Decide, settings: ModelSettings) -> Offer:
        """Return the features of the actions on offer; raise InvalidInputError unless the request fits the settings."""

    def canonical(self, given: Decide) -> bytes:
        """Canonical bytes of the request, for idempotency."""

    def may_appear(self, id: str, now: float) -> bool:  # noqa: A002
        """Whether a decision with this id, unknown now, may still be stored later."""


class Tracked:
    """A decision in memory: its row, its events, its tally and its time in half-lives."""

    __slots__ = ("decision", "events", "lesson", "tally", "time")

    def __init__(self, decision: DecisionRow, events: tuple[EventRow, ...], found: Tally | None, time: float) -> None:
        self.decision, self.events, self.tally, self.time = decision, events, found, time
        self.lesson: tuple[tuple[int, tuple[float, ...]], tuple[int, Any]] | None = None
        """Its slot and what had come of it before the age that was learned last, and the block and features of that:
        nearly always those of the next age, too."""


class Forgotten(NamedTuple):
    """Decisions that are dropped from the log, with their positions; what was learned from them stays."""

    decisions: Sequence[tuple[str, DecisionState]]


class State:
    """What a model knows after the first `seq` rows of its log. Only `apply` changes it."""

    def __init__(self, model: str, requests: Requests, versions: Mapping[int, ModelSettings], lookup: Lookup) -> None:
        self.model, self.requests, self.lookup = model, requests, lookup
        self.versions = dict(versions)
        self.settings_version = max(versions)
        self.settings = versions[self.settings_version]
        self.ages = Ages.of(self.settings.silence)
        """Fixed for the life of a model: the same in all versions of the settings."""
        self.sparse = self.settings.is_sparse(requests.dimension)
        self.posterior = self.new_posterior()
        self.sampler = Sampler(model, self.settings.seed, shared=lookup.shared)
        self.blocks: dict[str, int] = {}
        """The index of each action's block of weights, if each action has its own."""
        self.seq = 0
        self.chain = b""
        """Chain digest of the row at position `seq`."""
        self.made = 0
        """The number of the latest decision."""
        self.version = 0
        """How often the posterior has changed."""
        self.over = 0.0
        """Windows and ages that end at or before this time are closed."""
        self.next_due: float | None = None
        """When the next window or age ends."""
        self.latest = 0.0
        """Time of the latest row; the log's time never runs backwards."""
        self.learned = 0
        """Number of decisions that were learned with a reward."""
        self.parked = 0
        """Number of events whose decision is not known yet."""
        self.lapsed = 0
        """Number of parked events whose decision has not appeared in time; they no longer count towards the limit."""
        self.parking: dict[int, int] = {}
        """Number of parked events by interval of log time, oldest first."""
        self.counts = dict.fromkeys(DecisionState, 0)
        self.rows = self.activations = self.ended = 0
        """Numbers of rows, activations, and closed windows and ages since this object was created."""
        self.rewarded = 0.0
        """Time of the latest reward since this object was created."""
        self.cache: OrderedDict[str, Tracked] = OrderedDict()  # a dict takes ever longer to find its first key
        self.sessions = None if self.settings.sessions is None else Sessions()
        self._limit()

    def _limit(self) -> None:
        """Compute the limits on a request; see `_settings`."""
        dimension, own_weights = self.requests.dimension, self.requests.own_weights
        if self.sparse:
            self.most_actions, self.most_blocks = 0, 2**31  # checked for each request, by its features
            return
        self.most_actions = most_actions(
            dimension, self.settings.draws, own_weights=own_weights, ages=self.settings.ages * self.settings.factors
        )
        self.most_blocks = most_blocks(dimension + self.settings.numbers, self.settings.outputs)

    def configure(self, version: int, settings: ModelSettings) -> None:
        """Switch to another version of the settings."""
        self.settings, self.settings_version = settings, version
        self.posterior.configure(scale=settings.scale, noise=check_noise(settings.noise), ridge=settings.ridge)
        self._limit()

    @property
    def size(self) -> int:
        """Approximate size of a snapshot in bytes; 0 if it is small."""
        return self.posterior.size if isinstance(self.posterior, SparsePosterior) else 0

    def waiting(self, now: float) -> int:
        """Return how many rewards are parked at time `now`, without those that have lapsed by then."""
        oldest = _span(now - PARKED_FOR)
        return sum(count for span, count in self.parking.items() if span >= oldest)

    def new_posterior(self) -> Posterior | AgedPosterior | SparsePosterior:
        """Return the prior: a posterior without data."""
        settings, requests = self.settings, self.requests
        scale, noise, ridge = settings.scale, check_noise(settings.noise), settings.ridge
        if self.sparse:
            seed = digest(f"{self.model}/{settings.seed}")
            d, draws = requests.dimension, settings.draws
            return SparsePosterior(d, draws=draws, scale=scale, noise=noise, ridge=ridge, seed=seed)
        d, blocks, ages = requests.dimension, 0 if requests.own_weights else 1, len(self.ages.left)
        if settings.likelihood == REVENUE:
            return RevenuePosterior(d, scale=scale, ridge=ridge, blocks=blocks)
        if ages == 1 or settings.sessions is not None:  # the planner learns sessions, see `_planner`
            return Posterior(d, scale=scale, noise=noise, ridge=ridge, blocks=blocks)
        signals = len(settings.signals)
        return AgedPosterior(ages, d, signals=signals, scale=scale, noise=noise, ridge=ridge, blocks=blocks)

    def look_ahead(self) -> None:
        """Look up when the next window or age ends."""
        self.next_due = self.ages.next_end(self.lookup, self.model, self.over)

    def time(self, made: float, number: int) -> float:
        """Return a time in half-lives; 0 without forgetting."""
        forgetting = self.settings.forgetting
        return 0.0 if forgetting is None else forgetting.time(made, number)

    def settings_of(self, version: int) -> ModelSettings:
        """Return a version of the settings, read from the store if another process has added it."""
        if version not in self.versions:
            for row in self.lookup.settings(self.model):
                if row.version not in self.versions:
                    self.versions[row.version] = ModelSettings.from_table(json.loads(row.text))
        return self.versions[version]

    def find(self, id: str) -> Tracked | None:  # noqa: A002
        """Return a decision of this model as of this position in the log."""
        tracked = self.cache.get(id)
        if tracked is None:
            row = self.lookup.decision(id, self.seq + 1)
            if row is None or row.model != self.model:
                return None
            events = self.lookup.events(id, self.seq + 1)
            if row.session is not None:
                events = _sessions.history_of(self, row, events)
            tracked = self.keep(row, events, tally(row, events, self.settings_of(row.settings), self.over))
        return tracked

    def find_all(self, id: str) -> list[Tracked]:  # noqa: A002
        """Return a decision, or all steps of a session, as of this position in the log."""
        name = session_of(id) if self.sessions is not None else ""
        session = _sessions.find(self, name) if name else None
        found = [self.find(each) for each in ((id,) if session is None else session.ids)]
        return [each for each in found if each is not None]

    def find_every(self, names: Iterable[str]) -> list[Tracked]:
        """Return the decisions of these names, and all steps of the sessions among them, each once."""
        names = dict.fromkeys(names)
        if self.sessions is None:
            return [each for each in map(self.find, names) if each is not None]
        return list({each.decision.id: each for name in names for each in self.find_all(name)}.values())

    def next_end(self) -> float | None:
        """Return when the next window ends or the next session becomes idle."""
        sessions = self.sessions
        if sessions is None or self.settings.sessions is None or not sessions.open:
            return self.next_due
        idle = next(iter(sessions.open.values())).latest + self.settings.sessions.idle
        return idle if self.next_due is None else min(idle, self.next_due)

    def keep(self, row: DecisionRow, events: tuple[EventRow, ...], found: Tally | None) -> Tracked:
        """Cache a decision, evicting the one that was cached first."""
        cache = self.cache
        if len(cache) >= CACHED:
            cache.popitem(last=False)
        time = 0.0 if self.settings.forgetting is None else self.time(made_of(row, events), row.number)
        tracked = cache[row.id] = Tracked(row, events, found, time)
        return tracked


def apply(state: State, row: Row | SettingsRow | Forgotten) -> State:
    """Apply the next row of the log in place, and return the state.

    New settings and dropped decisions have no position in the log and may be applied at any time.
    """
    if isinstance(row, DecisionRow):
        _apply_decision(state, row)
    elif isinstance(row, EventRow):
        if row.kind == TICK:
            _apply_tick(state, row)
        elif row.kind == CLOCK:
            _apply_clock(state, row)
        elif row.kind == PLAN:
            state.latest = max(state.latest, row.received)
            _sessions.published(state, row)
        elif SEPARATOR in row.id:
            _apply_session_event(state, row)
        else:
            _apply_event(state, row)
    elif isinstance(row, SettingsRow):
        _apply_settings(state, row)
        return state
    else:
        for name, where in row.decisions:
            tracked = state.cache.pop(name, None)
            state.counts[where] -= 1
            if tracked is not None and tracked.decision.session is not None and state.sessions is not None:
                state.sessions.forget(tracked.decision.session)
        return state
    if state.parking:
        _lapse(state)
    if state.sessions is not None and state.sessions.news:
        state.sessions.told, state.sessions.news = row.seq, False
    state.seq, state.chain = row.seq, row.chain  # from here on lookups include the row
    state.rows += 1
    return state


def _apply_settings(state: State, row: SettingsRow) -> None:
    settings = ModelSettings.from_table(json.loads(row.text))
    state.versions[row.version] = settings
    state.configure(row.version, settings)


def _apply_decision(state: State, row: DecisionRow) -> None:
    if row.settings > state.settings_version:  # another process has changed the settings
        for newer in state.lookup.settings(state.model):
            if newer.version > state.settings_version:
                _apply_settings(state, newer)
    if row.number > state.made:
        state.made = row.number
    if row.made > state.latest:
        state.latest = row.made
    if row.due is not None:
        _expect(state, row.due)
    if state.requests.own_weights and row.session is None:
        for name in row.ranking:
            if name not in state.blocks:
                state.posterior.grow(state.blocks.setdefault(name, len(state.blocks)))
    early = state.lookup.events(row.id, row.seq) if state.parked or state.lapsed else ()
    for event in early:
        _unpark(state, event)
    if row.session is not None:
        early = _attach(state, row, early)
    if row.active and not early and (row.due is None or row.due > state.over + state.ages.left[0]):  # the usual case
        state.keep(row, early, IN_FLIGHT)
        state.counts[DecisionState.IN_FLIGHT] += 1
    else:
        _move(state, state.keep(row, early, None))


def _attach(state: State, row: DecisionRow, own: tuple[EventRow, ...]) -> tuple[EventRow, ...]:
    """Add a step to its session and return the step's history; the session's rewards move here from the step before."""
    assert row.session is not None
    known = _sessions.find(state, row.session) if row.step else None
    before = None if known is None or not known.events else state.find(known.ids[-1])
    session = _sessions.attach(state, row, known)
    for event in session.events if known is None else ():
        _unpark(state, event)
    if before is not None:
        _relate(state, session, before)
    return _sessions.history(own, session, last=True)


def _relate(state: State, session: Session, tracked: Tracked) -> None:
    """Tally a step again, with what is now known about its session."""
    name = tracked.decision.id
    own = tuple(each for each in tracked.events if each.id == name)
    tracked.events = _sessions.history(own, session, last=name == session.ids[-1])
    _move(state, tracked)


def _apply_session_event(state: State, row: EventRow) -> None:
    state.latest = max(state.latest, row.received)
    if row.kind == REWARD:
        state.rewarded = row.received
    if row.kind == END and row.due is not None:
        _expect(state, row.due)
    session = _sessions.find(state, session_of(row.id))
    if session is None:
        _park(state, row)
        return
    touched = [state.find(each) for each in (session.ids if row.kind != REWARD else session.ids[-1:])]
    _sessions.conclude(state, row, session)
    for tracked in touched:
        assert tracked is not None
        _relate(state, session, tracked)


def _apply_event(state: State, row: EventRow) -> None:
    state.latest = max(state.latest, row.received)
    if row.kind == REWARD:
        state.rewarded = row.received
    tracked = state.find(row.id)
    if tracked is None:
        _park(state, row)
        return
    tracked.events = (*tracked.events, row)
    if row.kind == ACTIVATE:
        state.activations += 1
        if row.due is not None:
            _expect(state, row.due)
        _date(state, tracked)
    _move(state, tracked)


def _date(state: State, tracked: Tracked) -> None:
    """Correct the forgetting weight of a decision that was stamped by a clock that was ahead."""
    row, found, before = tracked.decision, tracked.tally, tracked.time
    tracked.time = state.time(made_of(row, tracked.events), row.number)
    if tracked.time != before and found is not None and found.parts:
        ages: Sequence[Any] = state.posterior.ages
        for age, block, x, part in _lessons(state, row, found):
            ages[age].unlearn(block, x, part, before)
            ages[age].learn(block, x, part, tracked.time)
        state.version += 1


def _apply_tick(state: State, row: EventRow) -> None:
    assert row.due is not None
    state.latest = max(state.latest, row.received)
    while state.over < row.due:
        upto, ended = state.ages.ending(state.lookup, state.model, state.over, row.due, row.seq, CACHED)
        touched = state.find_every(ended)  # tallied before
        state.over = upto
        state.ended += len(ended)
        for tracked in touched:
            _move(state, tracked)
    state.look_ahead()


def _span(received: float) -> int:
    return int(received // SPAN)


def _park(state: State, event: EventRow) -> None:
    state.parked += 1
    span = _span(event.received)
    state.parking[span] = state.parking.get(span, 0) + 1


def _unpark(state: State, event: EventRow) -> None:
    span = _span(event.received)
    if span not in state.parking:
        state.lapsed -= 1
        return
    state.parked -= 1
    state.parking[span] -= 1
    if not state.parking[span]:
        del state.parking[span]


def _lapse(state: State) -> None:
    """Stop counting events parked for too long towards the limit; they are still attached if their decision appears."""
    oldest = _span(state.latest - PARKED_FOR)
    for span in [each for each in state.parking if each < oldest]:
        count = state.parking.pop(span)
        state.parked -= count
        state.lapsed += count


def _apply_clock(state: State, row: EventRow) -> None:
    """Set the log's time back: windows that were closed only because a clock was ahead are reopened."""
    now = state.latest = row.received
    state.rewarded = min(state.rewarded, now)
    if state.over > now:
        _, ended = state.ages.ending(state.lookup, state.model, now, state.over, row.seq, 2**31)
        touched = state.find_every(ended)  # tallied before
        state.over = now
        for tracked in touched:
            _move(state, tracked)
    if state.sessions is not None:
        _sessions.settle_back(state.sessions, now)
    if state.posterior.epoch > state.time(now, state.made):  # what was learned has been forgotten too early
        _learn_again(state, row.seq)
    state.look_ahead()


def _learn_again(state: State, before: int) -> None:
    """Recompute the posterior from the rows before position `before`; dropped rows cannot be learned again."""
    again, learned = state.new_posterior(), 0
    again.grow(len(state.blocks) - 1)
    for row in state.lookup.log(state.model, 0, before):
        known = state.find(row.id) if isinstance(row, DecisionRow) else None
        if known is not None and known.tally is not None and known.tally.parts:
            ages: Sequence[Any] = again.ages
            for age, block, x, part in _lessons(state, known.decision, known.tally):
                ages[age].learn(block, x, part, known.time)
            learned += known.tally.learned is not None
    if learned == state.learned:
        state.posterior, state.version = again, state.version + 1


def _expect(state: State, due: float) -> None:
    end = state.ages.next_of(due, state.over)
    if end is not None and (state.next_due is None or end < state.next_due):
        state.next_due = end


def _move(state: State, tracked: Tracked) -> None:
    """Update the posterior by the difference between a decision's previous and current tally."""
    row, before = tracked.decision, tracked.tally
    after = tracked.tally = tally(row, tracked.events, state.settings_of(row.settings), state.over)
    if before is None or before.state is not after.state:
        state.counts[after.state] += 1
        if before is not None:
            state.counts[before.state] -= 1
    if row.session is not None:
        _move_step(state, row, before, after)
        return
    before = before or IN_FLIGHT
    old, new, ages, time = before.parts, after.parts, state.posterior.ages, tracked.time
    moved = old and (before.slot != after.slot or before.before != after.before[: len(before.before)])
    if old == new and not moved:
        return
    state.learned += (after.learned is not None) - (before.learned is not None)
    state.version += 1
    if moved:
        for age, block, x, part in _lessons(state, row, before):
            ages[age].unlearn(block, x, part, time)
        old = ()
    known = len(old) if new[: len(old)] == old else 0  # usually only an age was added
    if known == len(old) == len(new) - 1 and after.before and not moved:  # the usual case: one age
        come = after.before[-1]
        if tracked.lesson is None or tracked.lesson[0] != (after.slot, come):
            tracked.lesson = (after.slot, come), _chosen(state, row, after.slot, come)
        ages[known].learn(*tracked.lesson[1], new[known], time)
        return
    for age, block, x, part in _lessons(state, row, after, known):
        if age >= len(old):
            ages[age].learn(block, x, part, time)
        elif old[age] != part:
            ages[age].correct(block, x, old[age], part, time)
    if len(old) > len(new):
        for age, block, x, part in _lessons(state, row, before, len(new)):
            ages[age].unlearn(block, x, part, time)


def _lessons(state: State, row: DecisionRow, found: Tally, first: int = 0) -> list[tuple[int, int, Any, float]]:
    """Return the rows to learn from a decision, from part `first` on: part, block, features, increment."""
    parts, before, lessons = found.parts, found.before, []
    for place in range(first, len(parts)):
        if place == first or (before and place % len(before[0]) == 0):
            known = before[place // len(before[0])] if before else ()
            block, x = _chosen(state, row, found.slot, known)
        lessons.append((place, block, x, parts[place]))
    return lessons


def _move_step(state: State, row: DecisionRow, before: Tally | None, after: Tally) -> None:
    """Count a step by its tally; it is the planner that learns it, see `_planner`."""
    old, parts = (None, ()) if before is None else (before.learned, before.parts)
    if before is not None and after.state is DecisionState.IN_FLIGHT and before.state is not after.state:
        state.activations += 1  # in flight again: the rewards of its session now count at another step
    state.learned += (after.learned is not None) - (old is not None)
    if state.sessions is not None and (old != after.learned or parts != after.parts):
        state.sessions.news = True
        if state.sessions.moved is not None:
            state.sessions.moved.append((row, after))


def _chosen(state: State, row: DecisionRow, slot: int, known: tuple[float, ...] = ()) -> tuple[int, Any]:
    """Return the block and the features of an action of the ranking, followed by what had been observed before."""
    if state.sparse:
        salt = salt_of(row.ranking[slot]) if state.requests.own_weights else 0
        return 0, SparseRow(digest(row.id), row.number, salt, *unpacked(row.features, slot))
    d, block = state.requests.dimension, 0
    if state.requests.own_weights:
        block = state.blocks[row.ranking[slot]]
    features = row.features[8 * d * slot : 8 * d * (slot + 1)]
    return block, np.frombuffer(features + struct.pack(f"{len(known)}d", *known) if known else features)


def step(
    state: State, operations: Sequence[Operation], now: float, ids: Callable[[float], str], windows: int = WINDOWS
) -> tuple[list[Row], list[Answer]]:
    """Return the rows to append to the log, and one answer for each operation, to be sent once the rows are stored.

    Windows that are due are closed first, about `windows` of them. Operations see each other (a repeated key or event
    counts once), but all decisions are drawn from the posterior of `state`. `ids` returns a new id for a decision made
    at the given time.
    """
    now = moment(state, now)
    try:
        return _step(_Batch(state, now), operations, ids, windows)
    except PosteriorError as error:  # no decisions are made; all other operations work as usual
        return _step(_Batch(state, now, error), operations, ids, windows)


def _step(
    batch: _Batch, operations: Sequence[Operation], ids: Callable[[float], str], windows: int
) -> tuple[list[Row], list[Answer]]:
    state, now = batch.state, batch.now
    if state.next_due is not None and state.next_due <= now:
        upto, _ = state.ages.ending(state.lookup, state.model, state.over, now, None, windows)
        batch.rows.append(EventRow(0, state.model, "", TICK, "", 0, None, None, now, None, 1, upto))
    if state.sessions is not None:
        batch.rows += batch.steps.idle(now, windows)
    answers: list[Answer] = []
    for given in operations:
        if isinstance(given, Decide):
            answers.append(batch.decide(given, ids))
        elif isinstance(given, Reward):
            answers.append(batch.report(given, REWARD))
        elif isinstance(given, Signal):
            answers.append(batch.signal(given))
        elif isinstance(given, Activate):
            answers.append(batch.close(given.id, ACTIVATE))
        elif isinstance(given, Cancel):
            answers.append(batch.close(given.id, CANCEL) if given.session is None else batch.discard(given))
        elif isinstance(given, End):
            answers.append(batch.end(given))
        else:
            raise refuse("each operation", given, "a Decide, Reward, Signal, Activate, Cancel or End")
    if batch.drafts:
        _draw(state, batch.drafts, now)
    return batch.rows, answers


def moment(state: State, now: float) -> float:
    """Return the time of the next rows: the clock's, or the log's if the clock is a little behind it.

    The log's time never runs backwards. If it were far ahead of the clock, no window would close until the clock had
    caught up; a clock must have been wrong, so this raises an error.
    """
    ahead = state.latest - now
    if ahead > STEP:
        raise ClockError(
            f"the log of {state.model!r} is {duration(ahead)} ahead of the clock: correct the clock, or if it is right "
            "run `belated decisions repair-clock`"
        )
    return max(now, state.latest)


def repair(state: State, now: float) -> list[Row]:
    """Return the rows that set the log's time back to `now` after a clock was ahead; none if no clock was.

    Decisions stamped by that clock count as made now, with a full window from now on.
    """
    if state.latest <= now and state.over <= now:
        return []
    rows: list[Row] = []
    for row in state.lookup.log(state.model, 0, state.seq):
        if isinstance(row, DecisionRow):
            began, due, active = row.made, row.due, row.active
            for event in state.lookup.events(row.id):
                if event.kind == ACTIVATE:
                    began, due, active = event.received, event.due, 1
            if active and began > now:
                due = None if due is None else now + due - began
                rows.append(EventRow(0, state.model, row.id, ACTIVATE, "", 0, None, None, now, None, 1, due))
        elif row.kind == END and row.received > now:
            due = None if row.due is None else now + row.due - row.received
            rows.append(replace(row, seq=0, received=now, due=due))
    return [*rows, EventRow(0, state.model, "", CLOCK, "", 0, None, None, now, None, 1, None)]


def preview(state: State, given: Decide, now: float) -> Floats:
    """Return the probabilities that a decision would be drawn from, one for each action on offer."""
    (answer,) = step(state, [given], now, lambda now: "")[1]
    if isinstance(answer, BelatedError):
        raise answer
    assert isinstance(answer, Decided)
    if answer.row.probabilities is None:
        raise refuse("draws", state.settings.draws, "more than 1 (or a positive floor) to know probabilities")
    return np.frombuffer(answer.row.probabilities)


#: A decision to be drawn: its row, the request and the actions on offer.
_Draft = tuple[DecisionRow, Decide, Offer]


def _draw(state: State, drafts: Sequence[_Draft], now: float) -> None:
    """Draw decisions; if each action has its own weights, draw those with the same actions and time together."""
    sampler, posterior, settings = state.sampler, state.posterior, state.settings
    if isinstance(posterior, SparsePosterior):
        for row, given, offer in drafts:
            assert isinstance(offer.features, SparseOffer)
            shares = posterior.shares(offer.features)
            _fill(row, given, offer, sampler.members(shares, settings, row.number, row.id, given.size))
        return
    if not state.requests.own_weights:
        for row, given, offer in drafts:
            when = state.time(now, row.number)
            assert isinstance(offer.features, np.ndarray)
            drawn = sampler.joint(posterior, settings, offer.features, when, row.number, row.id, given.size)
            _fill(row, given, offer, drawn)
        return
    groups: dict[tuple[float, tuple[str, ...]], list[_Draft]] = {}
    for draft in drafts:
        groups.setdefault((state.time(now, draft[0].number), draft[2].names), []).append(draft)
    for (when, names), group in groups.items():
        blocks = np.array([state.blocks.get(name, -1) for name in names])
        rows: list[Any] = [offer.features for _, _, offer in group]
        x = rows[0] if len(rows) == 1 else np.concatenate(rows)
        draws = [(row.number, row.id, given.size) for row, given, _ in group]
        some = sampler.separate(posterior, settings, blocks, x, when, draws)
        for (row, given, offer), drawn in zip(group, some, strict=True):
            _fill(row, given, offer, drawn, own_weights=True)


def _fill(row: DecisionRow, given: Decide, offer: Offer, drawn: Drawn, *, own_weights: bool = False) -> None:
    """Complete a decision's row with its ranking and probabilities."""
    (order, probabilities), names, features = drawn, offer.names, offer.features
    if probabilities is not None:
        row.probabilities = probabilities.tobytes()
        row.probability = float(probabilities[order[0]])
    if given.chosen is not None:
        row.suggestion, row.probability = names[order[0]], given.probability
        order = [names.index(each) for each in row.ranking]
    row.ranking = tuple([names[i] for i in order]) if len(order) > 1 else (names[order[0]],)
    if isinstance(features, SparseOffer):
        row.features = features.packed(order)
    elif own_weights:
        row.features = features[0].tobytes() * len(order)
    elif len(order) == 1:
        row.features = features[order[0]].tobytes()
    else:
        row.features = features[order].tobytes()


class _Batch:
    """The rows of one call of `step`, and the histories as they will be after those rows."""

    __slots__ = ("drafts", "histories", "keys", "made", "now", "ranked", "rows", "state", "steps", "undecided")

    def __init__(self, state: State, now: float, undecided: PosteriorError | None = None) -> None:
        self.state, self.now, self.undecided = state, now, undecided
        self.made = self.ranked = 0
        """Number of decisions in this batch, and of the actions that they choose."""
        if state.sessions is not None:
            self.steps = Steps(state)
        self.rows: list[Row] = []
        self.drafts: list[_Draft] = []
        self.keys: dict[str, DecisionRow] = {}
        self.histories: dict[str, tuple[DecisionRow | None, tuple[EventRow, ...]]] = {}
        """Decision and events by id, as they will be once the rows are applied."""

    def decide(self, given: Decide, ids: Callable[[float], str]) -> Decided | BelatedError:
        """Add a decision's row; its actions are drawn later, together with the others."""
        state, now, key, name, digest = self.state, self.now, given.key, given.id, None
        early: tuple[EventRow, ...] = ()
        try:
            if key is not None:
                check_text("key", key)
                digest = hashlib.blake2b(state.requests.canonical(given), digest_size=16).digest()
                known = self.keys.get(key) or state.lookup.keyed(state.model, key)
                if known is not None:
                    if known.digest != digest:
                        raise ConflictError(f"key {key!r} already belongs to a decision for a different request")
                    return Decided(known, True)
            if self.undecided is not None:
                raise self.undecided
            offer = state.requests.encode(given, state.settings)
            made = _check_decide(given, offer.names, now)
            session = None
            if given.session is not None or state.sessions is not None:
                session = self._session(given, offer)
            blocks = len(state.blocks) + self.ranked
            if given.size > 1 or len(offer.names) > state.most_actions or blocks >= state.most_blocks:
                self._check_size(given, offer, blocks)
            if name is not None:
                seen = self.histories.get(name)
                if (state.lookup.decision(name) if seen is None else seen[0]) is not None:
                    raise ConflictError(f"a decision with the id {name!r} already exists")
                if seen is not None or state.parked or state.lapsed:
                    early = state.lookup.events(name) if seen is None else seen[1]
        except BelatedError as error:
            return error
        ranking = offer.names[: given.size]  # placeholder of the same length until it is drawn
        if given.chosen is not None:
            ranking = (given.chosen,) if isinstance(given.chosen, str) else tuple(given.chosen)
        window = state.settings.silence.seconds if session is None else None
        self.made += 1
        row = DecisionRow(
            0, state.model, ids(now) if name is None else name, state.made + self.made, made, key, digest,
            state.settings_version, state.version, offer.context, offer.actions, ranking, None, None, None, b"",
            int(given.active), made + window if window is not None and given.active else None,
        )  # fmt: skip
        self.rows.append(row)
        if session is None:
            self.drafts.append((row, given, offer))
            self.ranked += len(ranking)
        else:
            self.rows += self.steps.take(*session, row, given, offer, now)
        if key is not None:
            self.keys[key] = row
        if name is not None:  # a generated id cannot have parked events
            self.histories[name] = row, early
        return Decided(row, False)

    def _session(self, given: Decide, offer: Offer) -> tuple[Session, StepState] | None:
        """Return the session that a decision is a step of, and the step's state; None for a model without sessions."""
        if self.state.sessions is None:
            if given.session is None:
                return None
            raise refuse("session", given.session, "left out: only models with a horizon have sessions")
        if given.session is None:
            raise refuse("session", None, f"given: {self.state.model!r} has a horizon, so decisions are steps")
        return self.steps.check(given, offer)

    def _check_size(self, given: Decide, offer: Offer, blocks: int) -> None:
        """Raise InvalidInputError if the decision would take too much time or memory with this number of `blocks`."""
        state = self.state
        d, own_weights, settings = state.requests.dimension, state.requests.own_weights, state.settings
        if isinstance(offer.features, SparseOffer):
            check_sparse_work(int((offer.features.ends - offer.features.begins).sum()), settings.draws)
            if own_weights and not all(name in state.blocks for name in offer.names):
                assert isinstance(state.posterior, SparsePosterior)
                check_sparse_memory(state.posterior.features, settings.draws)
            return
        if len(offer.names) > state.most_actions:
            ages = settings.ages * settings.factors
            check_work(len(offer.names), d, settings.draws, own_weights=own_weights, ages=ages)
        if given.size * d > MOST_RANKED:
            raise refuse("size", given.size, f"at most {MOST_RANKED // d} with {d} features per action")
        if own_weights and state.sessions is None and blocks + given.size > state.most_blocks:
            new = sum(name not in state.blocks for name in offer.names)
            check_blocks(blocks + min(new, given.size), d + state.settings.numbers, state.settings.outputs)

    def signal(self, given: Signal) -> Outcome:
        known, name = self.state.settings.signals, given.signal
        if name not in known:
            detail = f"signal must be one of the model's, {', '.join(known) or 'which has none'}, got {name!r}"
            return Outcome(Status.INVALID, str(given.id)[:LONGEST], detail)
        as_reward = Reward(given.id, given.value, name, given.version, given.correction, given.observed)
        return self.report(as_reward, SIGNAL)

    def report(self, given: Reward, kind: str) -> Outcome:
        """Add a reward or a signal; both are handled alike."""
        try:
            given = _check_reward(given)
        except InvalidInputError as error:
            return Outcome(Status.INVALID, str(given.id)[:LONGEST], str(error))
        if given.session is not None:
            return self._session_reward(given, given.session)
        decision, events = self._history(given.id)
        if decision is not None and decision.session is not None:
            events = self._of_step(decision, events)
        if decision is None and not events and not self._may_appear(given.id):
            return self._absent(given.id)
        settings = self.state.settings if decision is None else self.state.settings_of(decision.settings)
        if given.reward < 0.0 and settings.likelihood == REVENUE and settings.aggregate != "sum":
            detail = (
                f'reward must be at least 0 if likelihood is "revenue" and rewards are not summed, got {given.reward}'
            )
            return Outcome(Status.INVALID, given.id, detail)
        status, detail, version = judge(decision, events, given, self.now, settings, kind)
        if status is Status.PARKED and (len(events) >= MOST_OF_ONE or not self._may_park()):
            full = f"{MOST_OF_ONE} rewards of it are" if len(events) >= MOST_OF_ONE else f"{MOST_PARKED} rewards are"
            return Outcome(Status.UNKNOWN, given.id, f"there is no such decision yet, and {full} already parked")
        if status in _STORED:
            row = EventRow(
                0, self.state.model, given.id, kind, given.event, version, given.reward, given.slot, self.now,
                given.observed, int(status is not Status.LATE), None,
            )  # fmt: skip
            events = (*events, row)
            self.rows.append(row)
            self.histories[given.id] = decision, events
        return Outcome(status, given.id, detail, None if decision is None else aggregate(events, settings))

    def _of_step(self, decision: DecisionRow, events: tuple[EventRow, ...]) -> tuple[EventRow, ...]:
        """Return the events of a step that decide the status of a reward for it."""
        assert decision.session is not None
        session = self.steps.find(decision.session)
        own = tuple(each for each in events if each.id == decision.id)
        return own if session is None else _sessions.history(own, session, last=False)

    def _session_reward(self, given: Reward, name: str) -> Outcome:
        """Add a reward of a whole session, which counts at its last step."""
        state = self.state
        if state.sessions is None:
            return Outcome(Status.INVALID, name, f"session must be left out: {state.model!r} has no sessions")
        id, session = session_id(state.model, name), self.steps.find(name)  # noqa: A001
        events = session.events if session is not None else self.histories.get(id, (None, ()))[1]
        if session is None and not events:
            if state.lookup.forgotten(state.model, id):
                return Outcome(Status.UNKNOWN, name, "the session was forgotten", forgotten=True)
            events = state.lookup.events(id) if state.parked or state.lapsed else ()
        last = None if session is None else session.last
        settings = state.settings if last is None else state.settings_of(last.settings)
        status, detail, version = judge(last, events, given, self.now, settings)
        if status is Status.PARKED:
            detail = "there is no such session yet"
            if len(events) >= MOST_OF_ONE or not self._may_park():
                return Outcome(Status.UNKNOWN, name, f"{detail}, and too many rewards are already parked")
        if status in _STORED:
            row = EventRow(
                0, state.model, id, REWARD, given.event, version, given.reward, None, self.now, given.observed,
                int(status is not Status.LATE), None,
            )  # fmt: skip
            events = (*events, row)
            self.rows.append(row)
            if session is None:
                self.histories[id] = None, events
            else:
                self.steps.change(session).events = events
        return Outcome(status, name, detail, None if last is None else aggregate(events, settings))

    def end(self, given: End) -> Outcome:
        try:
            name = check_text("session", given.session)
            session = self._known(name)
            if isinstance(session, Outcome):
                return session
            context = self.steps.context(given)
        except BelatedError as error:
            return Outcome(Status.INVALID, str(given.session)[:LONGEST], str(error))
        known, status, detail = session.end, Status.ACCEPTED, ""
        if session.discarded:
            status, detail = Status.CONFLICT, "the session was cancelled"
        elif known is None or (known.version & FULL and (given.terminal or context)):
            # the last step has ended it; this adds the state that it led to
            self.rows.append(self.steps.close(session, int(given.terminal), self.now, context, known))
        else:
            same = bool(known.version % 2) == given.terminal or known.version >= FULL
            how = "as terminal" if known.version % 2 else "by being idle" if known.version & IDLE else "as cut"
            status = Status.DUPLICATE if same else Status.CONFLICT
            detail = f"the session has already ended {how}"
        now = self.steps.find(name)
        assert now is not None
        return Outcome(status, name, detail, session=_sessions.standing(now))

    def discard(self, given: Cancel) -> Outcome:
        """Cancel a whole session."""
        try:
            name = check_text("session", given.session)
            if given.id:
                raise refuse("id", given.id, "left out when a session is cancelled")
        except InvalidInputError as error:
            return Outcome(Status.INVALID, str(given.session)[:LONGEST], str(error))
        session = self._known(name)
        if isinstance(session, Outcome):
            return session
        if session.discarded:
            return Outcome(Status.DUPLICATE, name)
        self.rows.append(self.steps.discard(session, self.now))
        return Outcome(Status.ACCEPTED, name)

    def _known(self, name: str) -> Session | Outcome:
        """Return a session, or the outcome if there is none."""
        state = self.state
        if state.sessions is None:
            return Outcome(Status.INVALID, name, f"{state.model!r} has no sessions: its settings have no horizon")
        session = self.steps.find(name)
        if session is not None:
            return session
        if state.lookup.forgotten(state.model, session_id(state.model, name)):
            return Outcome(Status.UNKNOWN, name, "the session was forgotten", forgotten=True)
        return Outcome(Status.UNKNOWN, name, "there is no such session")

    def close(self, id: str, kind: str) -> Outcome:  # noqa: A002
        """Activate or cancel a decision."""
        try:
            check_text("id", id)
        except InvalidInputError as error:
            return Outcome(Status.INVALID, str(id)[:LONGEST], str(error))
        decision, events = self._history(id)
        if decision is None:
            return self._absent(id)
        if decision.session is not None:
            events = self._of_step(decision, events)
        kinds = {event.kind for event in events}
        if kind in kinds or (kind == ACTIVATE and decision.active):
            return Outcome(Status.DUPLICATE, id)
        if CANCEL in kinds or DISCARD in kinds:
            return Outcome(Status.CONFLICT, id, f"the {'decision' if CANCEL in kinds else 'session'} was cancelled")
        settings = self.state.settings_of(decision.settings)
        window = settings.silence.seconds if decision.session is None else None
        due = self.now + window if kind == ACTIVATE and window is not None else None
        row = EventRow(0, self.state.model, id, kind, "", 0, None, None, self.now, None, 1, due)
        self.rows.append(row)
        self.histories[id] = decision, (*events, row)
        return Outcome(Status.ACCEPTED, id, "", aggregate(events, settings))

    def _history(self, id: str) -> tuple[DecisionRow | None, tuple[EventRow, ...]]:  # noqa: A002
        if id in self.histories:
            return self.histories[id]
        state = self.state
        tracked = state.find(id)
        if tracked is not None:
            return tracked.decision, tracked.events
        early = (state.parked or state.lapsed) and state.lookup.decision(id) is None
        return None, state.lookup.events(id) if early else ()

    def _may_appear(self, id: str) -> bool:  # noqa: A002
        state = self.state
        if state.lookup.decision(id) is not None or state.lookup.forgotten(state.model, id):
            return False
        return state.requests.may_appear(id, self.now)

    def _may_park(self) -> bool:
        """Whether another reward may be parked; lapsed ones do not count."""
        state, more = self.state, len(self.rows)
        return state.parked + more < MOST_PARKED or state.waiting(self.now) + more < MOST_PARKED

    def _absent(self, id: str) -> Outcome:  # noqa: A002
        state = self.state
        if state.lookup.forgotten(state.model, id):
            return Outcome(Status.UNKNOWN, id, "the decision was forgotten", forgotten=True)
        other = " of this model" if state.lookup.decision(id) is not None else ""
        return Outcome(Status.UNKNOWN, id, f"there is no such decision{other}")


def _check_decide(given: Decide, names: tuple[str, ...], now: float) -> float:
    """Return the time of a decision; raise InvalidInputError unless the options of the request are valid."""
    plain = given.id is None and given.chosen is None and given.made is None and given.probability is None
    if plain and given.size.__class__ is int and 1 <= given.size <= len(names) and given.active is True:
        return now  # the usual case
    flag("active", given.active)
    if given.chosen is not None:
        chosen = given.chosen if isinstance(given.chosen, list | tuple) else [given.chosen]
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(names):
            raise refuse("chosen", given.chosen, "one of the actions on offer, or a ranking of several")
    integer("size", given.size, at_least=1, at_most=1 if given.chosen is not None else len(names))
    if given.probability is not None:
        if given.chosen is None:
            raise refuse("probability", given.probability, "left out unless chosen is given")
        real("probability", given.probability, above=0.0, at_most=1.0)
    if given.id is not None:
        check_text("id", given.id)
    return now if given.made is None else real("made", given.made, at_least=0.0, at_most=now)


def _check_reward(given: Reward) -> Reward:
    """Return the reward with built-in Python numbers; raise InvalidInputError unless all values are valid."""
    if given.session is None:
        check_text("id", given.id)
    else:
        check_text("session", given.session)
        if given.id:
            raise refuse("id", given.id, "left out when the reward is for a session")
        if given.slot is not None:
            raise refuse("slot", given.slot, "left out when the reward is for a session")
    if given.event != "":
        check_text("event", given.event)
    elif _is_plain(given):
        return given
    observed, slot = given.observed, given.slot
    value = real("reward", given.reward, at_least=-LARGEST, at_most=LARGEST)
    version = integer("version", given.version, at_least=0, at_most=2**53)
    if flag("correction", given.correction) and version:
        raise refuse("correction", True, "left out when a version is given")
    if observed is not None:
        observed = real("observed", observed, at_least=0.0, at_most=LARGEST)
    if slot is not None:
        slot = integer("slot", slot, at_least=0, at_most=2**31)
    return given._replace(reward=value, version=version, observed=observed, slot=slot)


def _is_plain(given: Reward) -> bool:
    """Whether a reward is a valid float without options."""
    _, value, event, version, correction, observed, slot, _ = given
    plain = event == "" and version.__class__ is int and version == 0 and correction is False
    return plain and observed is None and slot is None and value.__class__ is float and -LARGEST <= value <= LARGEST
