"""Delay distributions in time: delays depend on when an episode is played, or on what came before.

The theorems assume independent and identically distributed delays. None of these distributions has them, so all say None when
asked for sub-exponential parameters, and the bounds of `belated.theory` refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belated._util.validate import flag, indices, integer, real, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, independent, levels
from belated.delays._distributions import Constant
from belated.types import Ints

LATE = 2**60
"""Delays from here on are not postponed: no run lasts so long, and their sum with an episode might not be a number."""
LARGEST_WORK = 2**40
"""What an episode brings to a backlog at most, so that backlogs are 64-bit integers."""


def _any_distribution(value: Any) -> DelayDistribution:
    if not isinstance(value, DelayDistribution):
        raise refuse("distribution", value, "a delay distribution")
    return value


def _postponed(delays: Ints, first: int, until: Callable[[Ints], Ints]) -> Ints:
    """Return the delays of episodes `first`, `first + 1`, ... if what is due at n is handed out at `until(n) >= n`."""
    soon = np.flatnonzero(delays < LATE)
    due = first + soon + delays[soon] + 1  # when feedback with this delay is usable: k + τ + 1
    late = delays.copy()
    late[soon] += until(due) - due
    return late


@dataclass(frozen=True)
class Periodic(DelayDistribution):
    """Feedback is handed out every so many episodes, as by a nightly job: all that has arrived since the last time.

    It is handed out before the episodes `offset`, `offset + every`, `offset + 2 every`, ... are planned, and `distribution`
    says how long it takes to be ready for that.

    >>> distribution = Periodic(every=4)
    >>> distribution.sample(np.random.default_rng(0), 8).tolist(), distribution.mean, distribution.label
    ([3, 2, 1, 0, 3, 2, 1, 0], 1.5, 'periodic-4-constant-0')

    Not identically distributed: the delay depends on the place of the episode in its period.
    """

    every: int
    distribution: DelayDistribution = field(default=Constant(0), metadata={"key": "of"})
    offset: int = 0

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        every = integer("every", self.every, at_least=1, at_most=LATE)
        offset = integer("offset", self.offset, at_least=0, at_most=every - 1)
        return {"every": every, "distribution": _any_distribution(self.distribution), "offset": offset}

    @property
    def label(self) -> str:
        """`periodic-24-poisson-50`, and the offset if there is one."""
        return self._label(self.every, self.distribution.label, *([self.offset] if self.offset else []))

    @property
    def lasts(self) -> int:
        """As long as `distribution`."""
        return self.distribution.lasts

    @property
    def mean(self) -> float:
        """That of `distribution` and (every - 1)/2, the mean of all places in a period; nan if `distribution` is not independent."""
        return (
            self.distribution.mean + (self.every - 1) / 2
            if isinstance(self.distribution, IndependentDelays)
            else math.nan
        )

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Draw from `distribution`, and go on to the next time that feedback is handed out."""
        delays, state = self.distribution.draw(rng, count, first, state)
        return _postponed(delays, first, lambda due: due + (self.offset - due) % self.every), state


@dataclass(frozen=True)
class Outages(DelayDistribution):
    """During each of the `windows` nothing arrives; all that would have arrives when the window ends.

    A window is a pair `[start, end]`: what is due when the episodes `start` to `end - 1` are planned is there when
    episode `end` is. At other times the delays are those of `distribution`.

    >>> distribution = Outages([[2, 5]], Constant(1))
    >>> distribution.sample(np.random.default_rng(0), 5).tolist(), distribution.label
    ([4, 3, 2, 1, 1], 'outages-1-constant-1')

    Not identically distributed: the delay depends on the number of the episode.
    """

    windows: Sequence[Sequence[int]]
    distribution: DelayDistribution = field(default=Constant(0), metadata={"key": "of"})

    __repr__ = DelayDistribution.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields, the windows in increasing order."""
        pairs = indices("windows", self.windows, (None, 2), LATE)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        if not len(pairs) or (np.diff(pairs.reshape(-1)) <= 0).any():
            raise refuse("windows", self.windows, "pairs [start, end] with start < end, at least one, that lie apart")
        return {
            "windows": tuple(tuple(pair) for pair in pairs.tolist()),
            "distribution": _any_distribution(self.distribution),
        }

    @property
    def lasts(self) -> int:
        """As long as `distribution`."""
        return self.distribution.lasts

    @property
    def mean(self) -> float:
        """That of `distribution`: in the long run, a number of windows that is finite does not count."""
        return self.distribution.mean

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Draw from `distribution`, and go on to the end of the window in which that would arrive."""
        delays, state = self.distribution.draw(rng, count, first, state)
        start, end = np.array(self.windows).T

        def until(due: Ints) -> Ints:
            window = np.maximum(np.searchsorted(start, due, side="right") - 1, 0)
            return np.where((start[window] <= due) & (due < end[window]), end[window], due)

        return _postponed(delays, first, until), state


