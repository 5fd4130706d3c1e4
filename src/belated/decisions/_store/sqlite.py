"""The store in a SQLite file: the default. What it has acknowledged survives a crash and a power cut."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import IO, Any

from belated._util.validate import refuse
from belated.decisions._operations import ConflictError, StoreError, StoreFullError
from belated.decisions._store.sql import SQLStore
from belated.errors import DamagedFileError

#: Older versions can damage a file if one connection writes while another moves its log into the file.
SAFE = (3, 51, 3)
#: Marks the file as ours.
_APPLICATION = 0x62656C61

_log = logging.getLogger(__name__)


class SQLiteStore(SQLStore):
    """A `Store` in a file of SQLite, for one process.

    One connection does all the writing; a lock on a file beside it keeps other processes away. Every commit waits for
    the disk (`synchronous=FULL`); keep the file on a local one. With `durable=False` it does not, and a power cut can
    take the last commits back, but nothing is torn.
    """

    types = {"int": "INTEGER", "real": "REAL", "text": "TEXT", "blob": "BLOB", "strict": " STRICT"}  # noqa: RUF012

    def __init__(self, path: str | Path, *, durable: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        self._mutex = RLock()
        self._broken = ""
        self._locked: IO[str] | None = None if read_only else _lock(self.path)
        try:
            self._open(durable, read_only)
        except BaseException:
            self.close()
            raise

    def _open(self, durable: bool, read_only: bool) -> None:
        if read_only and not self.path.is_file():
            raise FileNotFoundError(f"there is no store {self.path}")
        if not read_only:
            _make_private(self.path)
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        try:
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            exists = self._read("SELECT count(*) FROM sqlite_master WHERE name = 'belated'")[0][0] == 1
            empty = self._read("SELECT count(*) FROM sqlite_master")[0][0] == 0
            if not exists and (read_only or not empty):
                raise DamagedFileError(f"{self.path} is a SQLite file, but not a store of decisions")
            if not read_only:
                self._prepare(durable, exists)
            if not exists:
                with self._transaction():
                    self._create_tables()
            self._check_schema()
        except sqlite3.DatabaseError as error:
            raise DamagedFileError(f"{self.path} cannot be read as a store: {error}") from None
        self._last = max(self._read(f"SELECT max(seq) FROM {table}")[0][0] or 0 for table in ("decision", "event"))
        self._last = max(self._last, self._read("SELECT max(seq) FROM snapshot")[0][0] or 0)

    def _prepare(self, durable: bool, exists: bool) -> None:
        if sqlite3.sqlite_version_info < SAFE:
            wanted, given = ".".join(map(str, SAFE)), sqlite3.sqlite_version
            _log.warning("SQLite %s is older than %s: let no other program write to %s", given, wanted, self.path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._connection.execute("PRAGMA busy_timeout = 5000")
        self._connection.execute("PRAGMA temp_store = MEMORY")
        if not exists:
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            if self._broken:
                raise StoreError(f"the store {self.path} must be opened again: {self._broken}")
            last = self._last if hasattr(self, "_last") else 0
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._last = last
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._translate(error) from error
                raise

    def _translate(self, error: sqlite3.Error) -> Exception:
        """Return our error; after one that leaves it unknown whether the disk has the data, nothing more is written."""
        if isinstance(error, sqlite3.IntegrityError):
            return ConflictError(f"already in the store: {error}")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFullError(f"there is no space left for the store {self.path}")
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            self._broken = str(error)
        return StoreError(f"the store {self.path} cannot be written: {error}")

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._mutex:
            return self._connection.execute(statement, values).fetchall()

    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        if len(rows) == 1:
            return self._connection.execute(statement, rows[0]).rowcount
        return self._connection.executemany(statement, rows).rowcount

    def _places(self, count: int) -> list[int]:
        first = self._last + 1
        self._last += count
        return list(range(first, first + count))

    def backup(self, path: str | Path) -> None:
        """Copy the store to a new file, whole or not at all, while it is in use."""
        target = Path(path)
        if target.exists():
            raise refuse("the backup", str(target), "a file that is not there yet")
        part = target.with_name(target.name + ".part")
        part.unlink(missing_ok=True)
        _make_private(part)
        other = sqlite3.connect(part)
        try:
            with self._mutex:
                self._connection.backup(other)
            other.close()
            part.rename(target)
        except sqlite3.Error as error:
            raise DamagedFileError(f"{self.path} could not be copied: {error}") from None
        finally:
            other.close()
            part.unlink(missing_ok=True)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the file and of its write-ahead log."""
        files = {"file": self.path, "log": self.path.with_name(self.path.name + "-wal")}
        return {name: path.stat().st_size for name, path in files.items() if path.exists()}

    def check(self) -> list[str]:
        """Run SQLite's integrity check and return what it finds: empty if all is well."""
        found = [str(row[0]) for row in self._read("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        with self._mutex:
            if hasattr(self, "_connection"):
                self._connection.close()
            if self._locked is not None:
                self._locked.close()
                self._locked = None


def _make_private(path: Path) -> None:
    """Make a file that only its owner can read, unless it is there; SQLite gives its other files the same rights."""
    with suppress(OSError):  # what opens it next says so
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


def _lock(path: Path) -> IO[str]:
    """Lock a file beside the store and return it; the system releases the lock whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".lock")
    _make_private(beside)
    file = beside.open("a+")
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            getattr(msvcrt, "locking")(file.fileno(), getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
    except OSError:
        file.close()
        raise StoreError(f"the store {path} is in use by another process, or opened twice in this one") from None
    return file
