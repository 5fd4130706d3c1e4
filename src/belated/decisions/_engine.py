"""A store, a clock and a lock around the core of decisions.

Nothing changes before the rows of a batch are stored, and an answer is given only after that. If the store fails,
nothing has happened. If anything fails after that, the answer is true all the same, and the state is computed again
from the log before anybody sees it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from threading import RLock
from typing import NamedTuple

from belated._util.validate import integer
from belated.decisions._core import WINDOWS, Forgotten, State, apply, moment, repair, step
from belated.decisions._encoding import check_text
from belated.decisions._ids import CheckedClock, Clock, new_id
from belated.decisions._ledger import entry
from belated.decisions._operations import (
    Answer,
    ClockError,
    ConflictError,
    DecisionState,
    Entry,
    ForgottenError,
    Operation,
    Outcome,
    SessionEntry,
    StateError,
    Status,
    StoreError,
)
from belated.decisions._rows import CANCEL, DROP, PLAN, EventRow, PlanRow, Row, SnapshotRow, session_id
from belated.decisions._sessions import Arrays, Members, hold, session_entry
from belated.decisions._sessions import find as find_session
from belated.decisions._snapshot import differences, restore, take
from belated.decisions._store.base import DroppedError, Store
from belated.decisions._store.chain import Head
from belated.errors import BelatedError, DamagedFileError, UnknownNameError

#: Places of the log between two snapshots; places that are searched at a time; how often a batch is prepared again
#: because another process was faster.
SNAPSHOT_EVERY, SEARCHED, ATTEMPTS = 10_000, 10_000, 5
#: A snapshot of a large state is taken more rarely: it may write so many bytes for each place of the log.
SNAPSHOT_BYTES = 500

_log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """Operations whose answers are known and whose rows are not stored yet. Nothing has changed."""

    owner: Engine
    rows: list[Row]
    answers: list[Answer]
    """One for each operation."""


class Engine:
    """The state of a model, kept in step with its log. Safe to call from several threads."""

    def __init__(self, name: str, store: Store, clock: Clock | None, new_state: Callable[[], State]) -> None:
        self.name, self.store, self.lock = name, store, RLock()
        self._clock = clock_of(store) if clock is None else clock
        self._new_state = new_state
        self.whole = True
        """Whether the log, with its snapshots, has all that was learned."""
        self.doubt = ""
        """Why the state must be computed again before it is used; empty if it need not."""
        self.rebuilt = 0
        """How often it was."""
        self._unsure = False  # whether rows may have been stored although the store has failed
        self._state = self._restored()
        self.counts = dict.fromkeys(Status, 0)
        """How many events ended as what, since the process started."""
        self._saved = self.state.seq
        self._passed = (0, 0)  # up to this place nothing is in flight, unless there were more activations

    @property
    def state(self) -> State:
        """The state after the log; computed again from it if an error came between the two."""
        if self.doubt:
            with self.lock:
                if self.doubt:
                    self._rebuild()
        return self._state

    def _rebuild(self) -> None:
        try:
            if not self.whole:
                raise StateError("what was forgotten is not in the log: go on from what was saved before")
            self._state = self._restored()
        except Exception as error:
            raise StateError(f"the state of {self.name!r} must be computed again ({self.doubt}): {error}") from error
        self._saved, self._passed, self._unsure = min(self._saved, self._state.seq), (0, 0), False
        _log.warning("the state of %s was computed again from its log: %s", self.name, self.doubt)
        self.doubt, self.rebuilt = "", self.rebuilt + 1

    def _restored(self) -> State:
        """Return the state after the whole log, from the latest snapshot that is intact and a state of this log."""
        state = self._new_state()
        for row in self.store.snapshots(self.name):
            try:
                if row.seq and self.store.chain(self.name, row.seq) != row.chain:
                    raise DamagedFileError(f"the snapshot at place {row.seq} of {self.name!r} is of another log")
                restore(state, row)
                break
            except DamagedFileError as error:
                if row.base:
                    raise
                _log.warning("%s; going back to an earlier one", error)
                state = self._new_state()
        if state.sessions is not None:
            state.sessions.memory = None  # that is for the planner
        return self._fold(state, self.store.log(self.name, state.seq, chain=state.chain))

    def _fold(self, state: State, rows: Iterable[Row]) -> State:
        for row in rows:
            if isinstance(row, EventRow) and row.kind == DROP:
                raise DamagedFileError(
                    f"the base of {self.name!r} is missing: rows before place {row.seq} were dropped, and what they "
                    "taught was kept in a snapshot that is gone or damaged"
                )
            try:
                apply(state, row)
            except (AssertionError, LookupError, TypeError, ValueError) as error:
                raise DamagedFileError(
                    f"the row at place {row.seq} of {self.name!r} does not fit those before it ({error}): "
                    "`belated decisions verify` says what is damaged"
                ) from error
        return state

    def now(self) -> float:
        """Return the time: that of the clock, or of the log if the clock is behind it or cannot be right."""
        try:
            return max(self._clock(), self.state.latest)
        except ClockError:
            return self.state.latest

    def prepare(self, operations: Sequence[Operation], windows: int = WINDOWS) -> Batch:
        """Return the answers to `operations`, and the rows to store before giving them; end about `windows` windows."""
        if self.store.shared or self._unsure:
            self.catch_up()
        return Batch(self, *step(self.state, operations, self._clock(), new_id, windows))

    def finish(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Apply the rows of a batch, now that they are stored; no error makes them unstored, so none is raised."""
        for answer in answers:
            if isinstance(answer, Outcome):
                self.counts[answer.status] += 1
        try:
            if self.store.shared:
                self.catch_up()
            else:
                self._learn(rows)
            new = self._state.seq - self._saved
            if new >= SNAPSHOT_EVERY and new >= self._state.size // SNAPSHOT_BYTES:
                self._saved = self._state.seq  # even if it fails: the log is safe, and a restart only takes longer
                self.snapshot()
        except Exception:
            _log.exception("%s has stored what it could not learn at once, or no snapshot of it", self.name)

    def _learn(self, rows: Iterable[Row]) -> None:
        """Apply rows of the log; a state that was left halfway, by whatever error, is not used again."""
        state = self.state
        for row in rows:
            try:
                apply(state, row)
            except BaseException as error:
                self.doubt = f"{type(error).__name__}: {error}"
                raise

    def _undropped(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows of the log; raise DroppedError where rows were dropped: what they taught is in the base alone."""
        for row in rows:
            if isinstance(row, EventRow) and row.kind == DROP:
                raise DroppedError(f"rows of {self.name!r} were dropped")
            yield row

    def catch_up(self) -> int:
        """Apply what other processes have stored, and return how many rows that were.

        Raises `StoreError` if the log is no longer the one that was learned from.
        """
        with self.lock:
            state, before = self.state, self.state.rows
            try:
                self._learn(self._undropped(self.store.log(self.name, state.seq, chain=state.chain)))
            except DroppedError:  # what they taught is as another process has left it
                self._go_on_with(self._restored())
            self._unsure = False
            return self.state.rows - before

    def _go_on_with(self, state: State) -> None:
        """Take another state of the same log, and go on counting."""
        for name in ("rows", "activations", "ended"):
            setattr(state, name, getattr(state, name) + getattr(self.state, name))
        state.rewarded = max(state.rewarded, self.state.rewarded)
        self._state, self._saved, self._passed = state, state.seq, (0, -1)

    def answer(
        self, operations: Sequence[Operation], *, all_or_none: bool = False, windows: int = WINDOWS
    ) -> list[Answer]:
        """Do `operations` in one commit; with `all_or_none` raise the first error of a decision, and do nothing."""
        with self.lock:
            attempt = 1
            while True:
                batch = self.prepare(operations, windows)
                if all_or_none:
                    for answer in batch.answers:
                        if isinstance(answer, BelatedError):
                            raise answer
                try:
                    commit(self.store, [batch])
                    return batch.answers
                except ConflictError:  # another process was faster with the same key or event: see what it says
                    if not self.store.shared or attempt == ATTEMPTS:
                        raise
                    attempt += 1

    def repair_clock(self) -> int:
        """Set the log's time back to that of the clock, after a clock was ahead; return how many rows that takes.

        What was stamped later than now counts as made now, and windows that end later than now are open again.
        """
        with self.lock:
            if self.store.shared:
                self.catch_up()
            rows = repair(self.state, self._clock())
            commit(self.store, [Batch(self, rows, [])])
            return len(rows)

    def tick(self, limit: int = WINDOWS) -> int:
        """End the windows that are due, at most about `limit`, and return how many did; end idle sessions, too.

        Call it when traffic stops.
        """
        integer("limit", limit, at_least=1)
        with self.lock:
            if self.store.shared:
                self.catch_up()
            state, now = self.state, moment(self.state, self._clock())
            before, due = state.ended, state.next_end()
            if due is not None and due <= now:
                self.answer([], windows=limit)
            return max(0, self.state.ended - before)

    def snapshot(self) -> int:
        """Store the state, so that a restart need not read the whole log; return the place in the log."""
        with self.lock:
            self.store.save_snapshot(take(self.state, self.now()))
            self._saved = self.state.seq
            return self._saved

    def memory(self, dropped: Collection[str]) -> Arrays | None:
        """Return what was learned beside the state, without the sessions in `dropped`; None if nothing is."""
        return None

    def drop(self, ids: Sequence[str], *, keep_learned: bool, before: float | None = None) -> None:
        """Drop decisions with their events; what they taught stays, or is taken back exactly.

        Nothing changes unless the store has done so: another state is made, which then takes the place of this one. Of
        a session all steps must be dropped.
        """
        with self.lock:
            for attempt in range(1, ATTEMPTS + 1):
                if self.store.shared:
                    self.catch_up()
                state, now = self.state, self.now()
                after = self._new_state()
                restore(after, take(state, now))
                row = EventRow(0, self.name, "", DROP, "", 0, None, None, now, None, 1, None)
                gone, sessions = [], dict[str, None]()
                for name in ids:
                    tracked = after.find(name)
                    if tracked is None:
                        continue
                    if not keep_learned:  # as if it had been cancelled
                        apply(after, dataclasses.replace(row, seq=after.seq, id=name, kind=CANCEL))
                    assert tracked.tally is not None
                    gone.append((name, tracked.tally.state))
                    if tracked.decision.session is not None:
                        sessions[tracked.decision.session] = None
                apply(after, Forgotten(gone))
                memory = self.memory(() if keep_learned else sessions)

                def base(
                    after: State = after, row: EventRow = row, now: float = now, memory: Arrays | None = memory
                ) -> SnapshotRow:
                    after.seq, after.chain, after.latest = row.seq, row.chain, max(after.latest, row.received)
                    return take(after, now, memory)._replace(base=1)

                names = [name for name, _ in gone] + [session_id(self.name, name) for name in sessions]
                try:
                    self.store.drop(names, row, Head(state.seq, state.chain), base, before)
                except ConflictError:  # another process has written meanwhile
                    if attempt == ATTEMPTS:
                        raise
                    continue
                after.look_ahead()
                self._go_on_with(after)
                return

    def verify(self) -> list[str]:
        """Return what is wrong: empty if the database is whole, every row is as written, and the state is the log's.

        The state is computed again from the beginning of the log, or from its base, and compared with this one and with
        the snapshots on the way.
        """
        with self.lock:
            return self.store.check(self.name) or self.recompute()

    def recompute(self) -> list[str]:
        """Compute the state again from the log and return how it differs from this one: empty if it does not."""
        found: list[str] = []
        with self.lock:
            again = self._new_state()
            snapshots = sorted(self.store.snapshots(self.name), key=lambda row: row.seq)
            bases = [row for row in snapshots if row.base]
            try:
                if bases:
                    restore(again, bases[-1])
                for row in snapshots:
                    if again.seq < row.seq <= self.state.seq:
                        self._fold(again, self.store.log(self.name, again.seq, row.seq, chain=again.chain))
                        found += [f"snapshot at place {row.seq}: {each}" for each in self._unlike(row, again)]
                self._fold(again, self.store.log(self.name, again.seq, self.state.seq, chain=again.chain))
            except (DamagedFileError, StoreError) as error:
                return [*found, str(error)]
            return found + differences(self.state, again)

    def _unlike(self, row: SnapshotRow, state: State) -> list[str]:
        """Return in what a snapshot differs from the state at its place."""
        kept = self._new_state()
        try:
            restore(kept, row)
        except DamagedFileError as error:
            return [str(error)]
        return differences(kept, state)

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return all that is known of a decision; an error says whether it was forgotten or never existed."""
        with self.lock:
            if self.store.shared or self._unsure:  # what was acknowledged may not be applied yet
                self.catch_up()
            tracked = self.state.find(check_text("id", id))
            if tracked is None:
                raise self.absent(id)
            assert tracked.tally is not None
            return entry(tracked.decision, tracked.events, tracked.tally)

    def lookup_session(self, session: str) -> SessionEntry:
        """Return all that is known of a session; an error says whether it was forgotten or never existed."""
        with self.lock:
            if self.store.shared or self._unsure:
                self.catch_up()
            state = self.state
            found = None if state.sessions is None else find_session(state, check_text("session", session))
            if found is None:
                if self.store.forgotten(self.name, session_id(self.name, session)):
                    raise ForgottenError(f"session must be one that is kept, got {session!r}, which was forgotten")
                raise UnknownNameError(
                    f"session must be the name of a session of {self.name!r}, got {session!r}, which never was"
                )
            steps = []
            for tracked in state.find_all(session_id(self.name, session)):
                assert tracked.tally is not None
                steps.append(entry(tracked.decision, tracked.events, tracked.tally))
            return session_entry(found, tuple(steps))

    def publish(self, plan: PlanRow, ended: int, members: Members | None = None) -> bool:
        """Let sessions that open from now on draw from a set of plans; False if another process has published it.

        `ended` is how many sessions had ended in the rows that it was made from; `members` is the set as it was read
        from its row, if it was, so that nobody has to wait until it is.
        """
        with self.lock:
            if self.store.shared or self._unsure:
                self.catch_up()
            sessions, now = self.state.sessions, self.now()
            assert sessions is not None
            row = EventRow(
                0, self.name, "", PLAN, plan.digest.hex(), plan.place, None, ended, now, None, 1, None
            )  # fmt: skip
            try:
                self.store.publish(plan, row, sessions.used())
            except ConflictError:
                return False
            except BaseException:  # it may have come after the row was stored
                self._unsure = True
                raise
            self.finish([row], [])
            if members is not None and self.state.sessions is not None:
                hold(self.state.sessions, plan.place, members)
            return True

    def oldest_id(self) -> str | None:
        """Return the id of the oldest decision in flight; a long log is searched in parts, so others need not wait."""
        while True:
            with self.lock:
                state = self.state
                if self._passed[1] != state.activations:  # an older one may be in flight now
                    self._passed = (0, state.activations)
                first = self._passed[0]
                last = min(first + SEARCHED, state.seq)
                found = self.store.silent(self.name, first, last, state.over)
                if found is not None:
                    tracked = state.find(found[1])
                    if tracked is None or tracked.tally is None or tracked.tally.state is DecisionState.IN_FLIGHT:
                        self._passed = (found[0] - 1, state.activations)
                        return found[1]
                    last = found[0]  # a reward of its session counts there
                self._passed = (last, state.activations)
                if last == state.seq:
                    return None

    def absent(self, id: str) -> UnknownNameError:  # noqa: A002
        """Return the error for an unknown id: forgotten, or never made."""
        if self.store.forgotten(self.name, id):
            return ForgottenError(f"id must be of a decision that is kept, got {id!r}, which was forgotten")
        return UnknownNameError(f"id must be of a decision that was made, got {id!r}, which never was")


def clock_of(store: Store) -> CheckedClock:
    """Return the clock that a store goes by: the database's if other machines may write to it, or this machine's."""
    return CheckedClock(store.time, far=store.shared)


def commit(store: Store, batches: Sequence[Batch]) -> None:
    """Store the rows of all `batches` in one commit, and then let each model learn its own."""
    rows = batches[0].rows if len(batches) == 1 else [row for batch in batches for row in batch.rows]
    try:
        if rows:
            store.append(rows)
        for batch in batches:
            batch.owner.finish(batch.rows, batch.answers)
    except ConflictError:
        raise
    except BaseException:  # it may have come after the rows were stored
        for batch in batches:
            batch.owner._unsure = True
        raise
