"""What a learner of Stable-Baselines3 gets to see, without Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from belated import Constant, Poisson
from belated.errors import InvalidInputError
from belated.gymnasium import ArrivedOnly, LateFeedback, WithTheNextStep


class Buffer:
    """Takes what a replay buffer takes."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def add(self, *row: Any) -> None:
        self.rows.append(row)


class LateBuffer(ArrivedOnly, Buffer):
    pass


def played(distribution: Any, episodes: int, steps: int = 5) -> tuple[LateBuffer, list[float], LateFeedback]:
    """Return the buffer after some episodes, the rewards that were paid, and the wrapper."""
    late = LateFeedback(gymnasium.make("CartPole-v1", max_episode_steps=steps), distribution)
    env, buffer, positions = WithTheNextStep(late), LateBuffer(), list[float]()
    for episode in range(episodes):
        observation, _ = env.reset(seed=3 if episode == 0 else None)
        over = False
        while not over:
            positions.append(float(observation[0]))
            before = observation
            observation, reward, terminated, truncated, info = env.step(0)
            over = terminated or truncated
            buffer.add(before, observation, np.array([0]), np.array([reward]), np.array([over]), [info])
    return buffer, positions, late


def test_only_what_has_arrived_is_stored_in_the_order_of_arrival() -> None:
    buffer, positions, _ = played(Constant(0), episodes=3)
    assert [float(row[0][0][0]) for row in buffer.rows] == positions[:10], "the third episode has not arrived"
    assert all(row[3].tolist() == [1.0] for row in buffer.rows), "the 0.0 of a withheld reward is never stored"


def test_ends_of_episodes_and_time_limits_are_told_apart() -> None:
    buffer, _, _ = played(Constant(0), episodes=2)
    assert [bool(row[4][0]) for row in buffer.rows] == [False] * 4 + [True]
    assert [row[5][0]["TimeLimit.truncated"] for row in buffer.rows] == [False] * 4 + [True]
    fallen, _, _ = played(Constant(0), episodes=2, steps=400)
    assert bool(fallen.rows[-1][4][0])
    assert not fallen.rows[-1][5][0]["TimeLimit.truncated"]


def test_nothing_is_lost_or_stored_twice() -> None:
    buffer, positions, late = played(Poisson(2), episodes=12)
    assert len(buffer.rows) + late.in_flight == len(positions)
    stored = [float(row[0][0][0]) for row in buffer.rows]
    assert len(set(stored)) == len(stored)
    assert set(stored) < set(positions)


def test_what_arrived_survives_an_episode_without_a_step() -> None:
    env = WithTheNextStep(LateFeedback(gymnasium.make("CartPole-v1", max_episode_steps=2), Constant(0)))
    env.reset(seed=0)
    env.step(0)
    env.step(0)
    env.reset()
    env.reset()
    assert [late.episode for late in env.step(0)[4]["arrived"]] == [0, 0]


def test_a_vector_of_environments_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"infos must be 1: .* single environment, got 2"):
        LateBuffer().add(None, None, None, None, None, [{"arrived": []}] * 2)
