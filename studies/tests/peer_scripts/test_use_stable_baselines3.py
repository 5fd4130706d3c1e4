"""The script for Stable-Baselines3: nothing is fed early, and what arrives counts as if it had just been played."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest

from belated_studies.peer_scripts.use_stable_baselines3 import LateDQN, LatePPO, Step, main, make_environment, play

NEEDS = "needs Stable-Baselines3, which with PyTorch is too large for the environment of the tests"


class Diary:
    """A learner that writes down what happens."""

    def __init__(self) -> None:
        self.pages: list[Any] = []

    def act(self, observation: Any) -> tuple[int, Any]:
        self.pages.append("act")
        return 1, len(self.pages)

    def end(self, observation: Any) -> Any:
        return float(observation[0])

    def learn(self, steps: list[Step], end: Any) -> None:
        self.pages.append((steps, end))


def test_nothing_arrives_early_twice_or_never() -> None:
    env = gymnasium.make("CartPole-v1", max_episode_steps=5)
    delays, seeds = [2, 0, 0, 5, 0, 9, 0, 0], list(range(8))
    diary = Diary()
    returns = play(env, diary, delays, seeds)
    assert returns == [5.0] * 8
    arrived, episode = list[tuple[int, int]](), 0
    starts = [env.reset(seed=seed)[0].tolist() for seed in seeds]
    acts = 0
    for page in diary.pages:
        if page == "act":
            acts += 1
            continue
        steps, end = page
        episode = acts // 5  # the one that is about to begin
        arrived.append((starts.index(steps[0].observation.tolist()), episode))
        assert [step.reward for step in steps] == [1.0] * 5
        assert [(step.terminated, step.truncated) for step in steps] == [(False, False)] * 4 + [(False, True)]
        assert end == steps[-1].after[0]
        assert all(a.after is b.observation for a, b in pairwise(steps))
    assert arrived == [(1, 2), (0, 3), (2, 3), (4, 5), (6, 7)]
    assert all(due == k + delays[k] + 1 for k, due in arrived)


def test_sparse_rewards_are_paid_at_the_goal() -> None:
    env = make_environment({"id": "MountainCar-v0", "kwargs": {}, "steps": None, "sparse": True})
    observation, _ = env.reset(seed=0)
    paid, terminated = [], False
    while not terminated:
        observation, reward, terminated, _, _ = env.step(2 if observation[1] >= 0 else 0)
        paid.append(reward)
    assert paid[-1] == 1.0
    assert sum(paid) == 1.0


def steps_of(env: Any, learner: Any, seed: int) -> tuple[list[Step], Any]:
    """Play one episode and keep it."""
    kept: list[Any] = []
    learner.learn, original = lambda steps, end: kept.append((steps, end)), learner.learn
    play(env, learner, [0, 0], [seed, seed])
    learner.learn = original
    found: tuple[list[Step], Any] = kept[0]
    return found


def test_dqn_trains_as_often_as_steps_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3", reason=NEEDS)
    env = gymnasium.make("CartPole-v1", max_episode_steps=8)
    settings = {"learning_starts": 10, "train_freq": 3, "gradient_steps": 2, "target_update_interval": 7, "tau": 1.0}
    learner = LateDQN(env, {**settings, "exploration_fraction": 0.5, "exploration_final_eps": 0.1}, 100, 0)
    model, trained = learner.model, list[tuple[int, int]]()
    monkeypatch.setattr(model, "train", lambda count, batch: trained.append((learner.arrived, count)))
    renewed: list[int] = []
    monkeypatch.setattr(
        "stable_baselines3.common.utils.polyak_update", lambda *networks: renewed.append(learner.arrived)
    )
    path, end = steps_of(env, learner, 5)
    assert model.replay_buffer.size() == 0
    for _ in range(4):
        before = model.replay_buffer.size()
        learner.learn(path, end)
        assert model.replay_buffer.size() == before + len(path)
    wanted = [(n, 2) for n in range(1, 4 * len(path) + 1) if n > 10 and n % 3 == 0]
    assert trained == wanted
    assert renewed == list(range(7, 4 * len(path) + 1, 7))
    cut = not path[-1].terminated
    assert bool(model.replay_buffer.timeouts[len(path) - 1, 0]) == cut
    learner.played = 24
    learner.act(path[0].observation)
    assert model.exploration_rate == pytest.approx(1.0 - 0.9 * 0.5)  # half way through half of the steps
    learner.played = 90
    learner.act(path[0].observation)
    assert model.exploration_rate == pytest.approx(0.1)


def test_ppo_learns_from_arrived_steps_with_the_advantages_of_when_they_were_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("stable_baselines3", reason=NEEDS)
    env = gymnasium.make("CartPole-v1", max_episode_steps=6)
    learner = LatePPO(env, {"n_steps": 9, "batch_size": 9, "gamma": 0.9, "gae_lambda": 0.8}, 1000, 0)
    model, seen = learner.model, list[Any]()

    def train() -> None:
        buffer = model.rollout_buffer
        seen.append((buffer.advantages.ravel().copy(), buffer.log_probs.ravel().copy()))

    monkeypatch.setattr(model, "train", train)
    paths = [steps_of(env, learner, seed) for seed in (1, 2, 3)]
    stream: list[tuple[float, float, bool]] = []
    for path, end in paths:
        learner.learn(path, end)
        values = [float(step.note[1]) for step in path] + [float(end)]
        for i, step in enumerate(path):
            over = i == len(path) - 1
            follows = 0.0 if step.terminated else values[i + 1]
            stream.append((step.reward + 0.9 * follows - values[i], float(step.note[2]), over))
    assert len(seen) == len(stream) // 9 == 2
    for number, (advantages, log_probs) in enumerate(seen):
        rows, wanted, following = stream[9 * number : 9 * number + 9], [], 0.0
        for error, _, over in reversed(rows):  # the naive recursion, cut where a rollout ends
            following = error + (0.0 if over else 0.9 * 0.8 * following)
            wanted.append(following)
        np.testing.assert_allclose(advantages, wanted[::-1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(log_probs, [row[1] for row in rows], rtol=1e-5)


def test_ppo_normalises_as_its_wrapper_does() -> None:
    pytest.importorskip("stable_baselines3", reason=NEEDS)
    env = gymnasium.make("MountainCar-v0", max_episode_steps=30)
    learner = LatePPO(env, {"n_steps": 64, "normalize": True, "gamma": 0.9}, 1000, 0)
    path, _ = steps_of(env, learner, 0)
    seen = np.array([step.observation for step in path])
    np.testing.assert_allclose(learner.seen.mean, seen.mean(axis=0), rtol=0.2, atol=0.01)
    rewards = [learner.reward(step) for step in path]
    assert all(reward < 0 for reward in rewards)
    sums = [-(1 - 0.9**n) / 0.1 for n in range(1, 31)]
    assert rewards[-1] == pytest.approx(-1 / np.std(sums), rel=0.05)
    assert learner.discounted == 0.0


@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_a_task_is_carried_out(agent: str) -> None:
    pytest.importorskip("stable_baselines3", reason=NEEDS)
    settings = {"learning_starts": 5} if agent == "dqn" else {"n_steps": 32, "batch_size": 32, "clip_range": "lin_0.2"}
    task = {
        "game": {"id": "FrozenLake-v1", "kwargs": {}, "steps": 20, "sparse": False},
        "agent": agent,
        "settings": settings,
        "total": 400,
        "seed": 1,
        "delays": [1] * 12,
        "seeds": list(range(12)),
    }
    first, again = main(task), main(task)
    assert first["returns"] == again["returns"]
    assert len(first["returns"]) == 12
    assert first["milliseconds"] > 0
