"""Adapters that let an unmodified off-policy learner of Stable-Baselines3 learn from late feedback.

Nothing here imports Stable-Baselines3: one class is a Gymnasium wrapper, the other a mixin for your replay buffer.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from belated._util.validate import refuse


class WithTheNextStep(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Delivers what arrived with a reset together with the next step, since Stable-Baselines3 ignores a reset's info.

    >>> from belated import Constant
    >>> from belated.gymnasium import LateFeedback
    >>> env = WithTheNextStep(LateFeedback(gymnasium.make("FrozenLake-v1", max_episode_steps=2), Constant(0)))
    >>> for episode in range(2):
    ...     _ = env.reset(seed=7)
    ...     print([len(env.step(0)[4]["arrived"]) for step in range(2)])
    [0, 0]
    [2, 0]
    """

    _arrived: list[Any]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and store what has arrived."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._arrived = [*getattr(self, "_arrived", []), *info["arrived"]]
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and deliver what was stored."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info["arrived"], self._arrived = [*self._arrived, *info["arrived"]], []
        return observation, reward, terminated, truncated, info


class ArrivedOnly:
    """Makes a replay buffer of Stable-Baselines3 store what has arrived instead of what was just played.

    Put it before the buffer: `class LateBuffer(ArrivedOnly, ReplayBuffer): ...`, and pass that class to the learner as
    its `replay_buffer_class`. There must be one environment, a `LateFeedback` within `WithTheNextStep`.
    """

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]) -> None:
        """Add what has arrived; the step itself, whose reward is withheld, is left out."""
        if len(infos) != 1:
            raise refuse("infos", len(infos), "1: the buffer for late feedback supports a single environment")
        for late in infos[0]["arrived"]:
            super().add(  # type: ignore[misc]
                np.array([late.observation]),
                np.array([late.next_observation]),
                np.array([late.action]),
                np.array([late.reward]),
                np.array([late.terminated or late.truncated]),
                [{"TimeLimit.truncated": late.truncated and not late.terminated}],
            )
