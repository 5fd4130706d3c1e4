"""Feedback in flight: what has been played and has not arrived yet.

The feedback of episode k with delay t is usable when planning episode k' if and only if k + t <= k' - 1: a
delay of 0 means the very next episode. `LateFeedback` counts single steps in the same way.
"""

from __future__ import annotations

import heapq
from typing import Any, Generic, TypeVar

import numpy as np

from belated._util.validate import indices, integer, refuse
from belated.delays._base import NEVER
from belated.types import Ints

T = TypeVar("T")


class FeedbackQueue(Generic[T]):
    """Holds what each episode produced until it is due, then hands it out exactly once.

    >>> queue: FeedbackQueue[str] = FeedbackQueue()
    >>> queue.add(0, 1, "slow"), queue.add(1, 0, "quick"), queue.add(2, NEVER, "lost")
    (None, None, None)
    >>> queue.arrived(1), queue.arrived(2), queue.arrived(3), queue.in_flight, queue.lost
    ([], [(0, 'slow'), (1, 'quick')], [], 0, 1)

    Items that never arrive are counted, not stored.
    """

    def __init__(self) -> None:
        self._due: list[tuple[int, int, T]] = []
        self._in_flight: set[int] = set()
        self._never: set[int] = set()  # episodes since the last plan whose feedback never arrives
        self._planned = self._lost = 0

    def add(self, episode: int, delay: int, item: T) -> None:
        """Put the `item` of `episode` in flight; the episode must not be in the past or added before."""
        episode = self._not_past(episode)
        delay = integer("delay", delay, at_least=0, at_most=NEVER)
        if episode in self._in_flight or episode in self._never:
            raise refuse("episode", episode, "one that was not added already")
        if delay == NEVER:
            self._never.add(episode)
            self._lost += 1
        else:
            self._in_flight.add(episode)
            heapq.heappush(self._due, (episode + delay + 1, episode, item))

    def arrived(self, episode: int) -> list[tuple[int, T]]:
        """Return the items that arrive before `episode` is planned, as (origin, item), ordered by origin."""
        self._planned = self._not_past(episode)
        if self._never:
            self._never = {lost for lost in self._never if lost >= self._planned}
        batch: dict[int, T] = {}
        while self._due and self._due[0][0] <= episode:
            _, origin, item = heapq.heappop(self._due)
            batch[origin] = item
        self._in_flight.difference_update(batch)
        return [(origin, batch[origin]) for origin in sorted(batch)]

    def flush(self) -> list[tuple[int, T]]:
        """Remove and return everything in flight, ordered by origin."""
        rest = sorted((origin, at) for at, (_, origin, _) in enumerate(self._due))
        items = [(origin, self._due[at][2]) for origin, at in rest]
        self._due, self._in_flight = [], set()
        return items

    @property
    def in_flight(self) -> int:
        """Number of items that will still arrive."""
        return len(self._in_flight)

    @property
    def lost(self) -> int:
        """Number of items that never arrive."""
        return self._lost

    @property
    def oldest(self) -> int | None:
        """The earliest episode in flight; None if there is none."""
        return min(self._in_flight, default=None)

    def waiting(self) -> list[int]:
        """Return the episodes in flight, oldest first."""
        return sorted(self._in_flight)

    def items(self) -> list[tuple[int, int, T]]:
        """Return the items in flight as (due, origin, item), earliest first."""
        return sorted(self._due, key=lambda each: each[:2])

    def _not_past(self, episode: int) -> int:
        if integer("episode", episode, at_least=0) < self._planned:
            raise refuse("episode", episode, f">= {self._planned}, the last one planned")
        return int(episode)


def arrival_schedule(delays: Any) -> tuple[Ints, Ints]:
    """Return the arrival schedule of episodes 0..K-1, as `(offsets, order)`.

    `order[offsets[k]:offsets[k + 1]]` are the episodes whose feedback becomes usable when planning episode k,
    in increasing order, for k = 0..K-1. Later arrivals are left out.

    >>> offsets, order = arrival_schedule(np.array([1, 0, NEVER, 0]))
    >>> offsets.tolist(), order.tolist()
    ([0, 0, 0, 2, 2], [0, 1])
    """
    delays = indices("delays", delays, (None,), NEVER + 1)
    episodes = delays.size
    # Delays are clipped at K, after the last plan, so that additions cannot overflow.
    due = np.arange(episodes) + np.minimum(delays, episodes) + 1
    origins = np.flatnonzero(due < episodes)
    counts = np.bincount(due[origins], minlength=episodes)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return offsets, origins[np.argsort(due[origins], kind="stable")]
