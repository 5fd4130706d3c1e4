"""Play DQN or PPO of Stable-Baselines3 fed only what has arrived: `python use_stable_baselines3.py TASK`.

The task is a file in JSON: the environment (`id`, `kwargs`, `steps` after which an episode is cut, or null, and whether
rewards are `sparse`), the `agent`, its `settings`, the `total` of steps that its schedules are about, and for each
episode its delay and the seed of its reset. Episode k with the delay τ arrives before episode k + τ + 1. What is
printed is the return of each episode and the milliseconds of processor time that one took.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Protocol

import numpy as np


class Step(NamedTuple):
    """One step of an episode, and what the agent noted when it was played."""

    observation: Any
    action: int
    reward: float
    after: Any
    terminated: bool
    truncated: bool
    note: Any


class Learner(Protocol):
    """An agent that acts at once and learns late."""

    def act(self, observation: Any) -> tuple[int, Any]:
        """Return an action, and what will be needed to learn from it."""

    def end(self, observation: Any) -> Any:
        """Return what will be needed of the last observation of an episode."""

    def learn(self, steps: list[Step], end: Any) -> None:
        """Learn an episode that has arrived."""


def play(env: Any, learner: Learner, delays: list[int], seeds: list[int]) -> list[float]:
    """Play an episode for each delay and seed, and return what each has earned."""
    in_flight: dict[int, list[tuple[list[Step], Any]]] = {}
    returns = []
    for episode, (delay, seed) in enumerate(zip(delays, seeds, strict=True)):
        for steps, end in in_flight.pop(episode, []):
            learner.learn(steps, end)
        observation, steps, over = env.reset(seed=seed)[0], [], False
        while not over:
            action, note = learner.act(observation)
            after, reward, terminated, truncated, _ = env.step(action)
            steps.append(Step(observation, action, float(reward), after, terminated, truncated, note))
            observation, over = after, terminated or truncated
        returns.append(sum(step.reward for step in steps))
        in_flight.setdefault(episode + delay + 1, []).append((steps, learner.end(observation)))
    return returns


class LateDQN:
    """DQN whose replay buffer, updates and target network know only of steps that have arrived.

    Each arrived step counts as one that DQN itself would have played: after every `train_freq` of them it makes its
    `gradient_steps`, after every `target_update_interval` it renews the target network. Exploration goes by the steps
    that were played.
    """

    def __init__(self, env: Any, settings: dict[str, Any], total: int, seed: int) -> None:
        from stable_baselines3 import DQN
        from stable_baselines3.common.logger import configure

        self.model: Any = DQN("MlpPolicy", env, seed=seed, device="cpu", **settings)
        self.model.set_logger(configure(None, []))
        self.total, self.played, self.arrived = total, 0, 0

    def act(self, observation: Any) -> tuple[int, Any]:
        """Return a random action at first, and then one by ε-greedy."""
        model = self.model
        self.played += 1
        if self.played <= model.learning_starts:
            return int(model.action_space.sample()), None
        model.exploration_rate = model.exploration_schedule(1.0 - self.played / self.total)
        return int(model.predict(observation)[0]), None

    def end(self, observation: Any) -> None:
        """Note nothing: targets are made of the current networks."""

    def learn(self, steps: list[Step], end: Any) -> None:
        """Put the steps into the replay buffer, and train as often as is due."""
        from stable_baselines3.common.utils import polyak_update

        model = self.model
        every = model.train_freq.frequency
        for step in steps:
            cut = step.truncated and not step.terminated
            model.replay_buffer.add(
                np.array([step.observation]),
                np.array([step.after]),
                np.array([step.action]),
                np.array([step.reward]),
                np.array([step.terminated or step.truncated]),
                [{"TimeLimit.truncated": cut}],
            )
            self.arrived += 1
            if self.arrived % model.target_update_interval == 0:
                polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), model.tau)
            if self.arrived > model.learning_starts and self.arrived % every == 0:
                model.train(model.gradient_steps if model.gradient_steps >= 0 else every, model.batch_size)


class LatePPO:
    """PPO whose rollouts are made of arrived steps, with the values and probabilities of when they were played.

    A rollout has `n_steps`, over the borders of episodes. With `normalize`, observations are normalised when they are
    seen, and rewards when they arrive, both by running moments as `VecNormalize` does.
    """

    def __init__(self, env: Any, settings: dict[str, Any], total: int, seed: int) -> None:
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import configure
        from stable_baselines3.common.running_mean_std import RunningMeanStd

        given = {name: schedule(value) for name, value in settings.items()}
        self.normalize = given.pop("normalize", False)
        self.model: Any = PPO("MlpPolicy", env, seed=seed, device="cpu", **given)
        self.model.set_logger(configure(None, []))
        self.total, self.played, self.discounted = total, 0, 0.0
        self.seen: Any = RunningMeanStd(shape=env.observation_space.shape)
        self.paid: Any = RunningMeanStd(shape=())

    def shown(self, observation: Any) -> Any:
        """Return an observation as the networks see it."""
        if not self.normalize:
            return observation
        normal = (observation - self.seen.mean) / np.sqrt(self.seen.var + 1e-8)
        return np.clip(normal, -10.0, 10.0).astype(np.float32)

    def act(self, observation: Any) -> tuple[int, Any]:
        """Draw an action, and note the observation, its value and the logarithm of the action's probability."""
        import torch

        self.played += 1
        if self.normalize:
            self.seen.update(observation[np.newaxis])
        shown = self.shown(observation)
        with torch.no_grad():
            actions, values, log_probs = self.model.policy(self.model.policy.obs_to_tensor(shown)[0])
        return int(actions[0]), (shown, values, log_probs)

    def end(self, observation: Any) -> Any:
        """Note the value of the last observation."""
        import torch

        policy = self.model.policy
        with torch.no_grad():
            return policy.predict_values(policy.obs_to_tensor(self.shown(observation))[0])

    def reward(self, step: Step) -> float:
        """Return the reward of a step as PPO sees it."""
        if not self.normalize:
            return step.reward
        self.discounted = self.discounted * self.model.gamma + step.reward
        self.paid.update(np.array([self.discounted]))
        if step.terminated or step.truncated:
            self.discounted = 0.0
        return float(np.clip(step.reward / np.sqrt(self.paid.var + 1e-8), -10.0, 10.0))

    def learn(self, steps: list[Step], end: Any) -> None:
        """Put the steps into the rollout, and train whenever it is full."""
        model, buffer = self.model, self.model.rollout_buffer
        for i, step in enumerate(steps):
            shown, value, log_prob = step.note
            last = i == len(steps) - 1
            reward = self.reward(step)
            if last and not step.terminated:  # a cut is not an end: what would follow counts
                reward += model.gamma * float(end)
            buffer.add(
                np.array([shown]), np.array([step.action]), np.array([reward]), np.array([i == 0]), value, log_prob
            )
            if buffer.full:
                following = end if last else steps[i + 1].note[1]
                buffer.compute_returns_and_advantage(following, np.array([last]))
                model._current_progress_remaining = max(0.0, 1.0 - self.played / self.total)  # of its schedules
                model.train()
                buffer.reset()


