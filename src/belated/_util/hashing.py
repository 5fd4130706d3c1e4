"""Where a named term goes in a vector of hashed features: the same on every machine and for ever."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

#: Between the names of two terms whose product is a term.
CROSS = "\x1f"


@lru_cache(maxsize=100_000)
def hashed_place(name: str, places: int) -> tuple[int, float]:
    """Return the place and the sign of a hashed term, by BLAKE2.

    >>> hashed_place("country=DE", 64)
    (1, 1.0)
    """
    number = int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"belated-1").digest(), "little")
    return (number >> 1) % places, 1.0 if number & 1 else -1.0
