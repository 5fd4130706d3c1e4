"""What the stores on SQL databases share: one schema, and the same statements."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from heapq import merge
from operator import attrgetter
from typing import Any

from belated.decisions._ids import time_of
from belated.decisions._operations import ConflictError
from belated.decisions._rows import DecisionRow, EventRow, Row, SettingsRow, SnapshotRow
from belated.errors import DamagedFileError

#: Of the tables below. A store with a newer one is refused.
SCHEMA = 1
#: Places of the log that are read at a time.
_PAGE = 5_000

TABLES = """
CREATE TABLE decision (
  seq {int} PRIMARY KEY, model {text} NOT NULL, id {text} NOT NULL UNIQUE, number {int} NOT NULL, made {real} NOT NULL,
  key {text}, digest {blob}, settings {int} NOT NULL, version {int} NOT NULL, context {text} NOT NULL,
  actions {text} NOT NULL, ranking {text} NOT NULL, probabilities {blob}, probability {real} CHECK (probability > 0),
  suggestion {text}, features {blob} NOT NULL, active {int} NOT NULL, due {real}){strict};
CREATE UNIQUE INDEX decision_key ON decision (model, key) WHERE key IS NOT NULL;
CREATE INDEX decision_due ON decision (model, due) WHERE due IS NOT NULL;
CREATE TABLE event (
  seq {int} PRIMARY KEY, model {text} NOT NULL, id {text} NOT NULL, kind {text} NOT NULL, event {text} NOT NULL,
  version {int} NOT NULL, reward {real}, slot {int}, received {real} NOT NULL, observed {real}, counted {int} NOT NULL,
  due {real}, CHECK (kind <> 'reward' OR reward IS NOT NULL)){strict};
CREATE UNIQUE INDEX event_once ON event (id, event, version) WHERE kind = 'reward';
CREATE INDEX event_other ON event (id) WHERE kind <> 'reward' AND kind <> 'tick';
CREATE INDEX event_due ON event (model, due) WHERE kind = 'activate';
CREATE TABLE settings (
  model {text} NOT NULL, version {int} NOT NULL, made {real} NOT NULL, text {text} NOT NULL,
  PRIMARY KEY (model, version)){strict};
CREATE TABLE snapshot (
  model {text} NOT NULL, seq {int} NOT NULL, made {real} NOT NULL, base {int} NOT NULL, header {text} NOT NULL,
  arrays {blob} NOT NULL, digest {blob} NOT NULL, PRIMARY KEY (model, seq)){strict};