def schedule(value: Any) -> Any:
    """Return a setting; one such as "lin_0.2" falls to zero with what is left of the steps.

    >>> schedule("lin_0.2")(0.5), schedule(3)
    (0.1, 3)
    """
    if not isinstance(value, str) or not value.startswith("lin_"):
        return value
    first = float(value.removeprefix("lin_"))
    return lambda left: left * first


def make_environment(game: dict[str, Any]) -> Any:
    """Return the environment of a task."""
    import gymnasium

    limit = {} if game["steps"] is None else {"max_episode_steps": game["steps"]}
    env = gymnasium.make(game["id"], **limit, **game["kwargs"])
    if not game["sparse"]:
        return env

    class AtTheGoal(gymnasium.Wrapper):
        """Pays 1 when the episode terminates, and else nothing."""

        def step(self, action: Any) -> Any:
            observation, _, terminated, truncated, info = self.env.step(action)
            return observation, float(terminated), terminated, truncated, info

    return AtTheGoal(env)


AGENTS: dict[str, Any] = {"dqn": LateDQN, "ppo": LatePPO}


def main(task: dict[str, Any]) -> dict[str, Any]:
    """Carry out a task."""
    import torch

    torch.set_num_threads(1)
    env = make_environment(task["game"])
    learner = AGENTS[task["agent"]](env, task["settings"], task["total"], task["seed"])
    began = process_time()
    returns = play(env, learner, task["delays"], task["seeds"])
    return {"returns": returns, "milliseconds": 1000 * (process_time() - began) / len(returns)}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
