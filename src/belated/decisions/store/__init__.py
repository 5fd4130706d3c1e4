"""Where the log is kept: in memory, in a SQLite file, or on a PostgreSQL server."""

from belated.decisions.store.base import Store
from belated.decisions.store.memory import MemoryStore
from belated.decisions.store.sqlite import SQLiteStore

__all__ = ["MemoryStore", "SQLiteStore", "Store"]
