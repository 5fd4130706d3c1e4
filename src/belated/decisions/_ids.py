"""Ids that are unique across restarts, processes and machines and sort by time (UUID version 7), and the clock.

All rows of the log get their time from the same clock.
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
#: Seconds for which a reading of a remote clock is extrapolated by local elapsed time.
CARRIED = 10.0


#: A monotonic clock that cannot be set; includes time asleep where the system supports it.
passed: Clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class CheckedClock:
    """A clock that is checked against elapsed time: a jump of more than `STEP` seconds raises `ClockError`.

    A single wrong reading would do permanent harm, since the log's time never runs backwards: no window would close
    until the true time had caught up. The error persists until the clock is right again, or a new process accepts it as
    it is: a virtual machine that was paused does not know that time has passed.

    A `far` clock, such as a database's, is read only now and then. Its first reading must agree with this machine's
    clock, since nothing else can confirm it.
    """

    def __init__(self, read: Clock, *, far: bool = False, own: Clock = time.time, passed: Clock = passed) -> None:
        self._read, self._far, self._own, self._passed = read, far, own, passed
        self._last: tuple[float, float] | None = None  # the latest plausible reading, and when it was taken

    def __call__(self) -> float:
        """Return the time; raise ClockError if it is implausible."""
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
                f"{other}{seen} is {duration(abs(now - expected))} {which} the expected time: correct it, or restart "
                "if it is right now"
            )
        self._last = now, began
        return now

    def carried(self) -> float:
        """Return the latest plausible reading plus the elapsed time; nothing is read or checked."""
        return self._own() if self._last is None else self._last[0] + self._passed() - self._last[1]

    def offset(self) -> float:
        """Return how many seconds this machine's clock is ahead of this one."""
        return self._own() - self.carried()


class _Tails:
    """Random tails of ids, generated in batches; not shared with a forked child."""

    def __init__(self) -> None:
        self._made: list[str] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._made.clear)

    def __call__(self) -> str:
        try:
            return self._made.pop()  # atomic: two threads never get the same
        except IndexError:
            some = os.urandom(2560).hex()
            self._made += [tail_of(some[first : first + 20]) for first in range(20, len(some), 20)]
            return tail_of(some[:20])


_VARIANT = {f"{digit:x}": f"{8 | digit & 3:x}" for digit in range(16)}


def tail_of(random: str) -> str:
    """Return the part of an id after the time: 74 of 80 random bits, and the 6 bits that mark a UUID of version 7."""
    return f"7{random[:3]}-{_VARIANT[random[4]]}{random[5:8]}-{random[8:]}"


def new_id(now: float, tail: Callable[[], str] = _Tails()) -> str:  # noqa: B008
    """Return a new id: 48 bits of milliseconds followed by a tail.

    >>> new_id(1.5, lambda: tail_of("0" * 20))
    '00000000-05dc-7000-8000-000000000000'
    """
    return _head(int(now * 1000.0)) + tail()


@lru_cache(maxsize=4)
def _head(milliseconds: int) -> str:
    """Return the time part of an id; cached, since many ids are made in the same millisecond."""
    time = f"{max(0, milliseconds) & 0xFFFF_FFFF_FFFF:012x}"
    return f"{time[:8]}-{time[8:]}-"


_OURS = re.compile("([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def time_of(id: str) -> float | None:  # noqa: A002
    """Return when an id was made, in seconds since 1970, or None if it was not made by `new_id`.

    >>> time_of(new_id(12.0)), time_of("order 7")
    (12.0, None)
    """
    found = _OURS.fullmatch(id)
    return None if found is None else int(found[1] + found[2], 16) / 1000.0
