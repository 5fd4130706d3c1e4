"""A store that lasts as long as the process: for notebooks, simulations and tests."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock

from belated.decisions._store.rows import ACTIVATE, CANCEL, REWARD, DecisionRow, EventRow, Row, SettingsRow, SnapshotRow
from belated.decisions._values import ConflictError


class MemoryStore:
    """A `Store` that lasts as long as the process."""

    shared = False

    def __init__(self) -> None:
        self._lock = RLock()
        self._last = 0
        self._rows: dict[str, list[Row]] = {}
        self._numbers: dict[str, int] = {}
        self._decisions: dict[str, DecisionRow] = {}
        self._keys: dict[tuple[str, str], DecisionRow] = {}
        self._events: dict[str, list[EventRow]] = {}
        self._due: dict[str, list[tuple[float, int, str]]] = {}
        self._settings: dict[str, list[SettingsRow]] = {}
        self._snapshots: dict[str, list[SnapshotRow]] = {}
        self._purged: dict[str, float] = {}

    def append(self, rows: Sequence[Row]) -> None:
        """Keep `rows`, all or none, and tell them their places in the log."""
        with self._lock:
            if len(rows) > 1:
                self._refuse_repeats(rows)
            for row in rows:
                self.keep(row)

    def keep(self, row: Row) -> None:
        """Keep one row, and tell it its place in the log."""
        with self._lock:
            if isinstance(row, DecisionRow):
                self._keep_decision(row)
            elif row.id:
                self._keep_event(row)
            self._last = row.seq = self._last + 1
            log = self._rows.get(row.model)
            if log is None:
                log = self._rows[row.model] = []
            log.append(row)
            if row.due is not None and (isinstance(row, DecisionRow) or row.kind == ACTIVATE):
                insort(self._due.setdefault(row.model, []), (row.due, row.seq, row.id))

    def _keep_decision(self, row: DecisionRow) -> None:
        if row.id in self._decisions or (row.key is not None and (row.model, row.key) in self._keys):
            raise ConflictError(f"already in the store: {row.id!r}")
        self._decisions[row.id] = row
        self._numbers[row.model] = max(row.number, self._numbers.get(row.model, 0))
        if row.key is not None:
            self._keys[row.model, row.key] = row

    def _keep_event(self, row: EventRow) -> None:
        others = self._events.get(row.id)
        if others is None:
            self._events[row.id] = [row]
        else:
            self._refuse_known(row)
            others.append(row)

    def _refuse_known(self, row: Row) -> None:
        if isinstance(row, DecisionRow):
            known = row.id in self._decisions or (row.key is not None and (row.model, row.key) in self._keys)
        else:
            given = self._events.get(row.id, ())
            known = row.kind == REWARD and any(
                each.kind == REWARD and (each.event, each.version) == (row.event, row.version) for each in given
            )
        if known:
            raise ConflictError(f"already in the store: {row.id!r}")

    def _refuse_repeats(self, rows: Sequence[Row]) -> None:
        """Refuse a batch before anything of it is kept."""
        seen: set[tuple[object, ...]] = set()
        for row in rows:
            self._refuse_known(row)
            if isinstance(row, DecisionRow):
                names: list[tuple[object, ...]] = [(row.id,), *([] if row.key is None else [(row.model, row.key)])]
            else:
                names = [(row.id, row.event, row.version)] if row.kind == REWARD else []
            if not seen.isdisjoint(names):
                raise ConflictError(f"twice in a batch: {row.id!r}")
            seen.update(names)

    def number(self, model: str) -> int:
        """Return the number of the model's latest decision."""
        return self._numbers.get(model, 0)

    def decision(self, id: str, before: int | None = None) -> DecisionRow | None:  # noqa: A002
        """Return the decision with this id."""
        row = self._decisions.get(id)
        return row if row is None or before is None or row.seq < before else None

    def keyed(self, model: str, key: str) -> DecisionRow | None:
        """Return the decision that was made with this key."""
        return self._keys.get((model, key))

    def events(self, id: str, before: int | None = None) -> tuple[EventRow, ...]:  # noqa: A002
        """Return the events under this id."""
        with self._lock:
            return tuple(row for row in self._events.get(id, ()) if before is None or row.seq < before)

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        """Return the windows that end in (after, upto], soonest first."""
        with self._lock:
            ends = self._due.get(model, [])
            low, high = bisect_right(ends, after, key=_end), bisect_right(ends, upto, key=_end)
            found = [(end, id) for end, seq, id in ends[low:high] if before is None or seq < before]  # noqa: A001
        if len(found) > limit:
            found = found[: bisect_right(found, found[limit - 1][0], key=_first)]
        return found

    def next_due(self, model: str, after: float) -> float | None:
        """Return when the next window after `after` ends."""
        with self._lock:
            ends = self._due.get(model, [])
            place = bisect_right(ends, after, key=_end)
            return ends[place][0] if place < len(ends) else None

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
        """Return place and id of the first decision with a place in (after, upto] that is in flight."""
        with self._lock:
            rows = self._rows.get(model, [])
            for place in range(bisect_right(rows, after, key=_seq), bisect_right(rows, upto, key=_seq)):
                row = rows[place]
                if isinstance(row, DecisionRow) and self._is_silent(row, over):
                    return row.seq, row.id
        return None

    def _is_silent(self, row: DecisionRow, over: float) -> bool:
        active, due = bool(row.active), row.due
        for event in self._events.get(row.id, ()):
            if event.kind == CANCEL or (event.kind == REWARD and event.counted):
                return False
            if event.kind == ACTIVATE:
                active, due = True, event.due
        return active and (due is None or due > over)

    def log(self, model: str, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Yield the model's rows with places in (after, upto], in order."""
        with self._lock:
            rows = self._rows.get(model, [])
            end = len(rows) if upto is None else bisect_right(rows, upto, key=_seq)
            part = rows[bisect_right(rows, after, key=_seq) : end]
        yield from part

    def last(self, model: str) -> int:
        """Return the place of the model's last row."""
        rows = self._rows.get(model)
        return rows[-1].seq if rows else 0

    def settings(self, model: str) -> list[SettingsRow]:
        """Return all versions of a model's settings."""
        return list(self._settings.get(model, ()))

    def add_settings(self, row: SettingsRow) -> None:
        """Keep a new version of a model's settings."""
        with self._lock:
            known = self._settings.setdefault(row.model, [])
            if any(row.version == each.version for each in known):
                raise ConflictError(f"model {row.model!r} already has version {row.version} of its settings")
            known.append(row)

    def models(self) -> list[str]:
        """Return the names of the models."""
        return sorted(self._settings)

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        """Keep a snapshot, and of the model's others the last `keep - 1` and the base."""
        with self._lock:
            known = self._snapshots.get(row.model, ())
            if any(each.base and each.seq == row.seq for each in known):
                row = row._replace(base=1)  # the log begins here: what was purged stands nowhere else
            others = [each for each in known if each.seq != row.seq]
            ordered = sorted([row, *others], key=lambda each: -each.seq)
            self._snapshots[row.model] = [each for i, each in enumerate(ordered) if i < keep or each.base]

    def snapshots(self, model: str) -> list[SnapshotRow]:
        """Return the model's snapshots, the latest first."""
        return list(self._snapshots.get(model, ()))

    def purge(self, model: str, before: float, upto: float, base: SnapshotRow) -> int:
        """Drop the decisions made before a time whose windows, if any, ended by `upto`."""
        with self._lock:
            gone = []
            for row in self._rows.get(model, ()):
                if isinstance(row, DecisionRow) and row.made < before:
                    ends = [row.due, *(event.due for event in self._events.get(row.id, ()))]
                    if all(end is None or end <= upto for end in ends):
                        gone.append(row.id)
            self._snapshots[model] = [base]
            self.drop(model, gone, before)
            return len(gone)

    def drop(self, model: str, ids: Iterable[str], before: float) -> None:
        """Drop decisions with their events; ids made `before` that time will be known as forgotten."""
        with self._lock:
            gone = set(ids)
            self._purged[model] = max(before, self._purged.get(model, 0.0))
            for id in gone:  # noqa: A001
                row = self._decisions.pop(id)
                self._events.pop(id, None)
                if row.key is not None:
                    del self._keys[model, row.key]
            kept = self._rows.get(model, [])
            if gone:  # with the ticks: what they did is done
                self._rows[model] = [row for row in kept if row.id and row.id not in gone]
            self._due[model] = [end for end in self._due.get(model, ()) if end[2] not in gone]

    def purged(self, model: str) -> float:
        """Return up to when decisions were purged."""
        return self._purged.get(model, 0.0)

    def sizes(self) -> dict[str, int]:
        """Return nothing: there are no files."""
        return {}

    def close(self) -> None:
        """Let go of everything."""


def _end(window: tuple[float, int, str]) -> float:
    return window[0]


def _first(window: tuple[float, str]) -> float:
    return window[0]


def _seq(row: Row) -> int:
    return row.seq
