"""The protocol of stores: append batches of rows atomically and in order, and look them up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from belated.decisions._core import Lookup
from belated.decisions._operations import ConflictError
from belated.decisions._rows import EventRow, PlanRow, Row, SettingsRow, SnapshotRow
from belated.decisions._store.chain import Head


class DroppedError(ConflictError):
    """Another process has dropped rows that a state was computed from: the state must be reloaded."""


class Store(Lookup, Protocol):
    """A log of decisions and events, for any number of models. Thread-safe."""

    def append(self, rows: Sequence[Row]) -> None:
        """Append `rows` atomically and set their positions in the log; once this returns they are durable.

        Raises `ConflictError` if an id, or an event with its version, is already stored; `StoreError` if the rows
        cannot be stored, or if the log is not the one that this process has read or written before.
        """

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
        """Return position and id of the first decision in flight with a position in (after, upto].

        In flight means active, without a reward or cancellation, and with no window that ended by `over`.
        """

    def log(self, model: str, after: int = 0, upto: int | None = None, *, chain: bytes | None = None) -> Iterator[Row]:
        """Yield the model's rows with positions in (after, upto], in order, each checked against its digest.

        Raises `DamagedFileError` if a row was altered or is missing. `chain` is the expected digest of the row at
        `after`; raises `StoreError` if the log has another one there.
        """

    def chain(self, model: str, place: int) -> bytes | None:
        """Return the digest of the row at a position; None if there is none."""

    def last(self, model: str) -> int:
        """Return the position of the model's last row; 0 if it has none."""

    def add_settings(self, row: SettingsRow) -> None: ...

    def models(self) -> list[str]: ...

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        """Store a snapshot, and keep the model's last `keep - 1` others and the base.

        Raises `StoreError` if the log does not have its digest at its position.
        """

    def publish(self, plan: PlanRow, row: EventRow, keep: Collection[int]) -> None:
        """Append `row`, a plan, and store the set in the same commit; keep the other sets at positions in `keep`.

        Raises `ConflictError` if there already is a set at this position.
        """

    def plans(self, model: str) -> list[int]:
        """Return the positions of the model's stored sets of plans, in order."""

    def snapshots(self, model: str) -> list[SnapshotRow]:
        """Return the model's snapshots, latest first."""

    def drop(
        self, ids: Sequence[str], row: EventRow, after: Head, base: Callable[[], SnapshotRow], before: float | None
    ) -> None:
        """Append `row`, a drop, and in the same commit drop decisions with their events.

        Raises `ConflictError` unless the log ends at `after`. `base` is called once the position and the digest of
        `row` are set; its result replaces all snapshots. With `before`, all ids made before that time and the sessions
        of `ids` are remembered as forgotten; otherwise those of `ids`.
        """

    def check(self, model: str) -> list[str]:
        """Read everything stored for a model and return a list of damages; empty if there are none."""

    def purged(self, model: str) -> float:
        """Return the time up to which decisions were purged; 0 if never."""

    def alone(self, what: str) -> AbstractContextManager[bool]:
        """Try to take a lock named `what` across processes, for a with block; yields whether it was free."""

    def time(self) -> float:
        """Return the time in seconds since 1970, by the clock shared by all writers of this store."""

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each part of the store, by name."""

    def close(self) -> None: ...
