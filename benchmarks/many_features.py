"""A Gymnasium problem with very many hashed features: time, memory and return of every agent that plays it.

python -m benchmarks.many_features [--episodes N] [--places N] [--only NAME] [--late MEAN] [--seed N]
python -m benchmarks.many_features --accuracy

Each agent plays in its own process, so that its memory can be measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from belated import AutoPSVI, DelayedLPSVI, DelayedPHE, DelayedPSVI, EpsilonGreedy, RandomPolicy
from belated._kernels import sparse_ridge
from belated._kernels.jit import entry_point
from belated.agents import _row_regression
from belated.agents._row_agent import RowAgent
from belated.agents._row_regression import RowRegression, make_layout
from belated.delays import FeedbackQueue, Geometric
from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.features import Hashed
from belated.types import Algorithm, Feedback, Trajectory

normals = entry_point(sparse_ridge.standard_normals)
TOPICS, ACTIONS, HORIZON = 16, 4, 20
COMMON, OWN = 20_000, 1_000
#: Words of a message that are common, and those of its topic.
WORDS = 12, 6


class HelpDesk(gymnasium.Env[Any, Any]):
    """Customer messages on 16 topics; one of four answers is right for each topic.

    A right answer to one of the first eight topics, which pays nothing, leads to the other eight, where right answers
    pay and wrong ones lead back.
    """

    action_space = spaces.Discrete(ACTIONS)
    observation_space = spaces.Dict(
        {"message": spaces.Text(400), "channel": spaces.Discrete(6), "waited": spaces.Box(0.0, 1.0, ())}
    )

    def __init__(self) -> None:
        made = np.random.default_rng(7)
        self._right = made.integers(ACTIONS, size=TOPICS)
        self._common = [f"c{i}" for i in range(COMMON)]
        self._own = [[f"t{topic}w{i}" for i in range(OWN)] for topic in range(TOPICS)]

    def _look(self) -> dict[str, Any]:
        rng = self.np_random
        common = (COMMON ** rng.random(WORDS[0])).astype(int).tolist()  # a word of rank r is met about as 1/r
        own = (OWN ** rng.random(WORDS[1])).astype(int).tolist()
        words = [self._common[i - 1] for i in common] + [self._own[self._topic][i - 1] for i in own]
        return {"message": " ".join(words), "channel": int(rng.integers(6)), "waited": float(rng.random())}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._topic = int(self.np_random.integers(TOPICS // 2))
        return self._look(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        right, deep = action == self._right[self._topic], self._topic >= TOPICS // 2
        self._topic = int(self.np_random.integers(TOPICS // 2)) + (TOPICS // 2 if right else 0)
        return self._look(), float(right and deep), False, False, {}


AGENTS: dict[str, Algorithm] = {
    "random": RandomPolicy(),
    "epsilon-greedy": EpsilonGreedy(epsilon=0.1, shared=True),
    "psvi": DelayedPSVI(scale=0.1, draws=1, noise=0.5, shared=True),
    "psvi, a regression a step": DelayedPSVI(scale=0.1, draws=1, noise=0.5),
    "phe": DelayedPHE(scale=0.1, draws=1, noise=0.5, shared=True, tolerance=1e-2),
    "lpsvi, preconditioned": DelayedLPSVI(temperature=0.01, draws=1, noise=0.5, shared=True, sampler="preconditioned"),
    "lpsvi, plain": DelayedLPSVI(temperature=0.02, draws=1, noise=0.5, shared=True),
    "auto-psvi": AutoPSVI(),
}


def memory() -> float:
    """Return the memory in use, in MB, if the system reports it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(name: str, episodes: int, places: int, late: float, seed: int) -> dict[str, Any]:
    """Play one agent; return CPU milliseconds per episode, memory at tenths of the run, and mean returns."""
    desk = GymEnvironment(HelpDesk, horizon=HORIZON, reward_range=(0, 1), features=Hashed(size=places))
    agent, rng = AGENTS[name].start(desk.problem), np.random.default_rng(seed)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    delays = Geometric(mean=late).sample(np.random.default_rng(seed + 1), episodes)
    returns, used, worst, spent = [], [], 0.0, 0.0
    for k in range(episodes):
        if k == 20:  # compiled by then
            spent = 0.0
        began = time.process_time()
        agent.learn([Feedback(*each) for each in queue.arrived(k)])
        policy = agent.plan(rng)
        thought = time.process_time() - began
        played = play(desk, policy, seed=seed, episode=k)
        spent += time.process_time() - began
        worst = max(worst, thought) if k > 20 else 0.0
        queue.add(k, int(delays[k]), played)
        returns.append(float(played.rewards.sum()))
        if (k + 1) % max(episodes // 10, 1) == 0:
            used.append(round(memory()))
    return {
        "agent": name,
        "ms": 1e3 * spent / max(episodes - 20, 1),
        "longest": worst,
        "returned": float(np.mean(returns)),
        "last": float(np.mean(returns[-episodes // 10 :])),
        "memory": used,
        "residual": float(getattr(agent, "residual", 0.0)),
    }


def accuracy(episodes: int = 100, ridge: float = 1.0, members: int = 20) -> None:
    """Print the errors of draws and means relative to dense matrices, by tolerance."""
    rng, chance = np.random.default_rng(0), RandomPolicy()
    desk = GymEnvironment(HelpDesk, horizon=HORIZON, reward_range=(0, 1), features=Hashed(size=2**16))
    agent = DelayedPSVI(shared=True).start(desk.problem)
    assert isinstance(agent, RowAgent)
    for k in range(episodes):
        agent.learn([Feedback(k, play(desk, chance.start(desk.problem).plan(rng), seed=0, episode=k))])
    layout = make_layout(agent.store.states(), ACTIONS, joint=False)
    print(f"{'noise':>6}{'tolerance':>10}{'sweeps':>8}{'draws, off by':>15}{'sweeps':>8}{'mean, off by':>14}")
    for noise in (1.0, 0.5, 0.1):
        for tolerance in (0.2, 0.1, 0.05, 0.01):
            _row_regression.TOLERANCE = tolerance
            regression = RowRegression(
                layout, agent.store.rows(), slot=0, steps=members, draws=1, noise=noise, ridge=ridge, seed=1
            )
            phi, prior, n = regression.phi, regression.prior(ridge**-0.5), len(regression.keys)
            kernel = (phi @ phi.T).toarray() / ridge
            solved = np.linalg.solve(kernel + noise**2 * np.diag(1.0 / regression.visits), kernel).T
            spread = np.sqrt(np.diag(kernel - solved @ kernel))  # of predictions, of the posterior
            noises = np.empty((n, members), np.float32)
            for key, row in zip(regression.keys.tolist(), noises, strict=True):
                normals(~1, key, row)
            perturbed = noise / np.sqrt(regression.visits)[:, None] * noises
            exact = phi @ prior + solved @ (perturbed - phi @ prior)
            drawn, sweeps = phi @ regression.deviations, regression.sweeps
            targets = 10.0 + 2.0 * rng.standard_normal(n)
            mean = phi @ regression.mean(targets, regression.zeros(1))[:, 0]
            off = np.sqrt(np.mean(((drawn - exact) / spread[:, None]) ** 2))
            off_mean = np.sqrt(np.mean(((mean - solved @ targets) / spread) ** 2))
            more = regression.sweeps - sweeps
            print(f"{noise:6g}{tolerance:10g}{sweeps:8d}{off:15.3f}{more:8d}{off_mean:14.3f}")
    print("in standard deviations of the posterior's predictions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--places", type=int, default=2**16)
    parser.add_argument("--late", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=list(AGENTS))
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.only or list(AGENTS)
    if given.accuracy:
        accuracy()
        return
    if given.alone:
        print(json.dumps(measure(names[0], given.episodes, given.places, given.late, given.seed)))
        return
    print(
        f"{given.episodes} episodes of {HORIZON} steps, {given.places} places, delay geometric with mean {given.late:g}"
    )
    columns = {"ms an episode": 14, "longest plan, s": 16, "return": 8, "last tenth": 11, "residual": 9}
    print(f"{'agent':28}" + "".join(f"{name:>{width}}" for name, width in columns.items()) + "  MB by tenths")
    for name in names:
        asked = [sys.executable, "-m", "benchmarks.many_features", "--alone", "--only", name]
        settings = {"episodes": given.episodes, "places": given.places, "late": given.late, "seed": given.seed}
        asked += [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        row = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
        shown = (
            f"{row['ms']:14.2f}{row['longest']:16.2f}{row['returned']:8.2f}{row['last']:11.2f}{row['residual']:9.2f}"
        )
        print(f"{name:28}{shown}  {' '.join(map(str, row['memory']))}", flush=True)


if __name__ == "__main__":
    main()
