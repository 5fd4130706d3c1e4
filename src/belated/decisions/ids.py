"""Ids that no two decisions share, across restarts, processes and machines, and that sort by time (UUID version 7)."""

from __future__ import annotations

import os
from collections.abc import Callable

#: A clock returns seconds since 1970. Tests and replays use their own.
Clock = Callable[[], float]


def new_id(now: float, entropy: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id: 48 bits of milliseconds, 74 random bits, and the 6 that mark a UUID of version 7.

    >>> new_id(1.5, lambda n: bytes(n))
    '00000000-05dc-7000-8000-000000000000'
    """
    time = max(0, int(now * 1000.0)) & 0xFFFF_FFFF_FFFF
    tail = int.from_bytes(entropy(10), "big")
    variant, rest = 0x8000 | (tail >> 48) & 0x3FFF, tail & 0xFFFF_FFFF_FFFF
    return f"{time >> 16:08x}-{time & 0xFFFF:04x}-7{tail >> 68:03x}-{variant:04x}-{rest:012x}"


def time_of(id: str) -> float | None:  # noqa: A002
    """Return when an id was made, in seconds since 1970, or None if it is not one of ours.

    >>> time_of(new_id(12.0)), time_of("order 7")
    (12.0, None)
    """
    parts = id.split("-")
    if [len(part) for part in parts] != [8, 4, 4, 4, 12] or parts[2][0] != "7" or parts[3][0] not in "89ab":
        return None
    if not set("".join(parts)) <= set("0123456789abcdef"):
        return None
    return int(parts[0] + parts[1], 16) / 1000.0
