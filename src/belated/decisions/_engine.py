"""A store, a clock and a lock around the core of decisions.

Nothing changes before the rows of a batch are stored, and an answer is given only after that. If the store fails,
nothing has happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import RLock
from typing import NamedTuple

from belated._util.validate import integer
from belated.decisions._core import WINDOWS, State, apply, step
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
from belated.decisions._rows import Row
from belated.decisions._snapshot import differences, restore, take
from belated.decisions._store.base import Store
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
        """Return the state after the whole log, from the latest snapshot that is intact."""
        state = self._new_state()
        for row in self.store.snapshots(self.name):
            try:
                restore(state, row)
                break
            except DamagedFileError as error:
                if row.base:
                    raise
                _log.warning("%s; going back to an earlier one", error)
        for each in self.store.log(self.name, state.seq):
            apply(state, each)
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
        """Apply what other processes have stored, and return how many rows that were."""
        with self.lock:
            before = self.state.rows
            for row in self.store.log(self.name, self.state.seq):
                apply(self.state, row)
            return self.state.rows - before

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

    def verify(self) -> list[str]:
        """Compute the state again from the log and return how it differs from this one: empty if all is well."""
        with self.lock:
            again = self._new_state()
            for base in self.store.snapshots(self.name):
                if base.base:
                    restore(again, base)
            for row in self.store.log(self.name, again.seq, self.state.seq):
                apply(again, row)
            return differences(self.state, again)

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
