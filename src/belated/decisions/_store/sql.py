"""The part shared by stores in SQL databases: one schema, and the same statements."""

from __future__ import annotations

import json
import logging
import secrets
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from hashlib import blake2b, sha256
from heapq import merge
from operator import attrgetter
from typing import Any

from belated.decisions._ids import time_of
from belated.decisions._operations import ConflictError, StoreError
from belated.decisions._rows import SEPARATOR, DecisionRow, EventRow, PlanRow, Row, SettingsRow, SnapshotRow
from belated.decisions._store.base import DroppedError
from belated.decisions._store.chain import Gap, Head, link_decision, link_event, merge_gaps, origin, seal
from belated.errors import DamagedFileError

#: Version of the tables below. A store with another version is rejected.
SCHEMA = 3
#: Log positions read at a time.
_PAGE = 5_000

_log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE decision (
  seq {int} PRIMARY KEY, model {text} NOT NULL, id {text} NOT NULL UNIQUE, number {int} NOT NULL, made {real} NOT NULL,
  key {text}, digest {blob}, settings {int} NOT NULL, version {int} NOT NULL, context {text} NOT NULL,
  actions {text} NOT NULL, ranking {text} NOT NULL, probabilities {blob}, probability {real} CHECK (probability > 0),
  suggestion {text}, features {blob} NOT NULL, active {int} NOT NULL, due {real}, session {text}, step {int},
  plan {int}, votes {blob}, chain {blob} NOT NULL){strict};
CREATE UNIQUE INDEX decision_step ON decision (model, session, step) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX decision_key ON decision (model, key) WHERE key IS NOT NULL;
CREATE INDEX decision_due ON decision (model, due) WHERE due IS NOT NULL;
CREATE TABLE event (
  seq {int} PRIMARY KEY, model {text} NOT NULL, id {text} NOT NULL, kind {text} NOT NULL, event {text} NOT NULL,
  version {int} NOT NULL, reward {real}, slot {int}, received {real} NOT NULL, observed {real}, counted {int} NOT NULL,
  due {real}, chain {blob} NOT NULL, CHECK (kind <> 'reward' OR reward IS NOT NULL)){strict};
CREATE UNIQUE INDEX event_once ON event (id, event, version) WHERE kind = 'reward';
CREATE INDEX event_other ON event (id) WHERE kind <> 'reward' AND kind <> 'tick';
CREATE INDEX event_due ON event (model, due) WHERE kind IN ('activate', 'end');
CREATE TABLE head (model {text} PRIMARY KEY, seq {int} NOT NULL, chain {blob} NOT NULL){strict};
CREATE TABLE gap (
  model {text} NOT NULL, first {int} NOT NULL, last {int} NOT NULL, before {blob} NOT NULL, after {blob} NOT NULL,
  seal {blob} NOT NULL, PRIMARY KEY (model, first)){strict};
CREATE TABLE settings (
  model {text} NOT NULL, version {int} NOT NULL, made {real} NOT NULL, text {text} NOT NULL, seal {blob} NOT NULL,
  PRIMARY KEY (model, version)){strict};
CREATE TABLE snapshot (
  model {text} NOT NULL, seq {int} NOT NULL, made {real} NOT NULL, base {int} NOT NULL, header {text} NOT NULL,
  arrays {blob} NOT NULL, digest {blob} NOT NULL, chain {blob} NOT NULL, seal {blob} NOT NULL,
  PRIMARY KEY (model, seq)){strict};
CREATE TABLE plan (
  model {text} NOT NULL, place {int} NOT NULL, settings {int} NOT NULL, made {real} NOT NULL, content {blob} NOT NULL,
  digest {blob} NOT NULL, seal {blob} NOT NULL, PRIMARY KEY (model, place)){strict};
