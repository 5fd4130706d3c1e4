"""A PostgreSQL server for the tests, if there is one to start."""

from postgres_server import postgres, postgres_address

__all__ = ["postgres", "postgres_address"]
