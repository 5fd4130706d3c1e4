"""Which decisions reach the end of their window, or of an age, as time passes.

The log is indexed by when the window of each decision ends (`due`). If an age ends `left` seconds before the window, a
decision has completed that age once due ≤ now + left; so the decisions that complete it between two times are those
whose windows end between the same times plus `left`. Floats are added and compared in this one way everywhere, here and
in `ByAge.passed`, so that rounding cannot make a decision miss an age.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from belated.decisions._silence import ByAge, Silence

#: Ages are completed in groups, at most this often per window, so learning is late by at most that fraction of the
#: window.
TICKS = 32


class Windows(Protocol):
    """Read access to the windows of a log."""

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        """Return the windows that end in (after, upto]: see `Lookup`."""

    def next_due(self, model: str, after: float) -> float | None:
        """Return when the next window after `after` ends."""


class Ages(NamedTuple):
    """The times at which something is learned from the silence of a decision."""

    left: tuple[float, ...]
    """Seconds left of the window at each of these times, first to last: only 0, or the value at the end of each age."""
    pause: float
    """Minimum number of seconds between two times at which ages are completed."""

    @classmethod
    def of(cls, silence: Silence) -> Ages:
        if isinstance(silence, ByAge) and silence.ages > 1:
            return cls(silence.left, silence.seconds / TICKS)
        return cls((0.0,), 0.0)

    def ending(
        self, log: Windows, model: str, after: float, upto: float, before: int | None, limit: int
    ) -> tuple[float, list[str]]:
        """Return the ids of decisions with a window or an age that ends in (after, upto], once for each end.

        If there are more than about `limit` ends, only those up to an earlier time. The time is returned, too.
        """
        limit = max(1, limit // len(self.left))
        found = [(left, log.due(model, after + left, upto + left, before, limit)) for left in self.left]
        reached = upto
        for left, some in found:
            if len(some) >= limit:
                last = some[-1][0]
                end = last - left
                while end + left > last:  # rounding
                    end = math.nextafter(end, -math.inf)
                reached = min(reached, end)
        if reached <= after < upto:  # all at the same time up to rounding
            return self.ending(log, model, after, upto, before, 2**31 * len(self.left))
        return reached, [name for left, some in found for due, name in some if due <= reached + left]

    def next_of(self, due: float, over: float) -> float | None:
        """Return when the next age of a decision ends after `over`; None if none is left."""
        for left in self.left:
            if due > over + left:
                return self._later(due - left, over)
        return None

    def next_end(self, log: Windows, model: str, over: float) -> float | None:
        """Return when the next window or age ends."""
        ends = [due - left for left in self.left if (due := log.next_due(model, over + left)) is not None]
        return self._later(min(ends), over) if ends else None

    def _later(self, end: float, over: float) -> float:
        return max(end, over + self.pause, math.nextafter(over, math.inf)) if self.pause else end
