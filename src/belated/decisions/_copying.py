"""Copying a store into a new one: elsewhere, with other settings, or the intact rows of a damaged store.

The rows keep their ids, keys, times, probabilities and offered actions, so late rewards find their decisions; positions
and digests are new. What was learned from dropped rows is copied as the base snapshot, unless the encoding or the ages
change. Sets of plans are not copied, since they belong to positions of the old log: a model of sessions is planned
again, and until then its actions are uniform.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from belated._util.validate import refuse
from belated.decisions._ageing import Ages
from belated.decisions._core import State
from belated.decisions._members import sparse_offer
from belated.decisions._model import SPARSE, JsonRequests, Model, fixed_settings
from belated.decisions._operations import StoreError
from belated.decisions._rows import (
    ACTIVATE,
    DROP,
    PLAN,
    DecisionRow,
    EventRow,
    Row,
    SettingsRow,
    SnapshotRow,
    session_id,
    session_of,
)
from belated.decisions._settings import ModelSettings
from belated.decisions._snapshot import restore, without_plans
from belated.decisions._store import MemoryStore, open_store
from belated.decisions._store.chain import origin, seal
from belated.decisions._store.sql import DECISION, EVENT, SQLStore, checked
from belated.decisions._store.sqlite import SQLiteStore
from belated.errors import DamagedFileError, InvalidInputError

#: Rows written in one commit; positions read at a time.
_AT_ONCE, _PAGE = 1_000, 5_000


class Copied(NamedTuple):
    """The result of copying one model."""

    model: str
    decisions: int
    events: int
    notes: tuple[str, ...]
    """What was not copied, and why."""


class _Source(NamedTuple):
    """A model as read from the old store."""

    settings: list[SettingsRow]
    rows: Iterable[Row]
    base: SnapshotRow | None
    notes: list[str]


def migrate(store: str, to: str, settings: Mapping[str, ModelSettings]) -> list[Copied]:
    """Copy a store that is not in use to a new one; the models in `settings` continue with these, whatever changed.

    Every decision is encoded again from its context. Names that are no longer declared are ignored; a decision that
    lacks a name declared now is left out and counted.
    """
    old = open_store(store)
    try:
        assert isinstance(old, SQLStore)
        for name in settings:
            if name not in old.models():
                raise refuse("a model of the settings", name, f"one of the store ({', '.join(old.models())})")
        sources = {name: _whole(old, name, settings.get(name)) for name in old.models()}
        return _copy(old, to, sources, settings)
    finally:
        old.close()


def salvage(store: str | Path, to: str) -> list[Copied]:
    """Copy the intact rows of a damaged SQLite store to a new one; the old one is only read."""
    old = _Damaged(store, read_only=True)
    try:
        return _copy(old, to, {name: _intact(old, name) for name in old.names()}, {})
    finally:
        old.close()


def _copy(
    old: SQLStore, to: str, sources: Mapping[str, _Source], settings: Mapping[str, ModelSettings]
) -> list[Copied]:
    """Write models to a new store, atomically."""
    path = None if "://" in to else Path(to)
    if path is not None and path.exists():
        raise refuse("the new store", to, "a file that does not exist yet")
    new = open_store(to)
    try:
        assert isinstance(new, SQLStore)
        if new.models():
            raise refuse("the new store", to, f"empty, but it has {', '.join(new.models())}")
        found = []
        for name, source in sources.items():
            if source.settings:
                found.append(_write(new, name, source))
                new.set_forgotten(name, *old.all_forgotten(name))
                model = Model(name, settings.get(name), new)
                model.snapshot()
                wrong = model.recompute()
                if wrong:
                    raise StoreError(f"{name!r} was not copied: {'; '.join(wrong)}")
            else:
                found.append(Copied(name, 0, 0, tuple(source.notes)))
        new.close()
        return found
    except BaseException:
        new.close()
        if path is not None:
            for each in (path, *path.parent.glob(f"{path.name}-*")):
                each.unlink(missing_ok=True)
        raise


def _write(new: SQLStore, name: str, source: _Source) -> Copied:
    """Write the settings and the rows of a model, and the base snapshot at its position."""
    for each in source.settings:
        new.add_settings(each)
    base, waiting, dropped = source.base, list[Row](), 0
    counts = {DecisionRow: 0, EventRow: 0}

    def put_base(base: SnapshotRow) -> None:
        row = EventRow(0, name, "", DROP, "", 0, None, None, base.made, None, 1, None)
        new.append([*waiting, row])
        waiting.clear()
        new.save_snapshot(without_plans(base)._replace(seq=row.seq, chain=row.chain, base=1))

    for row in source.rows:
        if base is not None and row.seq > base.seq:
            put_base(base)
            base = None
        if isinstance(row, EventRow) and row.kind == DROP:
            dropped += 1
            continue
        if isinstance(row, EventRow) and row.kind == PLAN:
            continue
        counts[type(row)] += 1
        waiting.append(row)
        if len(waiting) == _AT_ONCE:
            new.append(waiting)
            waiting.clear()
    if base is not None:
        put_base(base)
    if waiting:
        new.append(waiting)
    if dropped and source.base is None:
        source.notes.append("what was learned from purged or erased decisions is not in the new store")
    return Copied(name, counts[DecisionRow], counts[EventRow], tuple(source.notes))


def _whole(old: SQLStore, name: str, settings: ModelSettings | None) -> _Source:
    """Return a model of an intact store, encoded again if the encoding has changed."""
    rows = old.settings(name)
    known = {row.version: ModelSettings.from_table(json.loads(row.text)) for row in rows}
    fixed = known[1]
    aged = settings is not None and (
        (Ages.of(settings.silence), settings.signals) != (Ages.of(fixed.silence), fixed.signals)
    )
    changed = settings is not None and any(
        getattr(settings, each) != getattr(fixed, each) for each in fixed_settings(settings)
    )
    if settings is None or not (aged or changed):
        base = next((each for each in old.snapshots(name) if each.base), None)
        return _Source(rows, old.log(name), base, [])
    again = {version: _with_encoding(each, settings) for version, each in known.items()}
    log: Iterable[Row] = old.log(name)
    if aged:
        again = {
            version: replace(each, silence=settings.silence, signals=settings.signals)
            for version, each in again.items()
        }
        log = _with_window(log, settings.silence.seconds)
    notes: list[str] = []
    versions = [row._replace(text=again[row.version].to_json()) for row in rows]
    return _Source(versions, _encoded(log, again, notes), None, notes)


def _with_window(rows: Iterable[Row], seconds: float | None) -> Iterator[Row]:
    """Yield rows with a different window."""
    for row in rows:
        if isinstance(row, DecisionRow) and row.active:
            row.due = None if seconds is None else row.made + seconds
        elif isinstance(row, EventRow) and row.kind == ACTIVATE:
            row.due = None if seconds is None else row.received + seconds
        yield row


def _with_encoding(old: ModelSettings, new: ModelSettings) -> ModelSettings:
    """Return a version of the settings with the encoding of another."""
    encoding = new.encoding
    actions = {name: new.actions.get(name, encoding.declared(given, "action_")) for name, given in old.actions.items()}
    members: dict[str, Any] = {name: getattr(new, name) for name in SPARSE if name in fixed_settings(new)}
    return replace(
        old, encoding=encoding, forgetting=new.forgetting, seed=new.seed, actions=actions, sessions=new.sessions,
        **members,
    )  # fmt: skip


def _encoded(rows: Iterable[Row], versions: Mapping[int, ModelSettings], notes: list[str]) -> Iterator[Row]:
    """Yield rows with the features of another encoding, without decisions that it cannot encode.

    A session is cut at its first such step.
    """
    left: dict[str, str] = {}
    steps: dict[str, int] = {}
    for row in rows:
        if isinstance(row, DecisionRow):
            try:
                row.features = _features(row, versions[row.settings])
                if row.session is not None:
                    if row.step != steps.get(row.session, 0):
                        raise InvalidInputError(f"an earlier step of session {row.session!r} was left out")
                    steps[row.session] = row.step + 1
            except InvalidInputError as error:
                left[row.id] = str(error)
                if row.session is not None and row.session not in steps:
                    left[session_id(row.model, row.session)] = ""
        if row.id not in left:
            yield row
    why = [text for text in left.values() if text]
    if why:
        notes.append(f"{len(why)} decisions were left out with their events, such as: {why[0]}")


def _features(row: DecisionRow, settings: ModelSettings) -> bytes:
    """Return the features of the chosen actions under other settings."""
    encoding, given = settings.encoding, json.loads(row.actions)
    names = list(given)
    offer = {
        name: encoding.declared(given[name], "action_") if isinstance(given, dict) else settings.actions.get(name, {})
        for name in names
    }
    context = encoding.declared(json.loads(row.context))
    if settings.is_sparse(encoding.dimension):
        return sparse_offer(encoding, context, offer).packed([names.index(each) for each in row.ranking])
    features = encoding.matrix(context, offer)
    places = [0 if len(features) == 1 else names.index(each) for each in row.ranking]
    return bytes(features[places].tobytes()) if settings.sessions is None else b""


class _Damaged(SQLiteStore):
    """A store with damaged pages, rows or digests."""

    def _check_schema(self) -> None:
        """Accept whatever is there."""
        for (name,) in self.readable("SELECT id FROM belated"):
            self.id = name

    def readable(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._read(statement, values)
        except (StoreError, DamagedFileError):
            return []

    def names(self) -> list[str]:
        """Return the models that any readable row mentions."""
        tables = ("settings", "head", "snapshot")
        found = {row[0] for table in tables for row in self.readable(f"SELECT DISTINCT model FROM {table}")}
        return sorted(name for name in found if isinstance(name, str))

    def rows(self, name: str) -> tuple[list[Row], list[str]]:
        """Return the rows of a model that match their digests, and notes about the others."""
        try:
            gaps = self.gaps(name)
        except (DamagedFileError, StoreError):
            gaps = []
        kept: list[Row] = []
        lost: list[int] = []
        before, last = origin(self.id, name), self._last()
        for after in range(0, last, _PAGE):
            found = [
                *self._columns("decision", DECISION, after, min(after + _PAGE, last)),
                *self._columns("event", EVENT, after, min(after + _PAGE, last)),
            ]
            for values in sorted((row for row in found if row[1] == name), key=itemgetter(0)):
                while gaps and gaps[0].first < values[0]:
                    before = gaps.pop(0).after
                row = self._checked(before, values)
                if row is not None:
                    kept.append(row)
                else:
                    lost.append(values[0])
                before = values[-1]
        before = gaps[-1].after if gaps else before
        notes = []
        if lost:
            notes.append(f"{len(lost)} rows that were altered or follow a lost row, the first at {lost[0]}")
        for seq, chain in self.readable("SELECT seq, chain FROM head WHERE model = ?", (name,)):
            if chain != before:
                notes.append(f"rows at the end of the log, which had reached position {seq}")
        return kept, notes

    @staticmethod
    def _checked(before: bytes, values: Sequence[Any]) -> Row | None:
        try:
            return checked(before, values)
        except DamagedFileError:
            return None

    def _last(self) -> int:
        """Return a position after which there is nothing."""
        tables = ("head", "decision", "event")
        found = [row[0] for table in tables for row in self.readable(f"SELECT max(seq) FROM {table}")]
        return max((each for each in found if isinstance(each, int)), default=0)

    def _columns(self, table: str, fields: str, after: int, upto: int) -> list[tuple[Any, ...]]:
        """Return the readable rows with positions in (after, upto]."""
        if after >= upto:
            return []
        try:
            return self._read(f"SELECT {fields} FROM {table} WHERE seq > ? AND seq <= ? ORDER BY seq", (after, upto))
        except StoreError:
            if upto - after == 1:
                return []
            middle = (after + upto) // 2
            return self._columns(table, fields, after, middle) + self._columns(table, fields, middle, upto)

    def versions(self, name: str) -> tuple[list[SettingsRow], list[str]]:
        """Return the versions of a model's settings; a damaged version is replaced by the nearest intact one."""
        good: dict[int, SettingsRow] = {}
        fields = ", ".join(SettingsRow._fields)
        found = self.readable(f"SELECT {fields}, seal FROM settings WHERE model = ? ORDER BY version", (name,))
        for *values, mark in found:
            if seal(*values) == mark:
                good[values[1]] = SettingsRow._make(values)
        if not good:
            return [], ["its settings, without which its log is useless"]
        count = max(*good, len(found))
        whole = [good[min(good, key=lambda each: abs(each - k))]._replace(version=k) for k in range(1, count + 1)]
        notes = [f"version {k} of its settings" for k in range(1, count + 1) if k not in good]
        return whole, notes

    def snapshot(self, name: str, settings: list[SettingsRow], *, base: bool) -> SnapshotRow | None:
        """Return the latest intact snapshot, or only the `base`."""
        try:
            found = self.snapshots(name)
        except StoreError:
            return None
        versions = {row.version: ModelSettings.from_table(json.loads(row.text)) for row in settings}
        for row in [each for each in found if each.base or not base]:
            state = State(name, JsonRequests(versions[1]), versions, MemoryStore())
            try:
                restore(state, row)
            except DamagedFileError:
                continue
            return row
        return None

    def all_forgotten(self, model: str) -> tuple[float, list[bytes]]:
        """Return the readable part of what was forgotten."""
        try:
            return super().all_forgotten(model)
        except (DamagedFileError, StoreError):
            return 0.0, []