CREATE TABLE purged (model {text} PRIMARY KEY, before {real} NOT NULL){strict};
CREATE TABLE belated (schema_version {int} NOT NULL){strict};
"""

_WINDOWS = (
    "SELECT due, seq, id FROM decision WHERE model = ? AND due > ? AND due <= ?",
    "SELECT due, seq, id FROM event WHERE model = ? AND due > ? AND due <= ? AND kind = 'activate'",
)


def _insert(table: str, fields: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})"


_decision_values = attrgetter(*DecisionRow.__slots__)
_event_values = attrgetter(*EventRow.__slots__)
_RANKING = DecisionRow.__slots__.index("ranking")
_INSERT_DECISION, _INSERT_EVENT = _insert("decision", DecisionRow.__slots__), _insert("event", EventRow.__slots__)
_DECISION, _EVENT = ", ".join(DecisionRow.__slots__), ", ".join(EventRow.__slots__)


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
    row.ranking = _ranking(values[_RANKING])
    return row


class SQLStore(ABC):
    """A `Store` in SQL. A subclass brings the connection and names the types."""

    types: dict[str, str]
    shared = False

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Begin, then commit or roll back; raise the database's errors as ours. Not reentrant."""

    @abstractmethod
    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Execute a statement for each of `rows`, within a transaction; return how many rows it changed."""

    @abstractmethod
    def _places(self, count: int) -> list[int]:
        """Return new places in the log, within a transaction."""

    def _create_tables(self) -> None:
        """Make the tables, within a transaction."""
        for statement in TABLES.format(**self.types).split(";"):
            if statement.strip():
                self._write(statement, [()])
        self._write("INSERT INTO belated (schema_version) VALUES (?)", [(SCHEMA,)])

    def _check_schema(self) -> None:
        """Raise DamagedFileError unless the tables have the version that this belated reads."""
        version = self._read("SELECT max(schema_version) FROM belated")[0][0]
        if version != SCHEMA:
            raise DamagedFileError(f"the store has version {version} of the tables, this belated reads {SCHEMA}")

    def append(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        with self._transaction():
            places = self._places(len(rows))
            for row, place in zip(rows, places, strict=True):
                row.seq = place
            decisions = [_to_columns(row) for row in rows if isinstance(row, DecisionRow)]
            events = [_event_values(row) for row in rows if isinstance(row, EventRow)]
            if decisions:
                self._write(_INSERT_DECISION, decisions)
            if events:
                self._write(_INSERT_EVENT, events)

    def decision(self, id: str, before: int | None = None) -> DecisionRow | None:  # noqa: A002
        rows = self._read(f"SELECT {_DECISION} FROM decision WHERE id = ?", (id,))
        row = _to_decision(rows[0]) if rows else None
        return row if row is None or before is None or row.seq < before else None

    def keyed(self, model: str, key: str) -> DecisionRow | None:
        rows = self._read(f"SELECT {_DECISION} FROM decision WHERE model = ? AND key = ?", (model, key))
        return _to_decision(rows[0]) if rows else None

    def events(self, id: str, before: int | None = None) -> tuple[EventRow, ...]:  # noqa: A002
        rows = self._read(
            f"SELECT {_EVENT} FROM event WHERE id = ? AND kind = 'reward' UNION ALL "
            f"SELECT {_EVENT} FROM event WHERE id = ? AND kind <> 'reward' AND kind <> 'tick' ORDER BY seq",
            (id, id),
        )
        return tuple(EventRow(*row) for row in rows if before is None or row[0] < before)

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        values = (model, after, upto) if before is None else (model, after, upto, before)
        rest = "" if before is None else " AND seq < ?"
        ends = [f"{each}{rest}" for each in _WINDOWS]
        both = " UNION ALL ".join(ends)
        rows = self._read(f"{both} ORDER BY due, seq LIMIT {int(limit)}", values * 2)
        if len(rows) == limit:  # and those that end at the same moment as the last
            values = (model, after, rows[-1][0], *values[3:])
            rows = self._read(f"{both} ORDER BY due, seq", values * 2)
        return [(row[0], row[2]) for row in rows]

    def next_due(self, model: str, after: float) -> float | None:
        rows = self._read(
            "SELECT min(due) FROM decision WHERE model = ? AND due > ? UNION ALL "
            "SELECT min(due) FROM event WHERE model = ? AND due > ? AND kind = 'activate'",
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
            "ORDER BY seq LIMIT 1",
            (model, after, upto, over, over),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def log(self, model: str, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        last = self.last(model) if upto is None else min(upto, self.last(model))
        while after < last:
            end = min(after + _PAGE, last)
            values = (model, after, end)
            where = "WHERE model = ? AND seq > ? AND seq <= ? ORDER BY seq"
            decisions: list[Row] = [
                _to_decision(row) for row in self._read(f"SELECT {_DECISION} FROM decision {where}", values)
            ]
            events: list[Row] = [EventRow(*row) for row in self._read(f"SELECT {_EVENT} FROM event {where}", values)]
            yield from merge(decisions, events, key=lambda row: row.seq)
            after = end

    def last(self, model: str) -> int:
        rows = [
            row[0]
            for table in ("decision", "event")
            for row in self._read(f"SELECT seq FROM {table} WHERE model = ? ORDER BY seq DESC LIMIT 1", (model,))
        ]
        return max(rows, default=0)

    def settings(self, model: str) -> list[SettingsRow]:
        rows = self._read("SELECT model, version, made, text FROM settings WHERE model = ? ORDER BY version", (model,))
        return [SettingsRow._make(row) for row in rows]

    def add_settings(self, row: SettingsRow) -> None:
        try:
            with self._transaction():
                self._write(_insert("settings", SettingsRow._fields), [row])
        except ConflictError:
            text = f"model {row.model!r} already has version {row.version} of its settings"
            raise ConflictError(text) from None

    def models(self) -> list[str]:
        return [row[0] for row in self._read("SELECT DISTINCT model FROM settings ORDER BY model")]

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        with self._transaction():
            same = "FROM snapshot WHERE model = ? AND seq = ?"
            if self._read(f"SELECT 1 {same} AND base = 1", (row.model, row.seq)):
                row = row._replace(base=1)  # the log begins here: what was purged stands nowhere else
            self._write(f"DELETE {same}", [(row.model, row.seq)])
            self._write(_insert("snapshot", SnapshotRow._fields), [row])
            self._write(
                "DELETE FROM snapshot WHERE model = ? AND base = 0 AND seq NOT IN "
                f"(SELECT seq FROM snapshot WHERE model = ? ORDER BY seq DESC LIMIT {int(keep)})",
                [(row.model, row.model)],
            )

    def snapshots(self, model: str) -> list[SnapshotRow]:
        fields = ", ".join(SnapshotRow._fields)
        rows = self._read(f"SELECT {fields} FROM snapshot WHERE model = ? ORDER BY seq DESC", (model,))
        return [SnapshotRow._make(row) for row in rows]

    def purge(self, model: str, before: float, upto: float, base: SnapshotRow) -> int:
        old = (
            "SELECT id FROM decision WHERE model = ? AND made < ? AND (due IS NULL OR due <= ?) AND NOT EXISTS "
            "(SELECT 1 FROM event WHERE event.id = decision.id AND event.kind = 'activate' AND event.due > ?)"
        )
        values = (model, before, upto, upto)
        with self._transaction():
            self._write("DELETE FROM snapshot WHERE model = ?", [(model,)])
            self._write(_insert("snapshot", SnapshotRow._fields), [base])
            gone = self._read(old, values)
            self._write("DELETE FROM event WHERE id = ?", gone)
            self._write("DELETE FROM decision WHERE id = ?", gone)
            self._write("DELETE FROM event WHERE model = ? AND kind = 'tick' AND seq <= ?", [(model, base.seq)])
            latest = max(before, self.purged(model))
            self._write("DELETE FROM purged WHERE model = ?", [(model,)])
            self._write("INSERT INTO purged (model, before) VALUES (?, ?)", [(model, latest)])
        return len(gone)

    def time(self) -> float:
        return time.time()

    def purged(self, model: str) -> float:
        rows = self._read("SELECT before FROM purged WHERE model = ?", (model,))
        return float(rows[0][0]) if rows else 0.0

    def forgotten(self, model: str, id: str) -> bool:  # noqa: A002
        made = time_of(id)
        return made is not None and made < self.purged(model)
