"""Delay laws in time: delays depend on when an episode is played, or on what came before.

The theorems assume independent and identically distributed delays. None of these laws has them, so all say None when
asked for sub-exponential parameters, and the bounds of `belated.theory` refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belated.delays.base import NEVER, DelayLaw, IndependentLaw, independent, levels
from belated.delays.laws import Constant
from belated.types import Ints
from belated.validate import flag, indices, integer, real, refuse

LATE = 2**60
"""Delays from here on are not postponed: no run lasts so long, and their sum with an episode might not be a number."""
LARGEST_WORK = 2**40
"""What an episode brings to a backlog at most, so that backlogs are 64-bit integers."""


def _any_law(value: Any) -> DelayLaw:
    if not isinstance(value, DelayLaw):
        raise refuse("law", value, "a delay law")
    return value


def _postponed(delays: Ints, first: int, until: Callable[[Ints], Ints]) -> Ints:
    """Return the delays of episodes `first`, `first + 1`, ... if what is due at n is handed out at `until(n) >= n`."""
    soon = np.flatnonzero(delays < LATE)
    due = first + soon + delays[soon] + 1  # when feedback with this delay is usable: k + τ + 1
    late = delays.copy()
    late[soon] += until(due) - due
    return late


@dataclass(frozen=True)
class Periodic(DelayLaw):
    """Feedback is handed out every so many episodes, as by a nightly job: all that has arrived since the last time.

    It is handed out before the episodes `offset`, `offset + every`, `offset + 2 every`, ... are planned, and `law`
    says how long it takes to be ready for that.

    >>> law = Periodic(every=4)
    >>> law.sample(np.random.default_rng(0), 8).tolist(), law.mean, law.label
    ([3, 2, 1, 0, 3, 2, 1, 0], 1.5, 'periodic-4-constant-0')

    Not identically distributed: the delay depends on the place of the episode in its period.
    """

    every: int
    law: DelayLaw = field(default=Constant(0), metadata={"key": "of"})
    offset: int = 0

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        every = integer("every", self.every, at_least=1, at_most=LATE)
        offset = integer("offset", self.offset, at_least=0, at_most=every - 1)
        return {"every": every, "law": _any_law(self.law), "offset": offset}

    @property
    def label(self) -> str:
        """`periodic-24-poisson-50`, and the offset if there is one."""
        return self._label(self.every, self.law.label, *([self.offset] if self.offset else []))

    @property
    def lasts(self) -> int:
        """As long as `law`."""
        return self.law.lasts

    @property
    def mean(self) -> float:
        """That of `law` and (every - 1)/2, the mean of all places in a period; nan if `law` is not independent."""
        return self.law.mean + (self.every - 1) / 2 if isinstance(self.law, IndependentLaw) else math.nan

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Draw from `law`, and go on to the next time that feedback is handed out."""
        delays, state = self.law.draw(rng, count, first, state)
        return _postponed(delays, first, lambda due: due + (self.offset - due) % self.every), state


@dataclass(frozen=True)
class Outages(DelayLaw):
    """During each of the `windows` nothing arrives; all that would have arrives when the window ends.

    A window is a pair `[start, end]`: what is due when the episodes `start` to `end - 1` are planned is there when
    episode `end` is. At other times the delays are those of `law`.

    >>> law = Outages([[2, 5]], Constant(1))
    >>> law.sample(np.random.default_rng(0), 5).tolist(), law.label
    ([4, 3, 2, 1, 1], 'outages-1-constant-1')

    Not identically distributed: the delay depends on the number of the episode.
    """

    windows: Sequence[Sequence[int]]
    law: DelayLaw = field(default=Constant(0), metadata={"key": "of"})

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields, the windows in increasing order."""
        pairs = indices("windows", self.windows, (None, 2), LATE)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        if not len(pairs) or (np.diff(pairs.reshape(-1)) <= 0).any():
            raise refuse("windows", self.windows, "pairs [start, end] with start < end, at least one, that lie apart")
        return {"windows": tuple(tuple(pair) for pair in pairs.tolist()), "law": _any_law(self.law)}

    @property
    def lasts(self) -> int:
        """As long as `law`."""
        return self.law.lasts

    @property
    def mean(self) -> float:
        """That of `law`: in the long run, a number of windows that is finite does not count."""
        return self.law.mean

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Draw from `law`, and go on to the end of the window in which that would arrive."""
        delays, state = self.law.draw(rng, count, first, state)
        start, end = np.array(self.windows).T

        def until(due: Ints) -> Ints:
            window = np.maximum(np.searchsorted(start, due, side="right") - 1, 0)
            return np.where((start[window] <= due) & (due < end[window]), end[window], due)

        return _postponed(delays, first, until), state


