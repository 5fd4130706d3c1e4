"""Which steps of which episodes an agent has learned, so that repeated feedback is rejected.

Feedback comes from queues, logs and networks, which may deliver twice. The compiled loop of the runner does not need
this, since its own queue cannot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from belated.errors import InvalidInputError
from belated.types import LAST_EPISODE, Feedback, Ints

#: The kinds of rows in the saved array: whole episodes, or which parts of their steps have arrived.
LENGTH, STATES, REWARDS, ALL = range(4)


class Open(NamedTuple):
    """An incomplete episode; bit h is step h."""

    states: int
    rewards: int
    length: int
    """Number of steps: up to the terminal one if known, else the horizon."""

    @property
    def is_whole(self) -> bool:
        """Whether everything has arrived."""
        every = (1 << self.length) - 1
        return self.states & self.rewards & every == every


class Heard:
    """The steps whose states, and the steps whose rewards, have arrived.

    Whole episodes are stored as ranges: feedback in order takes no memory, and lost feedback little.

    >>> import belated
    >>> heard, river = Heard(horizon=20), belated.RiverSwim()
    >>> late = Feedback(3, river.rollout(river.optimal_policy(), np.random.default_rng(0)))
    >>> heard.take([late])
    >>> heard.take([late])
    Traceback (most recent call last):
    belated.errors.InvalidInputError: feedback must be new: episode 3 has been learned already
    """

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._open: dict[int, Open] = {}

    def __contains__(self, episode: int) -> bool:
        """Whether all of an episode has arrived."""
        at = bisect_right(self._firsts, episode) - 1
        return at >= 0 and episode <= self._lasts[at]

    def take(self, batch: Sequence[Feedback], *, states_first: bool = False) -> None:
        """Record a validated batch; if any of it has arrived before, raise and record nothing.

        With `states_first`, a reward of a step whose state has not arrived raises, too.
        """
        changed: dict[int, Open] = {}
        for episode, late in ((each.episode, each.trajectory) for each in batch):
            known = changed.get(episode) or self._open.get(episode) or Open(0, 0, self.horizon)
            if known.is_whole or episode in self:
                raise InvalidInputError(f"feedback must be new: episode {episode} has been learned already")
            steps = ((1 << len(late.actions)) - 1) << late.first
            states, rewards = (0 if late.part == "rewards" else steps), (0 if late.part == "states" else steps)
            for what, old, new in (("states", known.states, states), ("rewards", known.rewards, rewards)):
                if old & new:
                    step = _lowest(old & new)
                    raise InvalidInputError(
                        f"feedback must be new: the {what} of episode {episode} from step {step} on have been learned "
                        "already"
                    )
            if states_first and rewards & ~(known.states | states):
                step = _lowest(rewards & ~(known.states | states))
                raise InvalidInputError(
                    f"the states of episode {episode} must come before their rewards, got the reward of step {step}"
                )
            length = late.first + len(late.actions) if late.terminated else known.length
            changed[episode] = Open(known.states | states, known.rewards | rewards, length)
        for episode, found in changed.items():
            if found.is_whole:
                self._open.pop(episode, None)
                self._close(episode)
            else:
                self._open[episode] = found

    def _close(self, episode: int) -> None:
        """Add an episode to the ranges, and merge adjacent ones."""
        at = bisect_right(self._firsts, episode)
        after = at < len(self._firsts) and self._firsts[at] == episode + 1
        before = at > 0 and self._lasts[at - 1] == episode - 1
        if before and after:
            del self._firsts[at]
            del self._lasts[at - 1]
        elif before:
            self._lasts[at - 1] = episode
        elif after:
            self._firsts[at] = episode
        else:
            self._firsts.insert(at, episode)
            self._lasts.insert(at, episode)

    def memory(self) -> Ints:
        """Return rows of (first episode, last episode, first step, end of the steps, kind)."""
        rows = [(first, last, 0, self.horizon, ALL) for first, last in zip(self._firsts, self._lasts, strict=True)]
        for episode, known in sorted(self._open.items()):
            rows.append((episode, episode, 0, known.length, LENGTH))
            for what, bits in ((STATES, known.states), (REWARDS, known.rewards)):
                rows += [(episode, episode, begin, end, what) for begin, end in _runs(bits)]
        return np.array(rows, np.int64).reshape(-1, 5)

    @classmethod
    def restored(cls, memory: Any, horizon: int) -> Self:
        """Return the object that `memory` came from, or raise `InvalidInputError`."""
        heard = cls(horizon)
        good = isinstance(memory, np.ndarray) and memory.dtype == np.int64 and memory.ndim == 2 and memory.shape[1] == 5
        good = good and bool((memory >= 0).all() and (memory[:, :2] <= LAST_EPISODE).all())
        good = good and bool((memory[:, 3] <= horizon).all())
        for first, last, begin, end, what in memory.tolist() if good else ():
            if what == ALL:
                heard._firsts.append(first)
                heard._lasts.append(last)
            else:
                known = heard._open.get(first, Open(0, 0, horizon))
                bits = ((1 << end) - 1) & ~((1 << begin) - 1)
                heard._open[first] = (
                    known._replace(length=end)
                    if what == LENGTH
                    else known._replace(states=known.states | bits)
                    if what == STATES
                    else known._replace(rewards=known.rewards | bits)
                )
        if not good or not heard._is_possible() or not np.array_equal(heard.memory(), memory):
            raise InvalidInputError("memory['heard'] must list the steps of the episodes that have arrived, each once")
        return heard

    def _is_possible(self) -> bool:
        return (
            all(first <= last for first, last in zip(self._firsts, self._lasts, strict=True))
            and all(last + 1 < first for last, first in zip(self._lasts, self._firsts[1:], strict=False))
            and not any(episode in self for episode in self._open)
            and all(known.length > 0 and known.states | known.rewards for known in self._open.values())
            and not any(known.is_whole for known in self._open.values())
        )


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each run of ones."""
    at = 0
    while bits:
        at += (skip := _lowest(bits))
        bits >>= skip
        length = _lowest(~bits)
        yield at, at + length
        at, bits = at + length, bits >> length


def without_heard(memory: dict[str, npt.NDArray[Any]], wanted: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Return a memory without the array 'heard'; raise InvalidInputError unless the others are `wanted`."""
    if set(memory) != {*wanted, "heard"}:
        raise InvalidInputError(f"memory must hold the arrays {sorted([*wanted, 'heard'])}, got {sorted(memory)}")
    return {name: values for name, values in memory.items() if name != "heard"}
