"""Ids that no two decisions share, across restarts, processes and machines, and that sort by time (UUID version 7)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

#: A clock returns seconds since 1970. Tests and replays use their own.
Clock = Callable[[], float]


class _Tails:
    """Random tails of ids, made many at a time; a process that forks does not share them with its child."""

    def __init__(self) -> None:
        self._made: list[str] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._made.clear)

    def __call__(self) -> str:
        try:
            return self._made.pop()  # one operation: two threads never get the same
        except IndexError:
            some = os.urandom(2560).hex()
            self._made += [tail_of(some[first : first + 20]) for first in range(20, len(some), 20)]
            return tail_of(some[:20])


_VARIANT = {f"{digit:x}": f"{8 | digit & 3:x}" for digit in range(16)}


def tail_of(random: str) -> str:
    """Return the part of an id that is not the time: 74 of 80 random bits, and the 6 that mark a UUID of version 7."""
    return f"7{random[:3]}-{_VARIANT[random[4]]}{random[5:8]}-{random[8:]}"


def new_id(now: float, tail: Callable[[], str] = _Tails()) -> str:  # noqa: B008
    """Return a new id: 48 bits of milliseconds, and a tail.

    >>> new_id(1.5, lambda: tail_of("0" * 20))
    '00000000-05dc-7000-8000-000000000000'
    """
    return _head(int(now * 1000.0)) + tail()


@lru_cache(maxsize=4)
def _head(milliseconds: int) -> str:
    """Return the part of an id that is the time: many are made in the same millisecond."""
    time = f"{max(0, milliseconds) & 0xFFFF_FFFF_FFFF:012x}"
    return f"{time[:8]}-{time[8:]}-"


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