def _behind_gaps(rows: Iterable[Row]) -> set[str]:
    """Return the ids of steps that come after a missing step of the same session."""
    steps: dict[str, int] = {}
    behind = set()
    for row in rows:
        if isinstance(row, DecisionRow) and row.session is not None:
            if row.step == steps.get(row.session, 0):
                steps[row.session] = row.step + 1
            else:
                behind.add(row.id)
    return behind


def _intact(old: _Damaged, name: str) -> _Source:
    """Return the intact part of a model; if rows are lost, with the latest snapshot, which includes their effect."""
    settings, notes = old.versions(name)
    rows, lost = old.rows(name)
    behind = _behind_gaps(rows)
    if behind:
        lost.append(f"{len(behind)} steps of sessions after a lost step")
    rows = [row for row in rows if row.id not in behind]
    decisions = {row.id for row in rows if isinstance(row, DecisionRow)}
    sessions = {row.session for row in rows if isinstance(row, DecisionRow)}
    kept = [row for row in rows if not row.id or row.id in decisions or session_of(row.id) in sessions]
    if len(kept) < len(rows):
        lost.append(f"{len(rows) - len(kept)} events of lost decisions")
    notes += lost
    dropped = any(isinstance(row, EventRow) and row.kind == DROP for row in kept)
    of_sessions = bool(settings) and "horizon" in json.loads(settings[0].text)
    wanted = dropped or (bool(lost) and not of_sessions)  # sessions are learned from their rows
    base = old.snapshot(name, settings, base=of_sessions) if settings and wanted else None
    if base is not None and lost:
        notes.append(f"not lost: what was learned up to position {base.seq}, which is in a snapshot")
    return _Source(settings, kept, base, notes)
