"""Gymnasium environments and policies of which a test can choose everything."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from belated.types import SparseVector


class Uniform:
    """Chooses at random, from a stream of its own."""

    def __init__(self, actions: int, seed: int) -> None:
        self.actions, self.rng = actions, np.random.default_rng(seed)

    def act(self, step: int, state: SparseVector) -> int:
        return int(self.rng.integers(self.actions))


class Always:
    """Chooses always the same."""

    def __init__(self, action: int) -> None:
        self.action = action

    def act(self, step: int, state: SparseVector) -> int:
        return self.action


class Odd(gymnasium.Env[Any, Any]):
    """Observes a sample of its space, or always the same, and never ends."""

    def __init__(self, space: Any = None, observe: Any = None, reward: float = 1.0, actions: Any = None) -> None:
        self.observation_space = spaces.Discrete(3) if space is None else space
        self.action_space = spaces.Discrete(2, start=5) if actions is None else actions
        self.observe, self.reward, self.taken = observe, reward, list[Any]()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken.append(action)
        seen = self.observation_space.sample() if self.observe is None else self.observe
        return seen, self.reward, False, False, {}


class Countdown(gymnasium.Env[Any, Any]):
    """Ends by itself after three steps; `how` says in which way."""

    observation_space = spaces.Discrete(9)
    action_space = spaces.Discrete(2)

    def __init__(self, how: str = "terminated") -> None:
        self.how, self.left = how, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.left = 3
        return 3, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        over = self.left == 0
        return self.left, 1.0, over and self.how != "truncated", over and self.how != "terminated", {}
