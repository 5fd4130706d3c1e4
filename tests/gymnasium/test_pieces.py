from __future__ import annotations

import gymnasium
import numpy as np

from belated import Constant, Poisson
from belated.environments import GymEnvironment
from belated.environments._gym_environment import episode_seed
from belated.environments._play import play as play_policy
from belated.gymnasium import LateFeedback, Transition, pieces
from belated.types import SparseVector


class Alternate:
    def act(self, step: int, state: SparseVector) -> int:
        return step % 2


def play(env: LateFeedback[np.ndarray, int], seed: int | None) -> list[Transition]:
    arrived = env.reset(seed=seed)[1]["arrived"]
    step, over = 0, False
    while not over:
        _, _, terminated, truncated, info = env.step(step % 2)
        arrived += info["arrived"]
        step, over = step + 1, terminated or truncated
    return list(arrived)


def test_a_whole_trajectory_is_what_the_environment_played() -> None:
    made = GymEnvironment("CartPole-v1")
    env = LateFeedback(gymnasium.make("CartPole-v1"), Constant(0))
    play(env, episode_seed(3, 0))
    (piece,) = pieces(env.flush(), made.features)
    expected = play_policy(made, Alternate(), seed=3, episode=0)
    assert (piece.episode, piece.step) == (0, 0)
    assert piece.trajectory.terminated == expected.terminated
    np.testing.assert_array_equal(piece.trajectory.actions, expected.actions)
    np.testing.assert_array_equal(piece.trajectory.rewards, expected.rewards)
    for ours, theirs in zip(piece.trajectory.states, expected.states, strict=True):
        assert isinstance(ours, SparseVector)
        assert isinstance(theirs, SparseVector)
        np.testing.assert_array_equal(ours.indices, theirs.indices)


def test_pieces_hold_every_step_once() -> None:
    made = GymEnvironment("CartPole-v1")
    env = LateFeedback(gymnasium.make("CartPole-v1"), Poisson(4), unit="reward")
    seen: list[tuple[int, int]] = []
    batches = [play(env, 1 if episode == 0 else None) for episode in range(20)]
    for batch in [*batches, env.flush()]:
        found = pieces(batch, made.features)
        places = [(each.episode, each.step + i) for each in found for i in range(len(each.trajectory.actions))]
        assert places == sorted((late.episode, late.step) for late in batch)
        assert all(each.trajectory.first == each.step for each in found)
        assert sum(each.trajectory.terminated for each in found) == sum(late.terminated for late in batch)
        seen += places
    assert len(set(seen)) == len(seen)
    assert pieces([], made.features) == []
