"""Which decisions come to the end of their window, or of an age, as time passes.

A log knows when the window of each decision ends. With `left` seconds left of it at the end of an age, a decision has
reached that age once due ≤ now + left; so those that reach it between two moments are found as those whose windows end
between the same moments, `left` seconds later. Sums of floats are compared in this one way everywhere, here and in
`ByAge.passed`, so that rounding cannot make a decision miss an age.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from belated.decisions._silence import ByAge, Silence

#: Ages end in groups, at most so often in one window: what is learned is late by this part of the window at most.
TICKS = 32


class Windows(Protocol):
    """What is read of a log."""

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        """Return the windows that end in (after, upto]: see `Lookup`."""

    def next_due(self, model: str, after: float) -> float | None:
        """Return when the next window after `after` ends."""


class Ages(NamedTuple):
    """When something is learned of the silence of a decision."""

    left: tuple[float, ...]
    """What is left of its window each time, first to last: nothing, or at the end of each age."""
    pause: float
    """Seconds between two times at which ages end."""

    @classmethod
    def of(cls, silence: Silence) -> Ages:
        if isinstance(silence, ByAge) and silence.ages > 1:
            return cls(silence.left, silence.seconds / TICKS)
        return cls((0.0,), 0.0)

    def ending(
        self, log: Windows, model: str, after: float, upto: float, before: int | None, limit: int
    ) -> tuple[float, list[str]]:
        """Return the decisions of which a window or an age ends in (after, upto], one name for each end.

        If more than about `limit` ends are found, those up to an earlier time, which is returned, too.
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
        if reached <= after < upto:  # all of them at one moment, but for rounding
            return self.ending(log, model, after, upto, before, 2**31 * len(self.left))
        return reached, [name for left, some in found for due, name in some if due <= reached + left]

    def next_of(self, due: float, over: float) -> float | None:
        """Return when an age of a decision is to end next, if all ends up to `over` are over; None if none is left."""
        for left in self.left:
            if due > over + left:
                return self._later(due - left, over)
        return None

    def next_end(self, log: Windows, model: str, over: float) -> float | None:
        """Return when any window or age is to end next."""
        ends = [due - left for left in self.left if (due := log.next_due(model, over + left)) is not None]
        return self._later(min(ends), over) if ends else None

    def _later(self, end: float, over: float) -> float:
        return max(end, over + self.pause, math.nextafter(over, math.inf)) if self.pause else end
