"""What a store must do: keep rows in order, all of a batch or none of it, and find them again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from belated.decisions._core import Lookup
from belated.decisions._operations import ConflictError
from belated.decisions._rows import EventRow, PlanRow, Row, SettingsRow, SnapshotRow
from belated.decisions._store.chain import Head


class DroppedError(ConflictError):
    """Rows that a state was made from have been dropped by another process: it must be read again."""


class Store(Lookup, Protocol):
    """A log of decisions and events, for any number of models. Safe to call from several threads."""

    def append(self, rows: Sequence[Row]) -> None:
        """Keep `rows`, all or none, and set their places in the log; when this returns they are safe.

        Raises `ConflictError` if an id, or an event with its version, is already there; `StoreError` if the rows
        cannot be kept, or if the log is not the one that this process has read or written before.
        """

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
        """Return place and id of the first decision with a place in (after, upto] that is in flight.

        That is: it is active, has neither a reward nor a cancellation, and no window that ended by `over`.
        """

    def log(self, model: str, after: int = 0, upto: int | None = None, *, chain: bytes | None = None) -> Iterator[Row]:
        """Yield the model's rows with places in (after, upto], in order, each checked against its digest.

        Raises `DamagedFileError` if a row is not what was written, or is missing; with `chain`, the digest of the row
        at `after` as it is known, `StoreError` if the log has another one there.
        """

    def chain(self, model: str, place: int) -> bytes | None:
        """Return the digest of the row at a place; None if there is none."""

    def last(self, model: str) -> int:
        """Return the place of the model's last row, 0 if it has none."""

    def add_settings(self, row: SettingsRow) -> None: ...

    def models(self) -> list[str]: ...

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        """Keep a snapshot, and of the model's others the last `keep - 1` and the base.

        Raises `StoreError` if the log does not have its digest at its place.
        """

    def publish(self, plan: PlanRow, row: EventRow, keep: Collection[int]) -> None:
        """Append `row`, a plan, and in the same commit keep the set; of the model's others those at places in `keep`.

        Raises `ConflictError` if there already is a set of this place.
        """

    def plans(self, model: str) -> list[int]:
        """Return the places of the model's sets that are kept, in order."""

    def snapshots(self, model: str) -> list[SnapshotRow]:
        """Return the model's snapshots, the latest first."""

    def drop(
        self, ids: Sequence[str], row: EventRow, after: Head, base: Callable[[], SnapshotRow], before: float | None
    ) -> None:
        """Append `row`, a drop, and in the same commit drop decisions with their events, all or none.

        Raises `ConflictError` unless the log ends at `after`. The base, called when the place and the
        digest of `row` are set, replaces all snapshots. With `before` all ids made before that time are known as
        forgotten, and the sessions of `ids`; without it those of `ids`.
        """

    def check(self, model: str) -> list[str]:
        """Read all of a model, and return what is not as it was written: empty if all is well."""

    def purged(self, model: str) -> float:
        """Return up to when decisions were purged, 0 if never."""

    def alone(self, what: str) -> AbstractContextManager[bool]:
        """Tell, for a block, whether no other process that uses this store does the same now."""

    def time(self) -> float:
        """Return the time, in seconds since 1970: of the clock that all who write to this store go by."""

    def sizes(self) -> dict[str, int]:
        """Return how many bytes each part of the store has, by the name of the part."""

    def close(self) -> None: ...
