"""Where the log is kept: in memory, in a SQLite file, or on a PostgreSQL server."""

from belated.decisions._store.base import Store
from belated.decisions._store.memory import MemoryStore
from belated.decisions._store.sqlite import SQLiteStore

__all__ = ["MemoryStore", "SQLiteStore", "Store"]
