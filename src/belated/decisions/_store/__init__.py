"""Stores for the log: in memory, in a SQLite file, or on a PostgreSQL server."""

from belated.decisions._store.base import Store
from belated.decisions._store.memory import MemoryStore
from belated.decisions._store.sqlite import SQLiteStore

__all__ = ["MemoryStore", "SQLiteStore", "Store", "open_store"]


def open_store(where: str) -> Store:
    """Open the store at a path, or at a URL such as postgresql://host/name."""
    if where.startswith(("postgresql://", "postgres://")):
        from belated.decisions._store.postgres import PostgresStore

        return PostgresStore(where)
    return SQLiteStore(where)
