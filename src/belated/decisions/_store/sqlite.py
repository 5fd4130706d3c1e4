"""The store in a SQLite file, the default. Acknowledged rows survive a crash or a power failure."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from belated._util.validate import refuse
from belated.decisions._operations import ConflictError, StoreError, StoreFullError
from belated.decisions._store.sql import SQLStore
from belated.errors import DamagedFileError

#: Older versions can corrupt a file if one connection writes while another checkpoints.
SAFE = (3, 51, 3)
#: Marks the file as a store of belated.
_APPLICATION = 0x62656C61

_log = logging.getLogger(__name__)


class SQLiteStore(SQLStore):
    """A `Store` in a SQLite file, for one process.

    One connection does all the writing; a lock on the file itself excludes other processes, whatever path they use.
    Every commit waits for the disk (`synchronous=FULL`), which should be local. With `durable=False` it does not: a
    power failure can lose the last commits, but never leaves partial ones.
    """

    types = {"int": "INTEGER", "real": "REAL", "text": "TEXT", "blob": "BLOB", "strict": " STRICT"}  # noqa: RUF012

    def __init__(self, path: str | Path, *, durable: bool = True, read_only: bool = False) -> None:
        super().__init__()
        self.path = Path(path)
        self._mutex = RLock()
        self._broken = ""
        self._locked: _Lock | None = None if read_only else _Lock(self.path)
        self._stamp: tuple[int, ...] = ()
        try:
            self._open(durable, read_only)
        except BaseException:
            self.close()
            raise

    def _open(self, durable: bool, read_only: bool) -> None:
        if read_only and not self.path.is_file():
            raise FileNotFoundError(f"there is no store {self.path}")
        if self.path.exists() and self.path.stat().st_nlink > 1 and not self.path.is_dir():
            raise StoreError(f"the store {self.path} has several hard links, but one write-ahead log: keep one link")
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        try:
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            exists = self._read("SELECT count(*) FROM sqlite_master WHERE name = 'belated'")[0][0] == 1
            empty = self._read("SELECT count(*) FROM sqlite_master")[0][0] == 0
            if not exists and (read_only or not empty):
                raise DamagedFileError(f"{self.path} is a SQLite file, but not a store of decisions")
            if not read_only:
                self._prepare(durable, exists)
                self._stamp = self._stamped()
            if not exists:
                with self._transaction():
                    self._create_tables()
            self._check_schema()
        except (sqlite3.DatabaseError, StoreError, UnicodeDecodeError) as error:  # a damaged schema is quoted
            raise DamagedFileError(f"{self.path} cannot be read as a store: {error}") from None

    def _prepare(self, durable: bool, exists: bool) -> None:
        if sqlite3.sqlite_version_info < SAFE:
            wanted, given = ".".join(map(str, SAFE)), sqlite3.sqlite_version
            _log.warning("SQLite %s is older than %s: let no other program write to %s", given, wanted, self.path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._connection.execute("PRAGMA busy_timeout = 5000")
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted rows
        if not exists:
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            if self._broken:
                raise StoreError(f"the store {self.path} must be reopened: {self._broken}")
            if self._stamp and self._stamp != self._stamped():
                self._broken = "its file was replaced, or changed by another program"
                raise StoreError(f"the store {self.path} must be reopened: {self._broken}")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._translate(error) from error
                raise
            finally:
                if self._stamp:
                    self._stamp = self._stamped()

    def _stamped(self) -> tuple[int, ...]:
        """Return a value that changes if the file is replaced or written; this process writes only in transactions."""
        try:
            found = self.path.stat()
        except OSError:
            return (0,)
        when = found.st_mtime_ns if os.name == "posix" else 0
        return found.st_dev, found.st_ino, found.st_size, when

    def _translate(self, error: sqlite3.Error, done: str = "written") -> Exception:
        """Translate an error; after one that leaves the data on disk uncertain, nothing more is written."""
        if isinstance(error, sqlite3.IntegrityError):
            return ConflictError(f"already in the store: {error}")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFullError(f"there is no space left for the store {self.path}")
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            self._broken = str(error)
        return StoreError(f"the store {self.path} cannot be {done}: {error}")

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._mutex:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise self._translate(error, "read") from error

    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        if len(rows) == 1:
            return self._connection.execute(statement, rows[0]).rowcount
        return self._connection.executemany(statement, rows).rowcount

    def backup(self, path: str | Path) -> None:
        """Copy the store to a new file atomically, even while it is in use."""
        target = Path(path)
        if target.exists():
            raise refuse("the backup", str(target), "a file that does not exist yet")
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

    def _whole(self) -> list[str]:
        """Run SQLite's integrity check, which also compares indices with tables."""
        found = [f"{self.path}: {row[0]}" for row in self._read("PRAGMA integrity_check")]
        return [] if found == [f"{self.path}: ok"] else found

    def _scrub(self) -> None:
        """Checkpoint into the file, where deleted rows are overwritten, and truncate the write-ahead log."""
        with self._mutex:
            busy = self._read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
            self._stamp = self._stamped()
        if busy:
            _log.warning("another program reads %s: until it is done, the -wal file contains dropped rows", self.path)

    def close(self) -> None:
        with self._mutex:
            if hasattr(self, "_connection"):
                self._connection.close()
            if self._locked is not None:
                self._locked.release()
                self._locked = None


def _make_private(path: Path) -> None:
    """Create a file that only its owner can read, unless it exists; SQLite's other files get the same permissions."""
    with suppress(OSError):  # the next open reports the error
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


class _Lock:
    """A lock on the file of a store, independent of its path; the system releases it when the process ends.

    SQLite's own locks belong to the process and vanish when any descriptor of the file is closed, so a file locked by
    this process is not opened again, and the lock is released after SQLite has closed the file.
    """

    _held: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = StoreError(f"the store {path} is in use by another process, or opened twice in this one")
        if path.exists() and _inode(path.stat()) in self._held:
            raise taken
        if path.is_dir():
            raise DamagedFileError(f"{path} cannot be read as a store: it is a folder")
        _make_private(path)
        self._file = (path if os.name == "posix" else path.with_name(path.name + ".lock")).open("ab")
        try:
            if os.name == "posix":
                import fcntl

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                import msvcrt

                getattr(msvcrt, "locking")(self._file.fileno(), getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
        except OSError:
            self._file.close()
            raise taken from None
        self._inode = _inode(os.fstat(self._file.fileno()))
        self._held.add(self._inode)

    def release(self) -> None:
        self._held.discard(self._inode)
        self._file.close()


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
