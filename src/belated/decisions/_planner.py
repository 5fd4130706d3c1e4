"""Learns sessions from the log of a model, separately from its decisions, and draws sets of plans.

A planner follows the log with its own state, as another process would: what it has learned, and so every set of plans,
is a function of a log prefix. Decisions never wait for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from belated.decisions._core import State, Tracked, apply
from belated.decisions._ledger import Tally
from belated.decisions._plans import StepState, encode_state
from belated.decisions._rows import ACTIVATE, DISCARD, DROP, END, DecisionRow, EventRow, PlanRow, Row, session_of
from belated.decisions._session_learner import SessionLearner
from belated.decisions._sessions import Arrays, Session, find
from belated.decisions._settings import ModelSettings
from belated.decisions._snapshot import restore
from belated.decisions._store.base import DroppedError, Store
from belated.errors import DamagedFileError, InvalidInputError


def _go_on() -> None:
    """The default for `rest`: do nothing."""


class Planner:
    """What was learned about the sessions of a model from a log prefix. Not thread-safe."""

    def __init__(self, name: str, store: Store, new_state: Callable[[], State], *, from_base: bool = False) -> None:
        self.name, self.store, self._new_state, self._from_base = name, store, new_state, from_base
        self._begin()

    def _begin(self) -> None:
        """Start from the latest snapshot with a planner's memory, or from the base snapshot, or from the first row."""
        self.state = self._restored()
        self.learner = SessionLearner(self.state.settings)
        assert self.state.sessions is not None
        if self.state.sessions.memory is not None:
            self.learner.restore(self.state.sessions.memory)
            self.state.sessions.memory = None
        self._moved: list[tuple[DecisionRow, Tally]] = []
        self.state.sessions.moved = self._moved
        self.version = 0
        """Version of the settings of the latest set."""
        self.drawn: int | None = None
        """The position of the latest set, while nothing is new since; otherwise None."""

    def _restored(self) -> State:
        for row in self.store.snapshots(self.name):
            state = self._new_state()
            if row.base:
                restore(state, row)
                return state
            try:
                if not self._from_base and self.store.chain(self.name, row.seq) == row.chain:
                    restore(state, row)
            except DamagedFileError:  # already reported by the engine
                continue
            if state.sessions is not None and state.sessions.memory is not None:
                return state
        return self._new_state()

    def catch_up(self, upto: int, recent: Sequence[Row] = (), rest: Callable[[], None] = _go_on) -> None:
        """Learn the rows of the log up to position `upto`, from `recent` if it has all of them.

        `rest` is called after each row.
        """
        if self.state.seq > upto:
            self._begin()
        needed = [row for row in recent if self.state.seq < row.seq <= upto]
        try:
            self.follow(needed if len(needed) == upto - self.state.seq else self._read(upto), rest)
        except DroppedError:
            self._begin()
            self.follow(self._read(upto), rest)

    def _read(self, upto: int) -> Iterator[Row]:
        return self.store.log(self.name, self.state.seq, upto, chain=self.state.chain)

    def follow(self, rows: Iterable[Row], rest: Callable[[], None] = _go_on) -> None:
        """Learn rows of the log, in order; `rest` is called after each row."""
        for row in rows:
            if isinstance(row, EventRow) and row.kind == DROP:
                raise DroppedError(f"rows of {self.name!r} were dropped")
            apply(self.state, row)
            if isinstance(row, DecisionRow):
                self._take(row)
            elif row.kind in (END, DISCARD, ACTIVATE):
                self._conclude(row)
            for step, found in self._moved:
                self._reward(step, found)
            self._moved.clear()
            rest()

    def _session(self, name: str) -> Session:
        session = find(self.state, name)
        assert session is not None
        return session

    def _state_of(self, row: DecisionRow) -> StepState:
        return self._encoded(row.context, json.loads(row.actions))

    def _encoded(self, context: str, offered: Iterable[str]) -> StepState:
        settings, given = self.state.settings, json.loads(context)
        try:
            return encode_state(settings, given, offered)
        except InvalidInputError:  # a migrated store may have names that are no longer declared
            return encode_state(settings, settings.encoding.declared(given), offered)

    def _take(self, row: DecisionRow) -> None:
        """Learn a step; if it is inactive or beyond the horizon, only as the successor of the step before."""
        assert row.session is not None
        assert row.step is not None
        number = self._session(row.session).number
        self.drawn = None
        if row.active and row.step < (self.state.settings.horizon or 0):
            action = self.state.settings.action_numbers[row.ranking[0]]
            self.learner.step(number, row.step, self._state_of(row), action)
        else:
            self.learner.end(number, terminal=False, state=self._state_of(row))

    def _conclude(self, row: EventRow) -> None:
        """Learn the end of a session, its cancellation, or the activation of a step."""
        name = session_of(row.id)
        tracked = None if name else self.state.find(row.id)
        if tracked is not None and tracked.decision.session is not None:
            name = tracked.decision.session
        session = find(self.state, name)
        if session is None:  # cancelled before its first step
            return
        self.drawn = None
        if row.kind == DISCARD:
            self.learner.cancel(session.number)
        elif row.kind == END:
            if session.last is not None and session.last.active:
                self.learner.end(session.number, terminal=bool(row.version % 2), state=self._last(session))
            for each in self._steps(session):
                if not each.decision.active and any(event.kind == ACTIVATE for event in each.events):
                    self._show(session, each)
        elif tracked is not None and session.end is not None and not tracked.decision.active:
            self._show(session, tracked)

    def _steps(self, session: Session) -> list[Tracked]:
        found = [self.state.find(each) for each in session.ids]
        return [each for each in found if each is not None]

    def _last(self, session: Session) -> StepState | None:
        """Return the state in which a session has ended, if known."""
        end = session.end
        if end is None or not end.event:
            return None
        assert session.last is not None
        offered = self.state.settings_of(session.last.settings).names
        return self._encoded(end.event, offered)

    def _show(self, session: Session, tracked: Tracked) -> None:
        """Learn a step that was activated after the end of its session."""
        row, end = tracked.decision, session.end
        assert row.step is not None
        assert end is not None
        self.learner.step(
            session.number, row.step, self._state_of(row), self.state.settings.action_numbers[row.ranking[0]]
        )
        if row.step + 1 < len(session.ids):
            after = self.state.find(session.ids[row.step + 1])
            assert after is not None
            self.learner.end(session.number, terminal=False, state=self._state_of(after.decision))
        else:
            self.learner.end(session.number, terminal=bool(end.version % 2), state=self._last(session))
        if tracked.tally is not None:
            self._reward(row, tracked.tally)

    def _reward(self, row: DecisionRow, found: Tally) -> None:
        assert row.session is not None
        assert row.step is not None
        self.learner.reward(self._session(row.session).number, row.step, found.learned, found.parts)
        self.drawn = None

    def without(self, sessions: Collection[str]) -> Arrays:
        """Return the memory without some sessions, which cannot be learned again."""
        learner = SessionLearner(self.learner.settings)
        learner.restore(self.learner.memory())
        for name in sessions:
            learner.cancel(self._session(name).number)
        learner.forget_cancelled()
        return learner.memory()

    def draw(self, settings: ModelSettings, version: int, made: float) -> PlanRow:
        """Return a set of plans drawn from everything learned, under a version of the settings."""
        if settings.to_json() != self.learner.settings.to_json():
            learner = SessionLearner(settings)
            learner.restore(self.learner.memory())
            self.learner = learner
        place = self.state.seq
        content = self.learner.draw(place).to_bytes()
        self.drawn, self.version = place, version
        return PlanRow(self.name, place, version, made, content, hashlib.sha256(content).digest())


def different(name: str, store: Store, new_state: Callable[[], State]) -> list[str]:
    """Return which stored sets of plans differ from those recomputed at their positions; empty if none."""
    planner, found = Planner(name, store, new_state, from_base=True), []
    for place in store.plans(name):
        kept = store.plan(name, place)
        if kept is None or place < planner.state.seq:  # rows before the base snapshot are gone
            continue
        planner.catch_up(place)
        again = planner.draw(planner.state.settings_of(kept.settings), kept.settings, kept.made)
        if again != kept:
            found.append(f"the set of plans at position {place} of {name!r} differs from that of the log")
    return found
