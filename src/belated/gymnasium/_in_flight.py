"""The feedback in flight of one sequence of episodes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import choice, integer, refuse
from belated.delays import (
    NEVER,
    DelayByAction,
    DelayDistribution,
    FeedbackQueue,
    IndependentDelays,
    OutcomeDelays,
    delay_from_dict,
)
from belated.delays._outcome import next_delays
from belated.errors import InvalidInputError
from belated.types import Trajectory

UNITS = ("trajectory", "reward")
Distribution = DelayDistribution | OutcomeDelays

#: Delays are drawn in chunks that start small, since most seeds are used for a single episode, and double.
_FIRST_CHUNK, _LAST_CHUNK = 16, 4096
_IMMUTABLE = (int, float, np.generic)
_tuple = tuple.__new__  # twice as fast as the NamedTuple's own constructor


class Transition(NamedTuple):
    """One step of one episode, as it arrives."""

    episode: int
    """Which episode it belongs to; the first `reset` starts episode 0."""
    step: int
    """Which step of that episode it is, from 0."""
    observation: Any
    """The observation before the action."""
    action: Any
    reward: float
    """The reward of the environment."""
    next_observation: Any
    """The observation after the action; at the end of an episode its last observation, never one of the next."""
    terminated: bool
    truncated: bool


class InFlight:
    """Withholds the transitions of one environment until they are due.

    With the unit "trajectory" the transitions of an episode arrive together and time is counted in episodes: those of
    episode k with the delay τ arrive when episode k + τ + 1 begins. With the unit "reward" each arrives separately and
    time is counted in steps over all episodes: that of step t arrives with step t + τ.
    """

    def __init__(self, distribution: Distribution, unit: str) -> None:
        self._delay_distribution = distribution
        self._whole = unit == "trajectory"
        self._draws = _Draws(distribution)
        self._queue: FeedbackQueue[list[Transition]] = FeedbackQueue()
        self._unsent: list[Transition] = []
        self._delay: Any = NEVER
        self._episode = -1
        self._step = 0
        self._clock = 0
        self._undrawn = 0

    @property
    def in_flight(self) -> int:
        """Number of transitions in flight, without those that never arrive."""
        return len(self._unsent) + sum(len(steps) for _, _, steps in self._queue.items())

    def seed(self, seed: int) -> None:
        """Draw delays from the stream of `seed` from the next episode or step on."""
        self._draws.seed(seed)
        self._undrawn = 0

    def begin(self) -> list[Transition]:
        self._send()
        self._episode += 1
        self._step = 0
        if not self._whole:
            return []
        self._undrawn += 1
        return self._arrived(self._episode)

    def prepare(self) -> None:
        """Prepare for a step; raise an error before it is taken if there is no delay left for it."""
        if not self._whole:
            self._draws.fill()
        while self._undrawn:  # episodes without steps have a delay, too: episode k gets the k-th
            self._delay = self._draws.draw()
            self._undrawn -= 1

    def add(
        self, observation: Any, action: Any, reward: float, next_observation: Any, terminated: bool, truncated: bool
    ) -> list[Transition]:
        """Withhold a prepared step, and return what has arrived."""
        fields = (self._episode, self._step, observation, action, reward, next_observation, terminated, truncated)
        transition = _tuple(Transition, fields)
        self._step += 1
        self._unsent.append(transition)
        if self._whole:
            if terminated or truncated:
                self._send()
            return []
        self._delay = self._draws.draw()
        self._send()
        self._clock += 1
        return self._arrived(self._clock)

    def _arrived(self, now: int) -> list[Transition]:
        return [step for _, steps in self._queue.arrived(now) for step in steps]

    def flush(self) -> list[Transition]:
        """Return everything in flight, in the order of play."""
        self._send()
        return [step for _, steps in self._queue.flush() for step in steps]

    def _send(self) -> None:
        """Put the collected steps in flight; those that never arrive are dropped."""
        if not self._unsent:
            return
        delay = self._delay if isinstance(self._delay, int) else self._delay[self._outcome()]
        if delay != NEVER:
            self._queue.add(self._episode if self._whole else self._clock, delay, self._unsent)
        self._unsent = []

    def _outcome(self) -> int:
        """Return the index of the distribution for the steps being sent."""
        assert isinstance(self._delay_distribution, OutcomeDelays)
        first, last = self._unsent[0], self._unsent[-1]
        seen = Trajectory(
            [*(step.observation for step in self._unsent), last.next_observation],
            np.array([step.action for step in self._unsent]),
            np.array([step.reward for step in self._unsent]),
            last.terminated,
            first.step,
        )
        which = self._delay_distribution.outcome(seen)
        return integer("the delay's outcome", which, at_least=0, at_most=len(self._delay) - 1)


class _Draws:
    """The delays of a distribution in sequence: numbers, or lists with one per outcome."""

    def __init__(self, distribution: Distribution) -> None:
        self._delay_distribution = distribution
        self._alike = isinstance(distribution, IndependentDelays | OutcomeDelays)
        self._end = distribution.lasts if isinstance(distribution, DelayDistribution) else NEVER
        self._rng: np.random.Generator | None = None
        self._chunk = _FIRST_CHUNK
        self._drawn: list[Any] = []
        self._next = self._asked = 0
        self._state: Any = None
        self._before: tuple[Any, Any] = (None, None)

    def seed(self, seed: int) -> None:
        """Continue with the delays of `seed`; a time-dependent distribution keeps its position."""
        if not self._alike and self._next < len(self._drawn):
            # discard delays drawn ahead: redraw the used ones to get the current state
            rng, state = self._before
            first = self._asked - len(self._drawn)
            _, self._state = next_delays(self._delay_distribution, rng, self._next, first, state)
            self._asked = first + self._next
        self._rng = stream(seed, "delay")
        self._chunk, self._drawn, self._next = _FIRST_CHUNK, [], 0

    def fill(self) -> None:
        if self._next < len(self._drawn):
            return
        count = min(self._chunk, self._end - self._asked)
        if not count:
            raise InvalidInputError(
                f"distribution must have a delay for everything that is played, got only {self._asked}"
            )
        if self._rng is None:
            self._rng = np.random.default_rng()
        if not self._alike:
            self._before = copy.deepcopy(self._rng), self._state
        delays, self._state = next_delays(self._delay_distribution, self._rng, count, self._asked, self._state)
        self._asked += count
        self._drawn, self._next = delays.tolist(), 0
        self._chunk = min(2 * self._chunk, _LAST_CHUNK)

    def draw(self) -> Any:
        if self._next >= len(self._drawn):
            self.fill()
        self._next += 1
        return self._drawn[self._next - 1]


def checked(distribution: Any, unit: Any, action_space: Any) -> tuple[Distribution, str]:
    """Return the distribution, possibly given as plain values, and the unit of a wrapper."""
    if isinstance(distribution, Mapping):
        distribution = delay_from_dict(distribution)
    if not isinstance(distribution, DelayDistribution | OutcomeDelays):
        raise refuse(
            "distribution",
            distribution,
            "a delay distribution of belated.delays, such as Poisson(10), or its plain values",
        )
    if isinstance(distribution, DelayByAction):
        count = getattr(action_space, "n", None)
        if count != len(distribution.delays) or getattr(action_space, "start", 0) != 0:
            raise refuse(
                "distribution.delays",
                len(distribution.delays),
                f"one distribution for each action of {action_space}",
            )
    return distribution, choice("unit", unit, UNITS)


def kept(value: Any) -> Any:
    """Return `value`, copied if the environment or the agent could modify it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value if isinstance(value, _IMMUTABLE) else copy.deepcopy(value)