CREATE TABLE purged (model {text} PRIMARY KEY, before {real} NOT NULL, seal {blob} NOT NULL){strict};
CREATE TABLE erased (model {text} NOT NULL, id {blob} NOT NULL, PRIMARY KEY (model, id)){strict};
CREATE TABLE belated (schema_version {int} NOT NULL, id {blob} NOT NULL, seal {blob} NOT NULL){strict};
"""

_WINDOWS = (
    "SELECT due, seq, id FROM decision WHERE model = ? AND due > ? AND due <= ?",
    "SELECT due, seq, id FROM event WHERE model = ? AND due > ? AND due <= ? AND kind IN ('activate', 'end')",
)


def _insert(table: str, fields: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})"


_decision_values = attrgetter(*DecisionRow.__slots__)
_event_values = attrgetter(*EventRow.__slots__)
_RANKING = DecisionRow.__slots__.index("ranking")
_INSERT_DECISION, _INSERT_EVENT = _insert("decision", DecisionRow.__slots__), _insert("event", EventRow.__slots__)
DECISION, EVENT = ", ".join(DecisionRow.__slots__), ", ".join(EventRow.__slots__)
_PLAN = ", ".join(PlanRow._fields)
_GAP, _SETTINGS, _SNAPSHOT = ", ".join(Gap._fields), ", ".join(SettingsRow._fields), ", ".join(SnapshotRow._fields)
#: Where digests are stored: position, digest, table, and search column.
_CHAINS = ("seq", "chain", "decision", "seq"), ("seq", "chain", "event", "seq")
_ERASED = "INSERT INTO erased (model, id) VALUES (?, ?) ON CONFLICT (model, id) DO NOTHING"
_HEAD = (
    "INSERT INTO head (model, seq, chain) VALUES (?, ?, ?) "
    "ON CONFLICT (model) DO UPDATE SET seq = excluded.seq, chain = excluded.chain"
)


@lru_cache(maxsize=10_000)
def _ranking_text(ranking: tuple[str, ...]) -> str:
    return json.dumps(ranking, ensure_ascii=False)


@lru_cache(maxsize=10_000)
def _ranking(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _to_columns(row: DecisionRow) -> list[Any]:
    values = list(_decision_values(row))
    values[_RANKING] = _ranking_text(row.ranking)
    return values


def _to_decision(values: Sequence[Any]) -> DecisionRow:
    row = DecisionRow(*values)
    try:
        row.ranking = _ranking(values[_RANKING])
    except (TypeError, ValueError) as error:
        raise DamagedFileError(f"the decision at position {row.seq} of the store cannot be read: {error}") from None
    return row


def _short(id: str) -> bytes:  # noqa: A002
    """Return the digest under which an erased id is remembered."""
    return blake2b(id.encode(), digest_size=8).digest()


def checked(before: bytes, values: Sequence[Any]) -> Row | None:
    """Return the row of some columns if its digest matches, given the digest `before` it; else None."""
    is_decision = len(values) == len(DecisionRow.__slots__)
    try:
        if (link_decision if is_decision else link_event)(before, values) != values[-1]:
            return None
    except (TypeError, ValueError, AttributeError, struct.error):
        return None
    return _to_decision(values) if is_decision else EventRow(*values)


class SQLStore(ABC):
    """A `Store` in an SQL database. Subclasses provide the connection and the column types."""

    types: dict[str, str]
    shared = False

    def __init__(self) -> None:
        self.id = b""
        """Random id, assigned when the tables are created."""
        self._known: dict[str, Head] = {}
        """For each model, the last position that this process has read or written."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Begin, then commit or roll back; translate the database's errors. Not reentrant."""

    @abstractmethod
    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Execute a statement for each of `rows`, within a transaction; return the number of rows changed."""

    @abstractmethod
    def _whole(self) -> list[str]:
        """Return the problems found by the database's own integrity check."""

    @abstractmethod
    def _scrub(self) -> None:
        """Remove the bytes of deleted rows from the files, as far as possible."""

    def _create_tables(self) -> None:
        """Create the tables, within a transaction."""
        for statement in TABLES.format(**self.types).split(";"):
            if statement.strip():
                self._write(statement, [()])
        made = secrets.token_bytes(16)
        self._write("INSERT INTO belated (schema_version, id, seal) VALUES (?, ?, ?)", [(SCHEMA, made, seal(made))])

    def _check_schema(self) -> None:
        """Raise DamagedFileError unless the tables have the version that this code reads."""
        version = self._read("SELECT max(schema_version) FROM belated")[0][0]
        if version != SCHEMA:
            raise DamagedFileError(f"the store has version {version} of the tables, but this code reads {SCHEMA}")
        found = self._read("SELECT id, seal FROM belated")
        if len(found) != 1 or seal(found[0][0]) != found[0][1]:
            raise DamagedFileError("the id of the store was altered")
        if found[0][0] != (self.id or found[0][0]):
            raise StoreError("the store was replaced by another one: restart the process")
        self.id = found[0][0]

    def append(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        with self._transaction():
            heads = self._heads()
            self._recognise(heads, {row.model for row in rows})
            reached = self._append(rows, heads)
        self._known |= reached

    def _append(self, rows: Sequence[Row], heads: Mapping[str, Head]) -> dict[str, Head]:
        """Insert rows after `heads`, within a transaction; return the new heads."""
        place = max((head.seq for head in heads.values()), default=0)
        decisions, events = [], []
        chains = {model: head.chain for model, head in heads.items()}
        places: dict[str, int] = {}
        for row in rows:
            place += 1
            row.seq, model = place, row.model
            before = chains.get(model) or origin(self.id, model)
            if isinstance(row, DecisionRow):
                values = _to_columns(row)
                chains[model] = row.chain = values[-1] = link_decision(before, values)
                decisions.append(values)
            else:
                values = list(_event_values(row))
                chains[model] = row.chain = values[-1] = link_event(before, values)
                events.append(values)
            places[model] = place
        reached = {model: Head(last, chains[model]) for model, last in places.items()}
        if decisions:
            self._write(_INSERT_DECISION, decisions)
        if events:
            self._write(_INSERT_EVENT, events)
        self._write(_HEAD, [(model, *head) for model, head in reached.items()])
        return reached

    def _heads(self) -> dict[str, Head]:
        return {model: Head(seq, chain) for model, seq, chain in self._read("SELECT model, seq, chain FROM head")}

    def _recognise(self, heads: Mapping[str, Head], models: set[str]) -> None:
        """Raise StoreError unless the logs still contain what this process has written to or read from them."""
        for model in models & set(self._known):
            known = self._known[model]
            if heads.get(model) != known and self.chain(model, known.seq) != known.chain:
                raise self._differs(model, known.seq)

    def _differs(self, model: str, place: int) -> Exception:
        """Return why a log differs at a position from what was read or written there: rows dropped, or log replaced."""
        dropped = self._read("SELECT 1 FROM gap WHERE model = ? AND first <= ? AND last >= ?", (model, place, place))
        if dropped:
            return DroppedError(f"rows of {model!r} up to position {place} were dropped in the meantime")
        return StoreError(
            f"the log of {model!r} is not the one that was learned: it differs at position {place}. Was the store "
            "restored from a backup, or did a replica without all rows take over? Nothing is written; restart the "
            "process to continue with the log as it is"
        )

    def chain(self, model: str, place: int) -> bytes | None:
        """Return the digest of the row at a position; None if there is none."""
        rows = self._read(
            "SELECT chain FROM decision WHERE seq = ? AND model = ? UNION ALL "
            "SELECT chain FROM event WHERE seq = ? AND model = ?",
            (place, model) * 2,
        )
        return rows[0][0] if len(rows) == 1 else None

    def _chain_upto(self, model: str, place: int) -> bytes:
        """Return the digest of the last row up to a position, dropped or not."""
        last = "SELECT * FROM (SELECT {0}, {1} FROM {2} WHERE model = ? AND {3} <= ? ORDER BY {3} DESC LIMIT 1) AS {2}"
        tables = (*_CHAINS, ("last", "after", "gap", "first"))
        rows = self._read(" UNION ALL ".join(last.format(*each) for each in tables), (model, place) * 3)
        return max(rows)[1] if rows else origin(self.id, model)

    def decision(self, id: str, before: int | None = None) -> DecisionRow | None:  # noqa: A002
        rows = self._read(f"SELECT {DECISION} FROM decision WHERE id = ?", (id,))
        row = _to_decision(rows[0]) if rows else None
        return row if row is None or before is None or row.seq < before else None

    def keyed(self, model: str, key: str) -> DecisionRow | None:
        rows = self._read(f"SELECT {DECISION} FROM decision WHERE model = ? AND key = ?", (model, key))
        return _to_decision(rows[0]) if rows else None

    def steps(self, model: str, session: str, before: int | None = None) -> tuple[DecisionRow, ...]:
        where = "WHERE model = ? AND session = ? ORDER BY step"
        rows = self._read(f"SELECT {DECISION} FROM decision {where}", (model, session))
        return tuple(_to_decision(row) for row in rows if before is None or row[0] < before)

    def plan(self, model: str, place: int) -> PlanRow | None:
        rows = self._read(f"SELECT {_PLAN}, seal FROM plan WHERE model = ? AND place = ?", (model, place))
        if not rows:
            return None
        *values, mark = rows[0]
        row = PlanRow._make(values)
        if _seal_plan(row) != mark or sha256(row.content).digest() != row.digest:
            raise DamagedFileError(f"the set of plans at position {place} of {model!r} was altered")
        return row

    def plans(self, model: str) -> list[int]:
        return [row[0] for row in self._read("SELECT place FROM plan WHERE model = ? ORDER BY place", (model,))]

    def publish(self, plan: PlanRow, row: EventRow, keep: Collection[int]) -> None:
        with self._transaction():
            heads = self._heads()
            self._recognise(heads, {row.model})
            there = {each[0] for each in self._read("SELECT place FROM plan WHERE model = ?", (plan.model,))}
            if plan.place in there:
                raise ConflictError(f"model {plan.model!r} already has a set of plans at position {plan.place}")
            gone = [(plan.model, place) for place in there - set(keep)]
            if gone:
                self._write("DELETE FROM plan WHERE model = ? AND place = ?", gone)
            self._write(_insert("plan", (*PlanRow._fields, "seal")), [(*plan, _seal_plan(plan))])
            reached = self._append([row], heads)
        self._known |= reached

    def events(self, id: str, before: int | None = None) -> tuple[EventRow, ...]:  # noqa: A002
        rows = self._read(
            f"SELECT {EVENT} FROM event WHERE id = ? AND kind = 'reward' UNION ALL "
            f"SELECT {EVENT} FROM event WHERE id = ? AND kind <> 'reward' AND kind <> 'tick' ORDER BY seq",
            (id, id),
        )
        return tuple(EventRow(*row) for row in rows if before is None or row[0] < before)

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        values = (model, after, upto) if before is None else (model, after, upto, before)
        rest = "" if before is None else " AND seq < ?"
        ends = [f"{each}{rest}" for each in _WINDOWS]
        both = " UNION ALL ".join(ends)
        rows = self._read(f"{both} ORDER BY due, seq LIMIT {int(limit)}", values * 2)
        if len(rows) == limit:  # plus those that end at the same moment as the last
            values = (model, after, rows[-1][0], *values[3:])
            rows = self._read(f"{both} ORDER BY due, seq", values * 2)
        return [(row[0], row[2]) for row in rows]

    def next_due(self, model: str, after: float) -> float | None:
        rows = self._read(
            "SELECT min(due) FROM decision WHERE model = ? AND due > ? UNION ALL "
            "SELECT min(due) FROM event WHERE model = ? AND due > ? AND kind IN ('activate', 'end')",
            (model, after) * 2,
        )
        ends = [row[0] for row in rows if row[0] is not None]
        return min(ends) if ends else None

    def silent(self, model: str, after: int, upto: int, over: float) -> tuple[int, str] | None:
        has = "EXISTS (SELECT 1 FROM event WHERE event.id = decision.id AND event.kind = '{}'{})"
        rows = self._read(
            "SELECT seq, id FROM decision WHERE model = ? AND seq > ? AND seq <= ? AND (due IS NULL OR due > ?) "
            f"AND NOT {has.format('reward', ' AND counted = 1')} AND NOT {has.format('cancel', '')} "
            f"AND (active = 1 OR {has.format('activate', '')}) AND NOT {has.format('activate', ' AND event.due <= ?')} "
            "AND NOT EXISTS (SELECT 1 FROM event WHERE event.id = decision.session || ? || decision.model AND "
            "event.kind <> 'reward' AND event.kind <> 'tick' AND "  # matches the index
            "(event.kind = 'discard' OR event.kind = 'end' AND event.due <= ?)) ORDER BY seq LIMIT 1",
            (model, after, upto, over, over, SEPARATOR, over),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def log(self, model: str, after: int = 0, upto: int | None = None, *, chain: bytes | None = None) -> Iterator[Row]:
        head = next(iter(self._heads_of(model)), Head(0, b""))
        if chain is not None and after:
            if chain != (head.chain if after == head.seq else self.chain(model, after)):
                raise self._differs(model, after)
            self._known[model] = Head(after, chain)
        last = head.seq if upto is None else min(upto, head.seq)
        if after >= last:
            return
        before = chain if chain and after else self._chain_upto(model, after)
        while after < last:
            end = min(after + _PAGE, last)
            try:
                rows, before = self._page(model, after, end, before)
            except DamagedFileError:  # unless rows were dropped between two reads
                rows, before = self._page(model, after, end, before)
            if end == head.seq and before != head.chain and self._heads_of(model) == [head]:
                raise DamagedFileError(f"the log of {model!r} is cut off: it should reach position {head.seq}")
            if end == head.seq:
                self._known[model] = head
            yield from rows
            after = end

    def _heads_of(self, model: str) -> list[Head]:
        return [Head(*row) for row in self._read("SELECT seq, chain FROM head WHERE model = ?", (model,))]

    def _page(self, model: str, after: int, end: int, before: bytes) -> tuple[list[Row], bytes]:
        """Return the rows in (after, end], each checked against the digest before it, and the last digest."""
        values, where = (model, after, end), "WHERE model = ? AND seq > ? AND seq <= ? ORDER BY seq"
        gaps = [gap for gap in self.gaps(model) if gap.last > after and gap.first <= end]
        decisions = self._read(f"SELECT {DECISION} FROM decision {where}", values)
        events = self._read(f"SELECT {EVENT} FROM event {where}", values)
        rows: list[Row] = []
        parts: tuple[Iterable[tuple[int, bool, Any]], ...] = (
            ((gap.first, True, gap) for gap in gaps),
            ((row[0], False, row) for row in decisions),
            ((row[0], False, row) for row in events),
        )
        for place, is_gap, found in merge(*parts, key=_place):
            if is_gap:
                if place > after and found.before != before:
                    raise DamagedFileError(f"rows of {model!r} are missing before position {place}")
                before = found.after
                continue
            row = checked(before, found)
            if row is None:
                raise DamagedFileError(f"the row at position {place} of {model!r}, or the one before, was altered")
            before = row.chain
            rows.append(row)
        return rows, before

    def gaps(self, model: str) -> list[Gap]:
        """Return the ranges of a model's dropped rows, in order."""
        found = []
        for *values, mark in self._read(f"SELECT {_GAP}, seal FROM gap WHERE model = ? ORDER BY first", (model,)):
            if seal(model, *values) != mark:
                raise DamagedFileError(f"the record of dropped rows of {model!r} was altered")
            found.append(Gap._make(values))
        return found

    def last(self, model: str) -> int:
        return max((head.seq for head in self._heads_of(model)), default=0)

    def check(self, model: str) -> list[str]:
        found: list[str] = []
        try:
            found += self._whole()
            self.settings(model)
            found += self._snapshots(model)[1]
            self.purged(model)
            for place in self.plans(model):
                self.plan(model, place)
            for _ in self.log(model):
                pass
        except (DamagedFileError, StoreError) as error:
            found.append(str(error))
        return found

    def settings(self, model: str) -> list[SettingsRow]:
        found = []
        statement = f"SELECT {_SETTINGS}, seal FROM settings WHERE model = ? ORDER BY version"
        for *values, mark in self._read(statement, (model,)):
            if seal(*values) != mark:
                raise DamagedFileError(f"version {values[1]} of the settings of {model!r} was altered")
            found.append(SettingsRow._make(values))
        if [row.version for row in found] != list(range(1, len(found) + 1)):
            raise DamagedFileError(f"versions of the settings of {model!r} are missing")
        return found

    def add_settings(self, row: SettingsRow) -> None:
        try:
            with self._transaction():
                self._write(_insert("settings", (*SettingsRow._fields, "seal")), [(*row, seal(*row))])
        except ConflictError:
            text = f"model {row.model!r} already has version {row.version} of its settings"
            raise ConflictError(text) from None

    def models(self) -> list[str]:
        return [row[0] for row in self._read("SELECT DISTINCT model FROM settings ORDER BY model")]

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        with self._transaction():
            if row.seq and self.chain(row.model, row.seq) != row.chain:
                raise self._differs(row.model, row.seq)
            same = "FROM snapshot WHERE model = ? AND seq = ?"
            if not row.base and self._read(f"SELECT 1 {same} AND base = 1", (row.model, row.seq)):
                return  # the log starts here: dropped rows are nowhere else
            self._write(f"DELETE {same}", [(row.model, row.seq)])
            self._insert_snapshot(row)
            self._write(
                "DELETE FROM snapshot WHERE model = ? AND base = 0 AND seq NOT IN "
                f"(SELECT seq FROM snapshot WHERE model = ? ORDER BY seq DESC LIMIT {int(keep)})",
                [(row.model, row.model)],
            )

    def _insert_snapshot(self, row: SnapshotRow) -> None:
        self._write(_insert("snapshot", (*SnapshotRow._fields, "seal")), [(*row, _seal_snapshot(row))])

    def snapshots(self, model: str) -> list[SnapshotRow]:
        found, damaged = self._snapshots(model)
        for sentence in damaged:
            _log.warning("%s; it is skipped", sentence)
        return found

    def _snapshots(self, model: str) -> tuple[list[SnapshotRow], list[str]]:
        """Return the intact snapshots, latest first, and sentences about the others."""
        found, damaged = [], []
        statement = f"SELECT {_SNAPSHOT}, seal FROM snapshot WHERE model = ? ORDER BY seq DESC"
        for *values, mark in self._read(statement, (model,)):
            row = SnapshotRow._make(values)
            if _seal_snapshot(row) == mark:
                found.append(row)
            else:
                damaged.append(f"the snapshot at position {row.seq} of {model!r} was altered")
        return found, damaged

    def drop(
        self, ids: Sequence[str], row: EventRow, after: Head, base: Callable[[], SnapshotRow], before: float | None
    ) -> None:
        model = row.model
        with self._transaction():
            heads = self._heads()
            if heads.get(model, (0, b"")) != after:
                raise ConflictError(f"the log of {model!r} has grown in the meantime")
            reached = self._append([row], heads)
            self._write("DELETE FROM snapshot WHERE model = ?", [(model,)])
            self._insert_snapshot(base())
            of_model = "WHERE model = ? AND id = ?"
            places = [
                each[0]
                for table in ("decision", "event")
                for name in ids
                for each in self._read(f"SELECT seq FROM {table} {of_model}", (model, name))
            ]
            done = "WHERE model = ? AND seq < ? AND (kind = 'tick' OR kind = 'drop')"
            if before is not None:  # the effect of ticks is in the base
                places += [each[0] for each in self._read(f"SELECT seq FROM event {done}", (model, row.seq))]
            gaps = merge_gaps([*self.gaps(model), *self._singles(model, sorted(places))])
            for table in ("decision", "event") if places else ():
                self._write(f"DELETE FROM {table} WHERE seq = ?", [(place,) for place in places])
            self._write("DELETE FROM gap WHERE model = ?", [(model,)])
            if gaps:
                sealed = [(model, *gap, seal(model, *gap)) for gap in gaps]
                self._write(_insert("gap", ("model", *Gap._fields, "seal")), sealed)
            known = [(model, _short(name)) for name in ids if before is None or SEPARATOR in name]
            if known:
                self._write(_ERASED, known)
            if before is not None:
                self._set_purged(model, before)
        self._known |= reached
        self._scrub()

    def _singles(self, model: str, places: Sequence[int]) -> list[Gap]:
        """Return a gap for each of the ascending positions, with the digests before and after it."""
        part = "SELECT {0}, {1} FROM {2} WHERE model = ? AND {3} >= ? AND {3} < ?"
        tables = (*_CHAINS, ("last", "after", "gap", "last"))
        statement = " UNION ALL ".join(part.format(*each) for each in tables) + " ORDER BY 1"
        found: list[Gap] = []
        wanted, end = set(places), 0
        for place in places:
            if place < end:
                continue
            end, before = place + _PAGE, self._chain_upto(model, place - 1)
            for each, chain in self._read(statement, (model, place, end) * 3):
                if each in wanted:
                    found.append(Gap(each, each, before, chain))
                before = chain
        return found

    def alone(self, what: str) -> AbstractContextManager[bool]:
        return nullcontext(True)

    def time(self) -> float:
        return time.time()

    def purged(self, model: str) -> float:
        rows = self._read("SELECT before, seal FROM purged WHERE model = ?", (model,))
        if rows and seal(model, rows[0][0]) != rows[0][1]:
            raise DamagedFileError(f"the time up to which decisions of {model!r} were purged was altered")
        return float(rows[0][0]) if rows else 0.0

    def all_forgotten(self, model: str) -> tuple[float, list[bytes]]:
        """Return the time up to which decisions were purged, and the digests of erased ids."""
        return self.purged(model), [row[0] for row in self._read("SELECT id FROM erased WHERE model = ?", (model,))]

    def set_forgotten(self, model: str, before: float, erased: Sequence[bytes]) -> None:
        """Copy what another store of this kind has forgotten."""
        with self._transaction():
            self._set_purged(model, before)
            if erased:
                self._write(_ERASED, [(model, each) for each in erased])

    def _set_purged(self, model: str, before: float) -> None:
        latest = max(float(before), self.purged(model))
        self._write("DELETE FROM purged WHERE model = ?", [(model,)])
        self._write(_insert("purged", ("model", "before", "seal")), [(model, latest, seal(model, latest))])

    def forgotten(self, model: str, id: str) -> bool:  # noqa: A002
        made = time_of(id)
        if made is not None and made < self.purged(model):
            return True
        return bool(self._read("SELECT 1 FROM erased WHERE model = ? AND id = ?", (model, _short(id))))


def _place(found: tuple[int, bool, Any]) -> int:
    return found[0]


def _seal_plan(row: PlanRow) -> bytes:
    return seal(*(each for name, each in zip(row._fields, row, strict=True) if name != "content"))


def _seal_snapshot(row: SnapshotRow) -> bytes:
    return seal(*(each for name, each in zip(row._fields, row, strict=True) if name not in ("header", "arrays")))