@dataclass(frozen=True)
class Drift(DelayDistribution):
    """Delays that change slowly: those of `before` up to episode `start`, those of `after` from episode `end` on.

    In between every quantile moves on a straight line from the one distribution to the other, rounded to an integer; what
    never arrives under one of them does not arrive there either. One uniform number is used for each delay.

    >>> distribution = Drift(Constant(0), Constant(10), start=2, end=7)
    >>> distribution.sample(np.random.default_rng(0), 9).tolist(), distribution.mean
    ([0, 0, 0, 2, 4, 6, 8, 10, 10], 10.0)

    Independent, but not identically distributed.
    """

    before: IndependentDelays
    after: IndependentDelays
    start: int
    end: int

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        start = integer("start", self.start, at_least=0, at_most=LATE)
        return {
            "before": independent("before", self.before),
            "after": independent("after", self.after),
            "start": start,
            "end": integer("end", self.end, at_least=start + 1, at_most=LATE),
        }

    @property
    def mean(self) -> float:
        """That of `after`, which lasts."""
        return self.after.mean

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return (1 - w) F₀⁻¹(u) + w F₁⁻¹(u) at the share w of the way that an episode has gone."""
        u = levels(rng.random(count))
        old, new = self.before.quantiles(u), self.after.quantiles(u)
        share = np.clip((first + np.arange(count) - self.start) / (self.end - self.start), 0.0, 1.0)
        between = np.rint(np.minimum((1 - share) * old + share * new, float(LATE))).astype(np.int64)
        never = (old == NEVER) | (new == NEVER)
        # at the ends the distributions themselves: a float does not hold each of their delays
        return np.select([share == 0, share == 1, never], [old, new, np.full(count, NEVER)], between), None


@dataclass(frozen=True)
class Bursts(DelayDistribution):
    """Calm times and bursts: a chain of two states, in each of which delays come from a distribution of their own.

    A burst begins with probability `begin` in each calm episode, and ends with probability `end` in each of its own, so
    it lasts 1/`end` episodes on average, and the share begin/(begin + end) of all episodes lies in bursts; the first
    one, too, with that probability. Two uniform numbers are used for each episode.

    >>> distribution = Bursts(calm=Constant(1), burst=Constant(50), begin=0.01, end=0.1)
    >>> distribution.sample(np.random.default_rng(3), 200)[88:97].tolist(), round(distribution.mean, 2)
    ([50, 50, 50, 50, 50, 1, 1, 1, 1], 5.45)

    Identically distributed, each delay as from the mixture of both distributions, but not independent.
    """

    calm: IndependentDelays
    burst: IndependentDelays
    begin: float
    end: float

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {
            "calm": independent("calm", self.calm),
            "burst": independent("burst", self.burst),
            "begin": real("begin", self.begin, above=0.0, at_most=1.0),
            "end": real("end", self.end, above=0.0, at_most=1.0),
        }

    @property
    def mean(self) -> float:
        """The means of both distributions, weighted by the share of episodes that lie in bursts."""
        return (self.end * self.calm.mean + self.begin * self.burst.mean) / (self.begin + self.end)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Let the chain go on; the state is whether the last episode lay in a burst."""
        within = state if _remembered(first, state) is None else flag("state", state)
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


@dataclass(frozen=True)
class Backlog(DelayDistribution):
    """Delays that grow with the load: feedback is made by a server that works at `rate`, first come, first served.

    Each episode brings an amount of work, drawn from the distribution `work`, and the server does `rate` of it from one episode
    to the next. With B the work that is left when episode k brings W, its feedback is ready after (B + W)/rate
    episodes, and max(B + W - rate, 0) is left for episode k + 1 (Lindley's recursion).

    >>> distribution = Backlog(work=Constant(3), rate=2)
    >>> distribution.sample(np.random.default_rng(0), 6).tolist(), distribution.mean
    ([1, 1, 2, 2, 3, 3], inf)

    Neither independent nor, until the backlog has settled, identically distributed.
    """

    work: IndependentDelays
    rate: int

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        if independent("work", self.work).mean == math.inf:
            raise refuse("work", self.work, "a distribution of finite mean")
        return {"rate": integer("rate", self.rate, at_least=1, at_most=LARGEST_WORK)}

    @property
    def mean(self) -> float:
        """0 if the server always keeps up, infinite if it cannot in the long run, else nan: there is no closed form."""
        _, most = self.work.support
        if most <= self.rate:
            return 0.0
        return math.inf if self.work.mean >= self.rate else math.nan

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Let the server go on; the state is the work that is left."""
        known = _remembered(first, state) is not None
        left = integer("state", state, at_least=0, at_most=2 * LATE) if known else 0
        drawn, _ = self.work.draw(rng, count, first, None)
        work = np.minimum(drawn, LARGEST_WORK)
        # B_k = C_k - min(0, C_1, ..., C_k) with C_k the work that has come less what could have been done since
        sums = np.concatenate([[left], left + np.cumsum(work - self.rate)])
        backlog = sums - np.minimum(np.minimum.accumulate(sums), 0)
        ready = -(-(backlog[:-1] + work) // self.rate)  # whole episodes, rounded up
        return np.maximum(ready - 1, 0), min(int(backlog[-1]), LATE)


def _remembered(first: int, state: Any) -> Any:
    """Return `state`, which is None before the first episode and only then."""
    if (state is None) != (first == 0):
        raise refuse("state", state, "what draw returned for the episodes before, None for the first")
    return state
