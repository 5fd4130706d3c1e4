"""An in-memory store, for notebooks, simulations and tests."""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock

import numpy as np
import numpy.typing as npt

from belated.decisions._ids import time_of
from belated.decisions._operations import ConflictError
from belated.decisions._rows import (
    ACTIVATE,
    CANCEL,
    DISCARD,
    DROP,
    END,
    REWARD,
    SEPARATOR,
    TICK,
    DecisionRow,
    EventRow,
    PlanRow,
    Row,
    SettingsRow,
    SnapshotRow,
    session_id,
    session_of,
)
from belated.decisions._store.chain import Head


class MemoryStore:
    """A `Store` in memory, which ends with the process."""

    shared = False

    def __init__(self) -> None:
        self._lock = RLock()
        self._last = 0
        self._rows: dict[str, list[Row]] = {}
        self._decisions: dict[str, DecisionRow] = {}
        self._keys: dict[tuple[str, str], DecisionRow] = {}
        self._steps: dict[tuple[str, str], list[DecisionRow]] = {}
        self._plans: dict[tuple[str, int], PlanRow] = {}
        self._events: dict[str, list[EventRow]] = {}
        self._due: dict[str, list[tuple[float, int, str]]] = {}
        self._settings: dict[str, list[SettingsRow]] = {}
        self._snapshots: dict[str, list[SnapshotRow]] = {}
        self._purged: dict[str, float] = {}
        self.forgotten_keys: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        """Digests, sorted."""

    def append(self, rows: Sequence[Row]) -> None:
        with self._lock:
            for row in rows:
                self._check(row)
            if len(rows) > 1:
                names = [name for row in rows for name in _unique(row)]
                if len(set(names)) < len(names):
                    raise ConflictError("an id, a key or an event occurs twice in a batch")
            for row in rows:
                self._keep(row)

    def _check(self, row: Row) -> None:
        if isinstance(row, DecisionRow):
            known = row.id in self._decisions or (row.key is not None and (row.model, row.key) in self._keys)
            if row.session is not None:
                known = known or any(row.step == each.step for each in self._steps.get((row.model, row.session), ()))
        else:
            known = row.kind == REWARD and row.id in self._events and self._has(row)
        if known:
            raise ConflictError(f"already in the store: {row.id!r}")

    def _has(self, row: EventRow) -> bool:
        name = REWARD, row.event, row.version
        return any((each.kind, each.event, each.version) == name for each in self._events[row.id])

    def _keep(self, row: Row) -> None:
        self._last = row.seq = self._last + 1
        model, due = row.model, row.due
        if model not in self._rows:
            self._rows[model], self._due[model] = [], []
        self._rows[model].append(row)
        if isinstance(row, DecisionRow):
            self._decisions[row.id] = row
            if row.key is not None:
                self._keys[model, row.key] = row
            if row.session is not None:
                self._steps.setdefault((model, row.session), []).append(row)
        elif row.kind not in (TICK, DROP):
            self._events.setdefault(row.id, []).append(row)
        else:
            due = None
        if due is not None:
            insort(self._due[model], (due, row.seq, row.id))

    def decision(self, id: str, before: int | None = None) -> DecisionRow | None:  # noqa: A002
        row = self._decisions.get(id)
        return row if row is None or before is None or row.seq < before else None

    def keyed(self, model: str, key: str) -> DecisionRow | None:
        return self._keys.get((model, key))

    def steps(self, model: str, session: str, before: int | None = None) -> tuple[DecisionRow, ...]:
        with self._lock:
            rows = self._steps.get((model, session), ())
            return tuple(row for row in rows if before is None or row.seq < before)

    def plan(self, model: str, place: int) -> PlanRow | None:
        return self._plans.get((model, place))

    def plans(self, model: str) -> list[int]:
        return sorted(place for name, place in list(self._plans) if name == model)

    def publish(self, plan: PlanRow, row: EventRow, keep: Collection[int]) -> None:
        with self._lock:
            model = plan.model
            if (model, plan.place) in self._plans:
                raise ConflictError(f"model {model!r} already has a set of plans at position {plan.place}")
            self.append([row])
            others = {where: each for where, each in self._plans.items() if where[0] != model or where[1] in keep}
            self._plans = {**others, (model, plan.place): plan}

    def events(self, id: str, before: int | None = None) -> tuple[EventRow, ...]:  # noqa: A002
        with self._lock:
            return tuple(row for row in self._events.get(id, ()) if before is None or row.seq < before)

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        with self._lock:
            ends = self._due.get(model, [])
            low, high = bisect_right(ends, after, key=_end), bisect_right(ends, upto, key=_end)
            found = [(end, id) for end, seq, id in ends[low:high] if before is None or seq < before]  # noqa: A001
        if len(found) > limit:
            found = found[: bisect_right(found, found[limit - 1][0], key=_first)]
        return found

    def next_due(self, model: str, after: float) -> float | None:
        with self._lock:
            ends = self._due.get(model, [])
            place = bisect_right(ends, after, key=_end)
            return ends[place][0] if place < len(ends) else None

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
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
        for event in () if row.session is None else self._events.get(session_id(row.model, row.session), ()):
            if event.kind == DISCARD:
                return False
            if event.kind == END:
                due = event.due
        return active and (due is None or due > over)

    def log(self, model: str, after: int = 0, upto: int | None = None, *, chain: bytes | None = None) -> Iterator[Row]:
        with self._lock:
            rows = self._rows.get(model, [])
            end = len(rows) if upto is None else bisect_right(rows, upto, key=_seq)
            part = rows[bisect_right(rows, after, key=_seq) : end]
        yield from part

    def last(self, model: str) -> int:
        rows = self._rows.get(model)
        return rows[-1].seq if rows else 0

    def chain(self, model: str, place: int) -> bytes | None:
        return b""

    def settings(self, model: str) -> list[SettingsRow]:
        return list(self._settings.get(model, ()))

    def add_settings(self, row: SettingsRow) -> None:
        with self._lock:
            known = self._settings.setdefault(row.model, [])
            if any(row.version == each.version for each in known):
                raise ConflictError(f"model {row.model!r} already has version {row.version} of its settings")
            known.append(row)

    def models(self) -> list[str]:
        return sorted(self._settings)

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        with self._lock:
            known = self._snapshots.get(row.model, ())
            if not row.base and any(each.base and each.seq == row.seq for each in known):
                return  # the log starts here: purged rows are nowhere else
            others = [each for each in known if each.seq != row.seq]
            ordered = sorted([row, *others], key=lambda each: -each.seq)
            self._snapshots[row.model] = [each for i, each in enumerate(ordered) if i < keep or each.base]

    def snapshots(self, model: str) -> list[SnapshotRow]:
        return list(self._snapshots.get(model, ()))

    def drop(
        self, ids: Sequence[str], row: EventRow, after: Head, base: Callable[[], SnapshotRow], before: float | None
    ) -> None:
        model = row.model
        with self._lock:
            self._drop(model, ids, before is not None)
            self._keep(row)
            self._snapshots[model] = [base()]
            known = [id for id in ids if before is None or SEPARATOR in id]  # noqa: A001
            self.forgotten_keys = np.union1d(self.forgotten_keys, np.array([_short(id) for id in known], np.uint64))  # noqa: A001
            if before is not None:
                self._purged[model] = max(before, self._purged.get(model, 0.0))

    def check(self, model: str) -> list[str]:
        return []

    def forget(self, model: str, ids: Iterable[str]) -> None:
        """Drop decisions with their events, and remember their ids as forgotten."""
        with self._lock:
            gone = set(ids)
            ours = {time for id in gone if (time := time_of(id)) is not None}  # noqa: A001
            if ours:  # ids contain milliseconds
                self._purged[model] = max(self._purged.get(model, 0.0), max(ours) + 1e-3)
            own = np.array([_short(id) for id in gone if time_of(id) is None], np.uint64)  # noqa: A001
            self.forgotten_keys = np.union1d(self.forgotten_keys, own)
            self._drop(model, gone, True)

    def _drop(self, model: str, ids: Iterable[str], ticks: bool) -> None:
        """Drop decisions with their events, and ticks, whose effect is in the base."""
        gone = set(ids)
        for id in gone:  # noqa: A001
            self._events.pop(id, None)
            if SEPARATOR in id:
                del self._steps[model, session_of(id)]
                continue
            row = self._decisions.pop(id)
            if row.key is not None:
                del self._keys[model, row.key]
        if gone:
            rows = self._rows[model]
            self._rows[model] = [row for row in rows if row.id not in gone and (row.id or not ticks)]
        self._due[model] = [end for end in self._due.get(model, ()) if end[2] not in gone]

    def purged(self, model: str) -> float:
        return self._purged.get(model, 0.0)

    def forgotten(self, model: str, id: str) -> bool:  # noqa: A002
        made = time_of(id)
        if made is not None and made < self.purged(model):
            return True
        place = int(np.searchsorted(self.forgotten_keys, _short(id)))
        return place < len(self.forgotten_keys) and bool(self.forgotten_keys[place] == _short(id))

    def set_forgotten(self, model: str, before: float, keys: npt.NDArray[np.uint64]) -> None:
        """Copy what another store of this kind has forgotten."""
        self._purged[model], self.forgotten_keys = before, keys

    def alone(self, what: str) -> AbstractContextManager[bool]:
        return nullcontext(True)

    time = staticmethod(time.time)

    def sizes(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        pass


def _unique(row: Row) -> list[tuple[object, ...]]:
    """Return the keys of a row that must be unique in the log."""
    if isinstance(row, DecisionRow):
        return [
            (row.id,),
            *([] if row.key is None else [(row.model, row.key)]),
            *([] if row.session is None else [(row.model, row.session, row.step)]),
        ]
    return [(row.id, row.event, row.version)] if row.kind == REWARD else []


def _short(key: str) -> np.uint64:
    """Return a short digest of a key."""
    return np.uint64(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"))


def _end(window: tuple[float, int, str]) -> float:
    return window[0]


def _first(window: tuple[float, str]) -> float:
    return window[0]


def _seq(row: Row) -> int:
    return row.seq
