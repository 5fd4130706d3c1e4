"""A store, a clock and a lock around the core of decisions.

Nothing changes before the rows of a batch are stored, and an answer is given only after that. If the store fails,
nothing has happened.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import NamedTuple

from belated._util.validate import integer
from belated.decisions._core import WINDOWS, Forgotten, State, apply, step
from belated.decisions._encoding import check_text
from belated.decisions._ids import Clock, new_id
from belated.decisions._ledger import entry
from belated.decisions._operations import (
    Answer,
    ConflictError,
    Entry,
    ForgottenError,
    Operation,
    Outcome,
    Status,
    StoreError,
)
from belated.decisions._rows import CANCEL, DROP, EventRow, Row, SnapshotRow
from belated.decisions._snapshot import differences, restore, take
from belated.decisions._store.base import DroppedError, Store
from belated.errors import BelatedError, DamagedFileError, UnknownNameError

#: Places of the log between two snapshots; places that are searched at a time; how often a batch is prepared again
#: because another process was faster.
SNAPSHOT_EVERY, SEARCHED, ATTEMPTS = 10_000, 10_000, 5

_log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """Operations whose answers are known and whose rows are not stored yet. Nothing has changed."""

    owner: Engine
    rows: list[Row]
    answers: list[Answer]
    """One for each operation."""


class Engine:
    """The state of a model, kept in step with its log. Safe to call from several threads."""

    def __init__(self, name: str, store: Store, clock: Clock, new_state: Callable[[], State]) -> None:
        self.name, self.store, self.lock = name, store, RLock()
        self._clock, self._new_state = clock, new_state
        self.state = self._restored()
        self.counts = dict.fromkeys(Status, 0)
        """How many events ended as what, since the process started."""
        self._saved = self.state.seq
        self._passed = (0, 0)  # up to this place nothing is in flight, unless there were more activations

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
        return self._fold(state, self.store.log(self.name, state.seq, chain=state.chain))

    def _fold(self, state: State, rows: Iterable[Row]) -> State:
        """Bring rows of the log into a state."""
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
        """Return the time: that of the clock, or of the log if the clock is behind it."""
        return max(self._clock(), self.state.latest)

    def prepare(self, operations: Sequence[Operation]) -> Batch:
        """Return the answers to `operations`, and the rows to store before giving them."""
        return Batch(self, *self._step(operations, WINDOWS))

    def _step(self, operations: Sequence[Operation], windows: int) -> tuple[list[Row], list[Answer]]:
        if self.store.shared:
            self.catch_up()
        return step(self.state, operations, self._clock(), new_id, windows)

    def finish(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Apply the rows of a batch, now that they are stored."""
        state = self.state
        if self.store.shared:
            self.catch_up()
        else:
            for row in rows:
                apply(state, row)
        for answer in answers:
            if isinstance(answer, Outcome):
                self.counts[answer.status] += 1
        if state.seq - self._saved >= SNAPSHOT_EVERY:
            try:
                self.snapshot()
            except StoreError as error:  # the log is safe all the same; a restart takes longer
                self._saved = self.state.seq
                _log.warning("no snapshot of %s could be stored: %s", self.name, error)

    def catch_up(self) -> int:
        """Apply what other processes have stored, and return how many rows that were.

        Raises `StoreError` if the log is no longer the one that was learned from.
        """
        with self.lock:
            state, before = self.state, self.state.rows
            try:
                for row in self.store.log(self.name, state.seq, chain=state.chain):
                    if isinstance(row, EventRow) and row.kind == DROP:
                        raise DroppedError(f"rows of {self.name!r} were dropped")
                    apply(state, row)
            except DroppedError:  # what they taught is as another process has left it
                self._go_on_with(self._restored())
            return self.state.rows - before

    def _go_on_with(self, state: State) -> None:
        """Take another state of the same log, and go on counting."""
        for name in ("rows", "activations", "ended"):
            setattr(state, name, getattr(state, name) + getattr(self.state, name))
        state.rewarded = max(state.rewarded, self.state.rewarded)
        self.state, self._saved, self._passed = state, state.seq, (0, -1)

    def answer(
        self, operations: Sequence[Operation], *, all_or_none: bool = False, windows: int = WINDOWS
    ) -> list[Answer]:
        """Do `operations` in one commit; with `all_or_none` raise the first error of a decision, and do nothing."""
        with self.lock:
            attempt = 1
            while True:
                rows, answers = self._step(operations, windows)
                if all_or_none:
                    for answer in answers:
                        if isinstance(answer, BelatedError):
                            raise answer
                try:
                    if rows:
                        self.store.append(rows)
                    self.finish(rows, answers)
                    return answers
                except ConflictError:  # another process was faster with the same key or event: see what it says
                    if not self.store.shared or attempt == ATTEMPTS:
                        raise
                    attempt += 1

    def tick(self, limit: int = WINDOWS) -> int:
        """End the windows that are due, at most about `limit`, and return how many did. Call it when traffic stops."""
        integer("limit", limit, at_least=1)
        with self.lock:
            if self.store.shared:
                self.catch_up()
            before, due = self.state.ended, self.state.next_due
            if due is not None and due <= self.now():
                self.answer([], windows=limit)
            return self.state.ended - before

    def snapshot(self) -> int:
        """Store the state, so that a restart need not read the whole log; return the place in the log."""
        with self.lock:
            self.store.save_snapshot(take(self.state, self._clock()))
            self._saved = self.state.seq
            return self._saved

    def drop(self, ids: Sequence[str], *, keep_learned: bool, before: float | None = None) -> None:
        """Drop decisions with their events; what they taught stays, or is taken back exactly.

        Nothing changes unless the store has done so: another state is made, which then takes the place of this one.
        """
        with self.lock:
            for attempt in range(1, ATTEMPTS + 1):
                if self.store.shared:
                    self.catch_up()
                state, now = self.state, self.now()
                after = self._new_state()
                restore(after, take(state, now))
                row = EventRow(0, self.name, "", DROP, "", 0, None, None, now, None, 1, None)
                gone = []
                for name in ids:
                    tracked = after.find(name)
                    if tracked is None:
                        continue
                    if not keep_learned:  # as if it had been cancelled
                        apply(after, dataclasses.replace(row, seq=after.seq, id=name, kind=CANCEL))
                    assert tracked.tally is not None
                    gone.append((name, tracked.tally.state))
                apply(after, Forgotten(gone))

                def base(after: State = after, row: EventRow = row, now: float = now) -> SnapshotRow:
                    after.seq, after.chain, after.latest = row.seq, row.chain, max(after.latest, row.received)
                    return take(after, now)._replace(base=1)

                try:
                    self.store.drop(
                        self.name, [name for name, _ in gone], row, (state.seq, state.chain), base, before
                    )  # fmt: skip
                except ConflictError:  # another process has written meanwhile
                    if attempt == ATTEMPTS:
                        raise
                    continue
                after.next_due = self.store.next_due(self.name, after.over)
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
            if self.store.shared:  # another process may have acknowledged what this one has not applied yet
                self.catch_up()
            tracked = self.state.find(check_text("id", id))
            if tracked is None:
                raise self.absent(id)
            assert tracked.tally is not None
            return entry(tracked.decision, tracked.events, tracked.tally)

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
                self._passed = (last if found is None else found[0] - 1, state.activations)
                if found is not None:
                    return found[1]
                if last == state.seq:
                    return None

    def absent(self, id: str) -> UnknownNameError:  # noqa: A002
        """Return the error for an unknown id: forgotten, or never made."""
        if self.store.forgotten(self.name, id):
            return ForgottenError(f"id must be of a decision that is kept, got {id!r}, which was forgotten")
        return UnknownNameError(f"id must be of a decision that was made, got {id!r}, which never was")


def commit(store: Store, batches: Sequence[Batch]) -> None:
    """Store the rows of all `batches` in one commit, and then let each model learn its own."""
    rows = batches[0].rows if len(batches) == 1 else [row for batch in batches for row in batch.rows]
    if rows:
        store.append(rows)
    for batch in batches:
        batch.owner.finish(batch.rows, batch.answers)