@dataclass(frozen=True)
class Drift(DelayLaw):
    """Delays that change slowly: those of `before` up to episode `start`, those of `after` from episode `end` on.

    In between every quantile moves on a straight line from the one law to the other, rounded to a whole number; what
    never arrives under one of them does not arrive there either. One uniform number is used for each delay.

    >>> law = Drift(Constant(0), Constant(10), start=2, end=7)
    >>> law.sample(np.random.default_rng(0), 9).tolist(), law.mean
    ([0, 0, 0, 2, 4, 6, 8, 10, 10], 10.0)

    Independent, but not identically distributed.
    """

    before: IndependentLaw
    after: IndependentLaw
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
        # at the ends the laws themselves: a float does not hold each of their delays
        return np.select([share == 0, share == 1, never], [old, new, np.full(count, NEVER)], between), None


@dataclass(frozen=True)
class Bursts(DelayLaw):
    """Calm times and bursts: a chain of two states, in each of which delays come from a law of their own.

    A burst begins with probability `begin` in each calm episode, and ends with probability `end` in each of its own, so
    it lasts 1/`end` episodes on average, and the share begin/(begin + end) of all episodes lies in bursts; the first
    one, too, with that probability. Two uniform numbers are used for each episode.

    >>> law = Bursts(calm=Constant(1), burst=Constant(50), begin=0.01, end=0.1)
    >>> law.sample(np.random.default_rng(3), 200)[88:97].tolist(), round(law.mean, 2)
    ([50, 50, 50, 50, 50, 1, 1, 1, 1], 5.45)

    Identically distributed, each delay as from the mixture of both laws, but not independent.
    """

    calm: IndependentLaw
    burst: IndependentLaw
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
        """The means of both laws, weighted by the share of episodes that lie in bursts."""
        return (self.end * self.calm.mean + self.begin * self.burst.mean) / (self.begin + self.end)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Let the chain go on; the state is whether the last episode lay in a burst."""
        within = state if _remembered(first, state) is None else flag("state", state)
        uniform = rng.random((count, 2))
        bursts = np.empty(count, np.bool_)
        for k, u in enumerate(uniform[:, 0].tolist()):
            if within is None:
                within = u < self.begin / (self.begin + self.end)  # the stationary law
            else:
                within = u >= self.end if within else u < self.begin
            bursts[k] = within
        u = levels(uniform[:, 1])
        return np.where(bursts, self.burst.quantiles(u), self.calm.quantiles(u)), within


@dataclass(frozen=True)
class Backlog(DelayLaw):
    """Delays that grow with the load: feedback is made by a server that works at `rate`, first come, first served.

    Each episode brings an amount of work, drawn from the law `work`, and the server does `rate` of it from one episode
    to the next. With B the work that is left when episode k brings W, its feedback is ready after (B + W)/rate
    episodes, and max(B + W - rate, 0) is left for episode k + 1 (Lindley's recursion).

    >>> law = Backlog(work=Constant(3), rate=2)
    >>> law.sample(np.random.default_rng(0), 6).tolist(), law.mean
    ([1, 1, 2, 2, 3, 3], inf)

    Neither independent nor, until the backlog has settled, identically distributed.
    """

    work: IndependentLaw
    rate: int

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        if independent("work", self.work).mean == math.inf:
            raise refuse("work", self.work, "a law of finite mean")
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
