"""An environment that keeps a diary, and an oracle that tells from the diary what must arrive when."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from belated.delays import NEVER
from belated.types import Ints


class Entry(NamedTuple):
    """A step as the environment saw it, and the tick of the test's clock at which it was taken."""

    tick: int
    content: tuple[Any, ...]


class Diary(gymnasium.Env[np.ndarray[Any, Any], np.int64]):
    """Observations that never repeat, random rewards, and episodes that end in one of two ways, or are broken off.

    With `reuse` all observations are one array, written over again and again.
    """

    def __init__(self, clock: list[int], reuse: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (1,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.clock, self.reuse = clock, reuse
        self.resets: list[int] = []
        self.episodes: list[list[Entry]] = []
        self.observed = 0
        self.buffer = np.zeros(1)

    def observe(self) -> np.ndarray[Any, Any]:
        self.observed += 1
        self.buffer[0] = self.observed
        return self.buffer if self.reuse else self.buffer.copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.resets.append(self.clock[0])
        self.episodes.append([])
        return self.observe(), {}

    def step(self, action: np.int64) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        before = self.observed
        end, reward = self.np_random.random(2).tolist()
        terminated, truncated = end < 0.08, 0.05 < end < 0.12  # sometimes both
        observation = self.observe()
        content = (float(before), int(action), reward, float(self.observed), terminated, truncated)
        self.episodes[-1].append(Entry(self.clock[0], content))
        return observation, reward, terminated, truncated, {}


Arrivals = dict[tuple[int, int], tuple[int | None, tuple[Any, ...]]]
"""For every (episode, step): the tick of its arrival, None for `flush`, and what arrived."""


def expected(diary: Diary, unit: str, delays: Ints) -> Arrivals:
    """Return what must arrive, by the definitions alone."""
    arrivals: Arrivals = {}
    steps = [entry.tick for episode in diary.episodes for entry in episode]
    number = 0
    for k, episode in enumerate(diary.episodes):
        for step, entry in enumerate(episode):
            if unit == "trajectory":  # usable from the first episode k' with k + τ <= k' - 1 on
                delay, calls, due = int(delays[k]), diary.resets, k + int(delays[k]) + 1
            else:  # usable for the first action t' with t + τ <= t' - 1, so handed out by the step before
                delay, calls, due = int(delays[number]), steps, number + int(delays[number])
            number += 1
            if delay != NEVER:
                arrivals[k, step] = (calls[due] if due < len(calls) else None, entry.content)
    return arrivals


def note(arrivals: Arrivals, arrived: Any, tick: int | None) -> None:
    """Add what has arrived, which must not have arrived before."""
    for late in arrived:
        key = (late.episode, late.step)
        assert key not in arrivals, f"{key} arrived twice"
        seen, reached = float(late.observation[0]), float(late.next_observation[0])
        arrivals[key] = (tick, (seen, int(late.action), late.reward, reached, late.terminated, late.truncated))
