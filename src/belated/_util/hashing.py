"""Hashing named terms into feature vectors, identically on every machine."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

_BITS = 2**64 - 1


@lru_cache(maxsize=100_000)
def term_hash(name: str) -> int:
    """Return a 64-bit BLAKE2 hash of a term: the lowest bit is its sign, the others select its bucket.

    >>> term_hash("country=DE") % 128  # bucket 1 of 64, with sign +
    3
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"belated-1").digest(), "little")


@lru_cache(maxsize=100_000)
def product_hash(one: int, two: int) -> int:
    """Return the hash of the product of two terms from their hashes."""
    return mixed(one ^ mixed(two))


def mixed(number: int) -> int:
    """Return 64 random bits that are a function of `number` (SplitMix64)."""
    z = (number + 0x9E3779B97F4A7C15) & _BITS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS
    return z ^ (z >> 31)
