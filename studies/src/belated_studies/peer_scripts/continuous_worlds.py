"""Two worlds of six numbers whose stated bounds say little: a noisy point mass and a planar drone.

They need nothing but NumPy and Gymnasium, so that peers can play them in an environment of their own.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np


class _Loose(gymnasium.Env[Any, Any]):
    """Six numbers of magnitude 2 and less, whose space says `bound`."""

    def __init__(self, bound: float = 10.0) -> None:
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (6,), np.float32)
        self.state = np.zeros(6)

    def _seen(self) -> Any:
        return self.state.astype(np.float32)


class PointMass(_Loose):
    """Three positions and three velocities, between walls; a force along an axis, or none.

    It pays exp(-3|x|²) at every step.
    """

    action_space = gymnasium.spaces.Discrete(7)
    forces = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.state = np.concatenate([self.np_random.uniform(-1.0, 1.0, 3), np.zeros(3)])
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        place, speed = self.state[:3], self.state[3:]
        speed = 0.9 * speed + 0.2 * self.forces[int(action)] + 0.02 * self.np_random.standard_normal(3)
        moved = place + 0.2 * speed
        self.state = np.concatenate([np.clip(moved, -2.0, 2.0), np.where(np.abs(moved) < 2.0, speed, 0.0)])
        return self._seen(), math.exp(-3.0 * float(self.state[:3] @ self.state[:3])), False, False, {}


class Drone(_Loose):
    """A drone in the plane: place, angle and their velocities; each of two rotors is on or off.

    It pays exp(-2|x|² - θ²) at every step, and the episode ends when it is 2 away or has tipped over.
    """

    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, bound: float = 5.0) -> None:
        super().__init__(bound)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.state = np.concatenate([self.np_random.uniform(-0.7, 0.7, 2), self.np_random.uniform(-0.2, 0.2, 4)])
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        x, y, angle, speed, climb, spin = self.state
        left, right = int(action) // 2, int(action) % 2
        thrust = 2.0 * (left + right)  # gravity is 2: one rotor holds it
        noise = 0.02 * self.np_random.standard_normal(3)
        speed = 0.98 * speed - 0.1 * thrust * math.sin(angle) + noise[0]
        climb = 0.98 * climb + 0.1 * (thrust * math.cos(angle) - 2.0) + noise[1]
        spin = 0.9 * spin + 0.25 * (right - left) + noise[2]
        self.state = np.array([x + 0.1 * speed, y + 0.1 * climb, angle + 0.1 * spin, speed, climb, spin])
        x, y, angle = self.state[:3]
        paid = math.exp(-2.0 * (x * x + y * y) - angle * angle)
        return self._seen(), paid, bool(max(abs(x), abs(y)) > 2.0 or abs(angle) > 1.5), False, {}


gymnasium.register("PointMass-v0", entry_point=f"{__name__}:PointMass", max_episode_steps=40)
gymnasium.register("Drone-v0", entry_point=f"{__name__}:Drone", max_episode_steps=60)
