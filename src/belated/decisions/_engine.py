"""A store, a clock and a lock around the core of decisions.

The rows of a batch are stored before the state changes, and the caller is answered only after that. If the store fails,
nothing has changed. If something fails after the commit, the answer still holds, and the state is rebuilt from the log
before it is used again.
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

#: Log positions between two snapshots; log positions searched at a time; how often a batch is retried after a
#: conflicting write by another process.
SNAPSHOT_EVERY, SEARCHED, ATTEMPTS = 10_000, 10_000, 5
#: Large states are snapshotted less often: at most this many bytes are written per row of the log.
SNAPSHOT_BYTES = 500

_log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """Operations with their answers and the rows that are to be stored; the state has not changed yet."""

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
        """Whether the log and its snapshots contain everything that was learned."""
        self.doubt = ""
        """Why the state must be rebuilt before it is used; empty if it is up to date."""
        self.rebuilt = 0
        """How often the state has been rebuilt."""
        self._unsure = False  # whether rows may have been stored although the store reported an error
        self._state = self._restored()
        self.counts = dict.fromkeys(Status, 0)
        """Number of events by status, since the process started."""
        self._saved = self.state.seq
        self._passed = (0, 0)  # a position before which nothing is in flight, unless there were more activations

    @property
    def state(self) -> State:
        """The state after the whole log; rebuilt first if an error has left it in doubt."""
        if self.doubt:
            with self.lock:
                if self.doubt:
                    self._rebuild()
        return self._state

    def _rebuild(self) -> None:
        try:
            if not self.whole:
                raise StateError("forgotten rows are not in the log: restore the model from a saved one")
            self._state = self._restored()
        except Exception as error:
            raise StateError(f"the state of {self.name!r} must be rebuilt ({self.doubt}): {error}") from error
        self._saved, self._passed, self._unsure = min(self._saved, self._state.seq), (0, 0), False
        _log.warning("rebuilt the state of %s from its log: %s", self.name, self.doubt)
        self.doubt, self.rebuilt = "", self.rebuilt + 1

    def _restored(self) -> State:
        """Return the state after the whole log, starting from the latest intact snapshot that belongs to this log."""
        state = self._new_state()
        for row in self.store.snapshots(self.name):
            try:
                if row.seq and self.store.chain(self.name, row.seq) != row.chain:
                    raise DamagedFileError(f"the snapshot of {self.name!r} at position {row.seq} is from another log")
                restore(state, row)
                break
            except DamagedFileError as error:
                if row.base:
                    raise
                _log.warning("%s; trying an earlier snapshot", error)
                state = self._new_state()
        if state.sessions is not None:
            state.sessions.memory = None  # only the planner needs it
        return self._fold(state, self.store.log(self.name, state.seq, chain=state.chain))

    def _fold(self, state: State, rows: Iterable[Row]) -> State:
        for row in rows:
            if isinstance(row, EventRow) and row.kind == DROP:
                raise DamagedFileError(
                    f"the base snapshot of {self.name!r} is missing or damaged, and rows before position {row.seq} "
                    "were dropped: only that snapshot has what was learned from them"
                )
            try:
                apply(state, row)
            except (AssertionError, LookupError, TypeError, ValueError) as error:
                raise DamagedFileError(
                    f"the row at position {row.seq} of {self.name!r} contradicts earlier rows ({error}): "
                    "`belated decisions verify` shows what is damaged"
                ) from error
        return state

    def now(self) -> float:
        """Return the clock's time, or the log's latest time if the clock is behind it or implausible."""
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
        """Apply the stored rows of a batch. Never raises: the rows are durable whatever fails here."""
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
                self._saved = self._state.seq  # even if the snapshot fails: a restart then only takes longer
                self.snapshot()
        except Exception:
            _log.exception("%s: rows are stored, but applying them or taking a snapshot failed", self.name)

    def _learn(self, rows: Iterable[Row]) -> None:
        """Apply rows of the log; after any error the half-updated state is marked for rebuilding."""
        state = self.state
        for row in rows:
            try:
                apply(state, row)
            except BaseException as error:
                self.doubt = f"{type(error).__name__}: {error}"
                raise

    def _undropped(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows of the log; raise DroppedError at dropped rows, whose effect is in the base snapshot only."""
        for row in rows:
            if isinstance(row, EventRow) and row.kind == DROP:
                raise DroppedError(f"rows of {self.name!r} were dropped")
            yield row

    def catch_up(self) -> int:
        """Apply the rows that other processes have stored, and return their number.

        Raises `StoreError` if the log is no longer the one that this state was computed from.
        """
        with self.lock:
            state, before = self.state, self.state.rows
            try:
                self._learn(self._undropped(self.store.log(self.name, state.seq, chain=state.chain)))
            except DroppedError:  # take over the state that the other process has left
                self._go_on_with(self._restored())
            self._unsure = False
            return self.state.rows - before

    def _go_on_with(self, state: State) -> None:
        """Replace the state by another one of the same log, and keep the counters."""
        for name in ("rows", "activations", "ended"):
            setattr(state, name, getattr(state, name) + getattr(self.state, name))
        state.rewarded = max(state.rewarded, self.state.rewarded)
        self._state, self._saved, self._passed = state, state.seq, (0, -1)

    def answer(
        self, operations: Sequence[Operation], *, all_or_none: bool = False, windows: int = WINDOWS
    ) -> list[Answer]:
        """Run `operations` in one commit; with `all_or_none`, raise the first error of a decision and store nothing."""
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
                except ConflictError:  # another process has stored the same key or event first: catch up and retry
                    if not self.store.shared or attempt == ATTEMPTS:
                        raise
                    attempt += 1

    def repair_clock(self) -> int:
        """Set the log's time back to the clock's, after a clock that was ahead; return the number of rows appended.

        Rows stamped later than now count as made now, and windows that end later than now are reopened.
        """
        with self.lock:
            if self.store.shared:
                self.catch_up()
            rows = repair(self.state, self._clock())
            commit(self.store, [Batch(self, rows, [])])
            return len(rows)

    def tick(self, limit: int = WINDOWS) -> int:
        """Close due windows (about `limit` at most) and idle sessions; return the number of windows closed.

        Needed only while there is no other traffic, which does the same.
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
        """Store a snapshot, so that a restart need not replay the whole log; return its position."""
        with self.lock:
            self.store.save_snapshot(take(self.state, self.now()))
            self._saved = self.state.seq
            return self._saved

    def memory(self, dropped: Collection[str]) -> Arrays | None:
        """Return what the planner has learned, without the sessions in `dropped`; None without a planner."""
        return None

    def drop(self, ids: Sequence[str], *, keep_learned: bool, before: float | None = None) -> None:
        """Drop decisions with their events; what was learned from them stays, or is removed exactly.

        The new state is computed beside the current one and replaces it only after the store has dropped the rows. The
        steps of a session must be dropped together.
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
                except ConflictError:  # another process has written in the meantime
                    if attempt == ATTEMPTS:
                        raise
                    continue
                after.look_ahead()
                self._go_on_with(after)
                return

    def verify(self) -> list[str]:
        """Return a list of problems: empty if the database and all rows are intact, and the state matches the log.

        The state is recomputed from the beginning of the log, or from its base snapshot, and compared with the live
        state and with every snapshot on the way.
        """
        with self.lock:
            return self.store.check(self.name) or self.recompute()

    def recompute(self) -> list[str]:
        """Recompute the state from the log and return how the live state differs from it; empty if it does not."""
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
                        found += [f"snapshot at position {row.seq}: {each}" for each in self._unlike(row, again)]
                self._fold(again, self.store.log(self.name, again.seq, self.state.seq, chain=again.chain))
            except (DamagedFileError, StoreError) as error:
                return [*found, str(error)]
            return found + differences(self.state, again)

    def _unlike(self, row: SnapshotRow, state: State) -> list[str]:
        """Return how a snapshot differs from the state at its position."""
        kept = self._new_state()
        try:
            restore(kept, row)
        except DamagedFileError as error:
            return [str(error)]
        return differences(kept, state)

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return everything known about a decision; the error says whether it was forgotten or never existed."""
        with self.lock:
            if self.store.shared or self._unsure:  # acknowledged rows may not have been applied yet
                self.catch_up()
            tracked = self.state.find(check_text("id", id))
            if tracked is None:
                raise self.absent(id)
            assert tracked.tally is not None
            return entry(tracked.decision, tracked.events, tracked.tally)

    def lookup_session(self, session: str) -> SessionEntry:
        """Return everything known about a session; the error says whether it was forgotten or never existed."""
        with self.lock:
            if self.store.shared or self._unsure:
                self.catch_up()
            state = self.state
            found = None if state.sessions is None else find_session(state, check_text("session", session))
            if found is None:
                if self.store.forgotten(self.name, session_id(self.name, session)):
                    raise ForgottenError(f"session must still be stored, got {session!r}, which was forgotten")
                raise UnknownNameError(
                    f"session must be the name of a session of {self.name!r}, got {session!r}, which never existed"
                )
            steps = []
            for tracked in state.find_all(session_id(self.name, session)):
                assert tracked.tally is not None
                steps.append(entry(tracked.decision, tracked.events, tracked.tally))
            return session_entry(found, tuple(steps))

    def publish(self, plan: PlanRow, ended: int, members: Members | None = None) -> bool:
        """Publish a set of plans, from which new sessions draw; return False if another process has published it.

        `ended` is the number of sessions that had ended in the rows that the set was made from. `members` is the set as
        decoded from its row; if given, the next session need not decode it.
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
            except BaseException:  # the row may have been stored before the error
                self._unsure = True
                raise
            self.finish([row], [])
            if members is not None and self.state.sessions is not None:
                hold(self.state.sessions, plan.place, members)
            return True

    def oldest_id(self) -> str | None:
        """Return the id of the oldest decision in flight; a long log is searched in parts, releasing the lock."""
        while True:
            with self.lock:
                state = self.state
                if self._passed[1] != state.activations:  # an older decision may be in flight now
                    self._passed = (0, state.activations)
                first = self._passed[0]
                last = min(first + SEARCHED, state.seq)
                found = self.store.silent(self.name, first, last, state.over)
                if found is not None:
                    tracked = state.find(found[1])
                    if tracked is None or tracked.tally is None or tracked.tally.state is DecisionState.IN_FLIGHT:
                        self._passed = (found[0] - 1, state.activations)
                        return found[1]
                    last = found[0]  # rewards of its session count at the last step
                self._passed = (last, state.activations)
                if last == state.seq:
                    return None

    def absent(self, id: str) -> UnknownNameError:  # noqa: A002
        """Return the error for an unknown id: forgotten, or never made."""
        if self.store.forgotten(self.name, id):
            return ForgottenError(f"id must be that of a stored decision, got {id!r}, which was forgotten")
        return UnknownNameError(f"id must be that of a decision, got {id!r}, which never existed")


def clock_of(store: Store) -> CheckedClock:
    """Return the clock for a store: the database's if other machines may write to it, otherwise this machine's."""
    return CheckedClock(store.time, far=store.shared)


def commit(store: Store, batches: Sequence[Batch]) -> None:
    """Store the rows of all `batches` in one commit, then apply them to their models."""
    rows = batches[0].rows if len(batches) == 1 else [row for batch in batches for row in batch.rows]
    try:
        if rows:
            store.append(rows)
        for batch in batches:
            batch.owner.finish(batch.rows, batch.answers)
    except ConflictError:
        raise
    except BaseException:  # the rows may have been stored before the error
        for batch in batches:
            batch.owner._unsure = True
        raise
