"""What a store must do: keep rows in order, all of a batch or none of it, and find them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from belated.decisions._core import Lookup
from belated.decisions._rows import Row, SettingsRow, SnapshotRow


class Store(Lookup, Protocol):
    """A log of decisions and events, for any number of models. Safe to call from several threads."""

    def append(self, rows: Sequence[Row]) -> None:
        """Keep `rows`, all or none, and set their places in the log; when this returns they are safe.

        Raises `ConflictError` if an id, or an event with its version, is already there; `StoreError` if the rows
        cannot be kept.
        """

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
        """Return place and id of the first decision with a place in (after, upto] that is in flight.

        That is: it is active, has neither a reward nor a cancellation, and no window that ended by `over`.
        """

    def last(self, model: str) -> int:
        """Return the place of the model's last row, 0 if it has none."""

    def add_settings(self, row: SettingsRow) -> None: ...

    def models(self) -> list[str]: ...

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        """Keep a snapshot, and of the model's others the last `keep - 1` and the base."""

    def snapshots(self, model: str) -> list[SnapshotRow]:
        """Return the model's snapshots, the latest first."""

    def purge(self, model: str, before: float, upto: float, base: SnapshotRow) -> int:
        """Drop the decisions made `before` a time, and their events; keep `base` in their place; return how many.

        Those with a window that ends after `upto` stay. The base replaces all other snapshots.
        """

    def purged(self, model: str) -> float:
        """Return up to when decisions were purged, 0 if never."""

    def time(self) -> float:
        """Return the time, in seconds since 1970: of the clock that all who write to this store go by."""

    def sizes(self) -> dict[str, int]:
        """Return how many bytes each part of the store has, by the name of the part."""

    def close(self) -> None: ...
