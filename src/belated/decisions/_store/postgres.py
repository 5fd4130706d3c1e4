"""The store on a PostgreSQL server, shared by any number of processes.

Every process applies the whole log itself, so there is no leader, and any process may stop at any time. This requires a
total order of the log: a commit holds a database lock, under which positions are assigned, until it is done, so that a
position never becomes visible before a smaller one. Many rows per commit keep that cheap.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from threading import RLock
from typing import Any

from belated._util.shown import mask
from belated.decisions._operations import ConflictError, StoreError, StoreFullError
from belated.decisions._store.sql import SQLStore
from belated.errors import BelatedError, InvalidInputError

#: Name of the database schema; key of the lock under which rows are appended.
SCHEMA, _LOCK = "belated", 0x62656C6174656421
#: Timeouts in seconds: to connect, for the lock, for one statement, and without a response from the server.
CONNECTING, LOCK, STATEMENT, SILENCE = 5, 5, 15, 20
#: The libpq parameters for these, unless the URL sets them.
_PARAMETERS = {
    "connect_timeout": CONNECTING,
    "tcp_user_timeout": 1000 * SILENCE,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


#: The error shows nothing of the URL, since any part of it may belong to a password.
_UNREADABLE = "the URL of a PostgreSQL store must look like postgresql://user:password@host/name, percent-encoded"


class PostgresStore(SQLStore):
    """A `Store` in a PostgreSQL database, for several processes.

    `address` is a connection string for psycopg, such as `postgresql://user@host/database`.
    """

    types = {"int": "BIGINT", "real": "DOUBLE PRECISION", "text": "TEXT", "blob": "BYTEA", "strict": ""}  # noqa: RUF012
    shared = True

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise BelatedError("a PostgreSQL store needs psycopg: pip install 'psycopg[binary]'") from None
        _check_address(address)
        super().__init__()
        self._psycopg: Any = psycopg
        self._mutex = RLock()
        self._connection: Any = None
        self._address = address
        self._connect()
        with self._transaction():  # one process at a time
            self._write(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}", [()])
            there = "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename = 'belated'"
            if not self._read(there, (SCHEMA,))[0][0]:
                self._create_tables()
        self._check_schema()

    def _connect(self) -> None:
        """Connect; a reconnection must reach the same store."""
        try:
            limits = f"-c statement_timeout={STATEMENT}s -c lock_timeout={LOCK}s"
            given = {**_PARAMETERS, **self._psycopg.conninfo.conninfo_to_dict(self._address)}
            given["options"] = f"-c search_path={SCHEMA} -c synchronous_commit=on {limits}"
            self._connection = _bounded(self._psycopg).connect(**given, autocommit=True)
        except self._psycopg.ProgrammingError:
            raise InvalidInputError(_UNREADABLE) from None
        except self._psycopg.Error as error:
            raise StoreError(f"the PostgreSQL store cannot be reached: {mask(str(error))}") from None
        if self.id:
            self._check_schema()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            try:
                if self._connection.closed:
                    self._connect()
                with self._connection.transaction():
                    self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                    yield
            except self._psycopg.Error as error:
                raise self._translate(error) from error

    def _translate(self, error: Any) -> Exception:
        if isinstance(error, self._psycopg.errors.IntegrityError):
            return ConflictError(f"already in the store: {error}")
        if isinstance(error, self._psycopg.errors.DiskFull):
            return StoreFullError(f"there is no space left for the store: {error}")
        return StoreError(f"the PostgreSQL store cannot be written: {error}")

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._mutex:
            try:
                if self._connection.closed:
                    self._connect()
                rows: list[tuple[Any, ...]] = self._connection.execute(_dialect(statement), values).fetchall()
                return rows
            except self._psycopg.Error as error:
                raise StoreError(f"the PostgreSQL store cannot be read: {error}") from error

    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        with self._connection.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(_dialect(statement), rows[0])
            elif rows:
                cursor.executemany(_dialect(statement), rows)
            return int(cursor.rowcount)

    def _whole(self) -> list[str]:
        """Let the server check its tables and indices, if the extension amcheck is installed."""
        if not self._read("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"):
            return []
        try:
            ours = "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?"
            self._read(f"SELECT bt_index_check(c.oid, true) {ours} AND c.relkind = 'i'", (SCHEMA,))
            tables = self._read(f"SELECT c.oid, c.relname {ours} AND c.relkind = 'r'", (SCHEMA,))
            return [
                f"table {name}: {row[0]}"
                for table, name in tables
                for row in self._read("SELECT msg FROM verify_heapam(?)", (table,))
            ]
        except StoreError as error:
            return [str(error)]

    def _scrub(self) -> None:
        """Do nothing: it would take VACUUM FULL, which locks the tables."""

    @contextmanager
    def alone(self, what: str) -> Iterator[bool]:
        """Hold an advisory lock, which ends with the connection, if it is free."""
        number = int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "little", signed=True)
        alone = bool(self._read("SELECT pg_try_advisory_lock(?)", (number,))[0][0])
        try:
            yield alone
        finally:
            if alone:
                self._read("SELECT pg_advisory_unlock(?)", (number,))

    def time(self) -> float:
        return float(self._read("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the tables, with their indices."""
        size = "sum(pg_total_relation_size(schemaname || '.' || tablename))"
        found = self._read(f"SELECT {size} FROM pg_tables WHERE schemaname = ?", (SCHEMA,))
        return {"tables": int(found[0][0] or 0)}

    def close(self) -> None:
        with self._mutex:
            if self._connection is not None:
                self._connection.close()


def _check_address(address: str) -> None:
    """Raise InvalidInputError if psycopg would misparse the password and show part of it in an error."""
    credentials = address.partition("://")[2].rpartition("@")[0]
    if credentials.count(":") > 1 or re.search(r"[\s@/?#\[\]]", credentials):
        raise InvalidInputError(_UNREADABLE)


@cache
def _bounded(psycopg: Any) -> Any:
    """Return a connection class that gives up on an unresponsive server, and closes the connection.

    A working server cancels slow statements itself; if the server hangs, only the client can notice.
    """

    class Bounded(psycopg.Connection):  # type: ignore[misc]
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(self._watched(gen), *args, **options)

        def _watched(self, gen: Any) -> Any:
            heard = time.monotonic()
            try:
                waits = next(gen)
                while True:
                    ready, now = (yield waits), time.monotonic()
                    if ready:
                        heard = now
                    elif now - heard > SILENCE:
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"no response within {SILENCE} seconds")
                    waits = gen.send(ready)
            except StopIteration as ended:
                return ended.value

    return Bounded


def _dialect(statement: str) -> str:
    return statement.replace("?", "%s")
