"""Ids that no two decisions share, across restarts, processes and machines, and that sort by time (UUID version 7).

And the clock that they, and all rows of the log, get their time from.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial

from belated.decisions._operations import STEP, ClockError, duration

#: A clock returns seconds since 1970. Tests and replays use their own.
Clock = Callable[[], float]
#: Seconds for which a reading of a clock that is far away is carried on by the time that has passed here.
CARRIED = 10.0


#: The seconds that have passed since some moment, sleep of the machine included where it tells; nobody can set it.
passed: Clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class CheckedClock:
    """A clock that is checked against the time that has passed: a jump of more than `STEP` seconds is refused.

    One wrong reading would do harm for good, since the log's time never runs backwards: no window ends until the true
    time has caught up. What is refused stays refused until the clock is right again, or a new process takes it as it
    is: a machine that was halted from outside does not know that time has passed.

    A clock that is `far` away, such as a database's, is read now and then. At the first reading it must agree with the
    clock of this machine, as nothing else can tell whether it is right.
    """

    def __init__(self, read: Clock, *, far: bool = False, own: Clock = time.time, passed: Clock = passed) -> None:
        self._read, self._far, self._own, self._passed = read, far, own, passed
        self._last: tuple[float, float] | None = None  # the latest reading that was right, and when it was

    def __call__(self) -> float:
        """Return the time; raise ClockError if it cannot be right."""
        began, last = self._passed(), self._last
        if last is not None:
            expected = last[0] + began - last[1]
            if self._far and began - last[1] < CARRIED:
                return expected
            now = self._read()
        else:
            now = self._read()
            expected = self._own() if self._far else now
        if not abs(now - expected) <= STEP:
            other = "the clock of the database" if self._far else "the clock"
            seen = ", seen from this machine," if self._far and last is None else ""
            which = "ahead of" if now > expected else "behind"
            raise ClockError(
                f"{other}{seen} is {duration(abs(now - expected))} {which} where it should be: set it right, or start "
                "again if it is right now"
            )
        self._last = now, began
        return now

    def carried(self) -> float:
        """Return the time that the latest good reading comes to by now; nothing is read or checked."""
        return self._own() if self._last is None else self._last[0] + self._passed() - self._last[1]

    def offset(self) -> float:
        """Return by how many seconds the clock of this machine is ahead of this one."""
        return self._own() - self.carried()


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


_OURS = re.compile("([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def time_of(id: str) -> float | None:  # noqa: A002
    """Return when an id was made, in seconds since 1970, or None if it is not one of ours.

    >>> time_of(new_id(12.0)), time_of("order 7")
    (12.0, None)
    """
    found = _OURS.fullmatch(id)
    return None if found is None else int(found[1] + found[2], 16) / 1000.0
