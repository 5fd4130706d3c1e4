"""Stable-Baselines3's DQN, unmodified, fed with late feedback: `python late_dqn.py`.

It needs `pip install 'belated[gym]' stable-baselines3`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.monitor import Monitor

from belated import Poisson
from belated.gymnasium import ArrivedOnly, LateFeedback, WithTheNextStep


class LateBuffer(ArrivedOnly, ReplayBuffer):
    """A replay buffer of what has arrived, instead of what has just been played."""


def make(distribution: Any = None, seed: int = 0) -> tuple[DQN, LateFeedback, Monitor]:
    """Return a DQN for CartPole, the wrapper that hands out its feedback, and the monitor that sees all rewards."""
    monitor = Monitor(gymnasium.make("CartPole-v1"))
    late = LateFeedback(monitor, Poisson(5) if distribution is None else distribution)
    model = DQN(
        "MlpPolicy",
        WithTheNextStep(late),
        replay_buffer_class=LateBuffer,
        learning_rate=2.3e-3,
        batch_size=64,
        learning_starts=1000,  # by then something has arrived
        target_update_interval=10,
        train_freq=256,
        gradient_steps=128,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )
    return model, late, monitor


if __name__ == "__main__":
    model, late, monitor = make()
    model.learn(50_000)
    returns = monitor.get_episode_rewards()
    for first in range(0, len(returns), 50):
        print(f"episodes {first} to {first + 49}: mean return {np.mean(returns[first : first + 50]):.1f}")
    print(f"still in flight: {late.in_flight} steps")
