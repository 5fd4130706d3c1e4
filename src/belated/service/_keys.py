"""Who may do what: keys with scopes, kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belated._util.validate import refuse
from belated.errors import InvalidInputError

SCOPES = ("decide", "feedback", "read", "admin")
"""Ask for decisions (and activate or cancel them); report rewards; look things up; change models."""


@dataclass(frozen=True)
class Key:
    """A key that is known by its hash."""

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
    """Return a new key, to be shown once, and the lines that a key file holds of it."""
    if not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise refuse("name", name, "letters, digits, - and _")
    chosen = [_scope("scope", scope) for scope in scopes]
    if not chosen:
        raise refuse("scopes", chosen, f"one or more of {', '.join(SCOPES)}")
    key = secrets.token_urlsafe(32)
    listed = ", ".join(f'"{scope}"' for scope in chosen)
    return key, f'[keys.{name}]\nsha256 = "{digest(key)}"\nscopes = [{listed}]\n'


def load_keys(path: str | Path) -> list[Key]:
    """Read a file of keys: a table `[keys.NAME]` each, with `sha256` and `scopes`."""
    try:
        tables: Any = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("keys", {})
    except OSError as error:
        raise refuse("keys", str(path), f"a file that can be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
    if not isinstance(tables, dict) or not tables:
        raise InvalidInputError(f"{path} must hold a table [keys.NAME] for each key")
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
    """All keys of a service; without any, everybody on this machine may do everything."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = tuple(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def scopes(self, given: str | None) -> frozenset[str] | None:
        """Return what a key allows; None if it is unknown. Compares in constant time."""
        if not self._keys:
            return frozenset(SCOPES)
        hashed = digest(given or "")
        found: frozenset[str] | None = None
        for key in self._keys:
            if hmac.compare_digest(key.sha256, hashed):
                found = key.scopes
        return found if given else None
