"""Where a named term goes in a vector of hashed features: the same on every machine and for ever."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

_BITS = 2**64 - 1


@lru_cache(maxsize=100_000)
def term_hash(name: str) -> int:
    """Return 64 bits of a term, by BLAKE2: the lowest is its sign, the others are its place.

    >>> term_hash("country=DE") % 128  # place 1 of 64, with the sign +
    3
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"belated-1").digest(), "little")


@lru_cache(maxsize=100_000)
def product_hash(one: int, two: int) -> int:
    """Return the hash of the product of two terms, given theirs."""
    return mixed(one ^ mixed(two))


def mixed(number: int) -> int:
    """Return 64 random bits that are a function of `number` (SplitMix64)."""
    z = (number + 0x9E3779B97F4A7C15) & _BITS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS
    return z ^ (z >> 31)
