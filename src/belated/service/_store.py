"""Open a store by its path or address."""

from __future__ import annotations

from belated.decisions import SQLiteStore, Store


def open_store(where: str) -> Store:
    """Return the store at a path, or at an address such as postgresql://host/name."""
    if where.startswith(("postgresql://", "postgres://")):
        from belated.decisions._store.postgres import PostgresStore

        return PostgresStore(where)
    return SQLiteStore(where)
