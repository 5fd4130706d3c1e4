"""API keys with scopes, stored as hashes and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belated._util.validate import refuse
from belated.errors import BelatedError, InvalidInputError

_log = logging.getLogger(__name__)

SCOPES = ("decide", "feedback", "read", "admin")
"""Request, activate and cancel decisions; report rewards; read; change models and erase."""


@dataclass(frozen=True)
class Key:
    """A key, known by its hash only."""

    name: str
    sha256: str
    scopes: frozenset[str]


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _scope(name: str, value: Any) -> str:
    if value not in SCOPES:
        raise refuse(name, value, f"one of {', '.join(SCOPES)}")
    return str(value)


def new_key(name: str, scopes: Iterable[str]) -> tuple[str, str]:
    """Return a new key, to be shown once, and its lines for a key file."""
    if not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise refuse("name", name, "letters, digits, - and _")
    chosen = [_scope("scope", scope) for scope in scopes]
    if not chosen:
        raise refuse("scopes", chosen, f"one or more of {', '.join(SCOPES)}")
    key = secrets.token_urlsafe(32)
    listed = ", ".join(f'"{scope}"' for scope in chosen)
    return key, f'[keys.{name}]\nsha256 = "{digest(key)}"\nscopes = [{listed}]\n'


def add_key(path: Path, name: str, scopes: Iterable[str]) -> str:
    """Add a new key to a file and return the key; a new file is readable by its owner only."""
    key, lines = new_key(name, scopes)
    known = load_keys(path) if path.exists() else []
    if name in {each.name for each in known}:
        raise refuse("name", name, f"a name that is not in {path} yet")
    before = path.read_text(encoding="utf-8") if known else ""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
        file.write(lines if not before or before.endswith("\n") else f"\n{lines}")
    return key


def load_keys(path: str | Path) -> list[Key]:
    """Read a key file: a table `[keys.NAME]` for each key, with `sha256` and `scopes`."""
    try:
        tables: Any = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("keys", {})
    except OSError as error:
        raise refuse("keys", str(path), f"a file that can be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
    if not isinstance(tables, dict) or not tables:
        raise InvalidInputError(f"{path} must have a table [keys.NAME] for each key")
    found = []
    for name, table in tables.items():
        where = f"keys.{name} of {path}"
        if not isinstance(table, dict) or set(table) != {"sha256", "scopes"}:
            raise InvalidInputError(f"{where} must have the fields sha256 and scopes, and no others")
        hashed, scopes = table["sha256"], table["scopes"]
        if not isinstance(hashed, str) or len(hashed) != 64 or not set(hashed) <= set("0123456789abcdef"):
            raise refuse(f"sha256 of {where}", hashed, "64 lower-case hexadecimal digits")
        if not isinstance(scopes, list) or not scopes:
            raise refuse(f"scopes of {where}", scopes, f"a list of {', '.join(SCOPES)}")
        found.append(Key(name, hashed, frozenset(_scope(f"scopes of {where}", scope) for scope in scopes)))
    return found


class Keyring:
    """All keys of a service; without any, everyone on this machine has all scopes.

    The file is read again whenever it has changed, so that removing a key revokes it at once. An invalid file is
    reported in the log and changes nothing.
    """

    def __init__(self, keys: Iterable[Key] = (), path: Path | None = None) -> None:
        self._keys, self._path = tuple(keys), path
        self._seen = None if path is None else _state(path)
        if path is not None:
            self._keys = tuple(load_keys(path))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def _look(self) -> None:
        assert self._path is not None
        state = _state(self._path)
        if state == self._seen:
            return
        self._seen = state
        try:
            self._keys = tuple(load_keys(self._path))
        except BelatedError as error:
            _log.error("the keys were not reloaded: %s", error)

    def scopes(self, given: str | None) -> frozenset[str] | None:
        """Return the scopes of a key; None if it is unknown. Compares in constant time."""
        if self._path is not None:
            self._look()
        if not self._keys:
            return frozenset(SCOPES)
        hashed = digest(given or "")
        found: frozenset[str] | None = None
        for key in self._keys:
            if hmac.compare_digest(key.sha256, hashed):
                found = key.scopes
        return found if given else None


def _state(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes whenever the file does; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
