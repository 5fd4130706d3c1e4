"""Delays that depend on when an episode is played, or on earlier delays.

The theorems assume i.i.d. delays, so none of these has sub-exponential parameters and `belated.theory` rejects them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated._util.validate import flag, indices, integer, real, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, any_delay, independent, levels
from belated.delays._distributions import Constant
from belated.types import Ints

AT_ONCE = Constant(0)
LATE = 2**60
"""Longer delays are not postponed: no run is that long, and adding an episode number could overflow."""
MOST_WORK = 2**40
"""The maximum work of an episode in a backlog, so that backlogs are 64-bit integers."""


def _postponed(delays: Ints, first: int, until: Callable[[Ints], Ints]) -> Ints:
    """Return the delays of episodes `first`, `first + 1`, ... if feedback due at n is delivered at `until(n) >= n`."""
    soon = np.flatnonzero(delays < LATE)
    due = first + soon + delays[soon] + 1  # when feedback with this delay is usable: k + τ + 1
    late = delays.copy()
    late[soon] += until(due) - due
    return late


@dataclass(frozen=True, repr=False)
class Periodic(DelayDistribution):
    """Feedback is delivered in batches, every `every` episodes, as by a nightly job.

    Feedback is ready after the delay `of`, and is delivered before the next of the episodes `offset`,
    `offset + every`, `offset + 2 every`, ... is planned. Not identically distributed: the delay depends on the
    position of the episode in its period.

    >>> delay = Periodic(every=4)
    >>> delay.sample(np.random.default_rng(0), 8).tolist(), delay.mean, delay.label
    ([3, 2, 1, 0, 3, 2, 1, 0], 1.5, 'periodic-4-constant-0')
    """

    every: int
    of: DelayDistribution = AT_ONCE
    offset: int = 0

    def checked(self) -> dict[str, Any]:
        every = integer("every", self.every, at_least=1, at_most=LATE)
        offset = integer("offset", self.offset, at_least=0, at_most=every - 1)
        return {"every": every, "of": any_delay("of", self.of), "offset": offset}

    @property
    def label(self) -> str:
        return self._label(self.every, self.of.label, *([self.offset] if self.offset else []))

    @property
    def lasts(self) -> int:
        return self.of.lasts

    @property
    def mean(self) -> float:
        """The mean of `of` plus (every - 1)/2, averaged over a period; nan if `of` is not independent."""
        return self.of.mean + (self.every - 1) / 2 if isinstance(self.of, IndependentDelays) else math.nan

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        delays, state = self.of.draw(rng, count, first, state)
        return _postponed(delays, first, lambda due: due + (self.offset - due) % self.every), state


@dataclass(frozen=True, repr=False)
class Outages(DelayDistribution):
    """Nothing arrives during the `windows`; feedback due in a window arrives when it ends.

    A window is a pair `[start, end]`: feedback that is due when the episodes `start` to `end - 1` are planned arrives
    for episode `end`. Otherwise delays are those of `of`. Not identically distributed: the delay depends on the episode
    number.

    >>> delay = Outages([[2, 5]], of=Constant(1))
    >>> delay.sample(np.random.default_rng(0), 5).tolist(), delay.label
    ([4, 3, 2, 1, 1], 'outages-1-constant-1')
    """

    windows: Sequence[Sequence[int]]
    of: DelayDistribution = AT_ONCE

    def checked(self) -> dict[str, Any]:
        pairs = indices("windows", self.windows, (None, 2), LATE)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        if not len(pairs) or (np.diff(pairs.reshape(-1)) <= 0).any():
            expected = "at least one pair [start, end] with start < end, none of them overlapping or adjacent"
            raise refuse("windows", self.windows, expected)
        return {"windows": tuple(tuple(pair) for pair in pairs.tolist()), "of": any_delay("of", self.of)}

    @property
    def lasts(self) -> int:
        return self.of.lasts

    @property
    def mean(self) -> float:
        """The mean of `of`: finitely many windows do not change the long-run average."""
        return self.of.mean

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        delays, state = self.of.draw(rng, count, first, state)
        start, end = np.array(self.windows).T

        def until(due: Ints) -> Ints:
            window = np.maximum(np.searchsorted(start, due, side="right") - 1, 0)
            return np.where((start[window] <= due) & (due < end[window]), end[window], due)

        return _postponed(delays, first, until), state


@dataclass(frozen=True, repr=False)
class Drift(DelayDistribution):
    """Delays that change slowly: those of `before` up to episode `start`, those of `after` from episode `end` on.

    In between, every quantile is interpolated linearly and rounded to an integer; it is `NEVER` if one of the two is.
    Each delay takes one uniform number. Independent, but not identically distributed.

    >>> delay = Drift(Constant(0), Constant(10), start=2, end=7)
    >>> delay.sample(np.random.default_rng(0), 9).tolist(), delay.mean
    ([0, 0, 0, 2, 4, 6, 8, 10, 10], 10.0)
    """

    before: IndependentDelays
    after: IndependentDelays
    start: int
    end: int

    def checked(self) -> dict[str, Any]:
        start = integer("start", self.start, at_least=0, at_most=LATE)
        return {
            "before": independent("before", self.before),
            "after": independent("after", self.after),
            "start": start,
            "end": integer("end", self.end, at_least=start + 1, at_most=LATE),
        }

    @property
    def mean(self) -> float:
        """The mean of `after`, in the long run."""
        return self.after.mean

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        # (1 - w) F₀⁻¹(u) + w F₁⁻¹(u), w going from 0 at `start` to 1 at `end`
        u = levels(rng.random(count))
        old, new = self.before.quantiles(u), self.after.quantiles(u)
        share = np.clip((first + np.arange(count) - self.start) / (self.end - self.start), 0.0, 1.0)
        between = np.rint(np.minimum((1 - share) * old + share * new, float(LATE))).astype(np.int64)
        never = (old == NEVER) | (new == NEVER)
        # exact at both ends: not every delay is a float
        return np.select([share == 0, share == 1, never], [old, new, np.full(count, NEVER)], between), None


@dataclass(frozen=True, repr=False)
class Bursts(DelayDistribution):
    """A Markov chain that switches between the delay distributions `calm` and `burst`.

    A burst begins with probability `begin` in each calm episode and ends with probability `end` in each of its own. So
    it lasts 1/`end` episodes on average, and a fraction begin/(begin + end) of all episodes is in bursts; the chain
    starts from that stationary distribution. Each episode takes two uniform numbers. Identically distributed, as the
    mixture of both distributions, but not independent.

    >>> delay = Bursts(calm=Constant(1), burst=Constant(50), begin=0.01, end=0.1)
    >>> delay.sample(np.random.default_rng(3), 200)[88:97].tolist(), round(delay.mean, 2)
    ([50, 50, 50, 50, 50, 1, 1, 1, 1], 5.45)
    """

    calm: IndependentDelays
    burst: IndependentDelays
    begin: float
    end: float

    def checked(self) -> dict[str, Any]:
        return {
            "calm": independent("calm", self.calm),
            "burst": independent("burst", self.burst),
            "begin": real("begin", self.begin, above=0.0, at_most=1.0),
            "end": real("end", self.end, above=0.0, at_most=1.0),
        }

    @property
    def mean(self) -> float:
        return (self.end * self.calm.mean + self.begin * self.burst.mean) / (self.begin + self.end)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        within = None if _is_start(first, state) else flag("state", state)  # whether the last episode was in a burst
        uniform = rng.random((count, 2))
        bursts = np.empty(count, np.bool_)
        for k, u in enumerate(uniform[:, 0].tolist()):
            if within is None:
                within = u < self.begin / (self.begin + self.end)  # the stationary distribution
            else:
                within = u >= self.end if within else u < self.begin
            bursts[k] = within
        u = levels(uniform[:, 1])
        return np.where(bursts, self.burst.quantiles(u), self.calm.quantiles(u)), within


@dataclass(frozen=True, repr=False)
class Backlog(DelayDistribution):
    """Delays that grow with the load: one server processes feedback first come, first served.

    Each episode brings an amount of work drawn from `work`, and the server does `rate` of it per episode. With B the
    work left when episode k brings W, its feedback is ready after (B + W)/rate episodes, and max(B + W - rate, 0) is
    left for episode k + 1 (Lindley's recursion). Neither independent nor, until the backlog is stationary, identically
    distributed.

    >>> delay = Backlog(work=Constant(3), rate=2)
    >>> delay.sample(np.random.default_rng(0), 6).tolist(), delay.mean
    ([1, 1, 2, 2, 3, 3], inf)
    """

    work: IndependentDelays
    rate: int

    def checked(self) -> dict[str, Any]:
        if independent("work", self.work).mean == math.inf:
            raise refuse("work", self.work, "a distribution of finite mean")
        return {"rate": integer("rate", self.rate, at_least=1, at_most=MOST_WORK)}

    @property
    def mean(self) -> float:
        """0 if the server always keeps up, infinite if it cannot in the long run, else nan (no closed form)."""
        if self.work.support[1] <= self.rate:
            return 0.0
        return math.inf if self.work.mean >= self.rate else math.nan

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        left = 0 if _is_start(first, state) else integer("state", state, at_least=0, at_most=2 * LATE)
        drawn, _ = self.work.draw(rng, count, first, None)
        work = np.minimum(drawn, MOST_WORK)
        # B_k = C_k - min(0, C_1, ..., C_k) with C_k the work so far minus the capacity so far
        sums = np.concatenate([[left], left + np.cumsum(work - self.rate)])
        backlog = sums - np.minimum(np.minimum.accumulate(sums), 0)
        ready = -(-(backlog[:-1] + work) // self.rate)  # whole episodes, rounded up
        return np.maximum(ready - 1, 0), min(int(backlog[-1]), LATE)


def _is_start(first: int, state: Any) -> bool:
    """Return whether nothing was drawn yet; raise InvalidInputError if `state` contradicts `first`."""
    if (state is None) != (first == 0):
        raise refuse("state", state, "what the previous draw returned, None for the first")
    return state is None
