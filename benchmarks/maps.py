"""Does held-out error select the better feature map? Each map plays, and both predict the observed returns.

python -m benchmarks.maps [--episodes N] [--seed N] [--only NAME]

`AutoPSVI` plays under Poisson(10) on tiles over the range seen, and on a network. After a quarter of the episodes and
after all, both maps are fitted to the returns after each step in the first two thirds of the episodes; the output is
the fraction of the variance in the last third that they leave unexplained. If held-out error is a valid criterion, the
better map has the smaller figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from belated import AutoPSVI, Poisson
from belated.delays import FeedbackQueue
from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.features import Network, _adaptive
from belated.features._adaptive import tiles_of
from belated.features._network import Transitions, forward
from belated.types import Feedback, Floats, Ints, Trajectory
from belated_studies.peer_scripts.continuous_worlds import PointMass

PROBLEMS: dict[str, Callable[..., GymEnvironment]] = {
    "MountainCar": partial(GymEnvironment, "MountainCar-v0"),
    "CartPole": partial(GymEnvironment, "CartPole-v1", horizon=200),
    "Acrobot": partial(GymEnvironment, "Acrobot-v1"),
    "point mass": partial(GymEnvironment, PointMass, horizon=40),
}
TRAINING, RIDGE = 3_000, 1.0


def played(make: Callable[..., GymEnvironment], which: str, episodes: int, seed: int) -> list[Trajectory]:
    """Return the episodes of `AutoPSVI` on tiles or on a network."""
    environment = make(features="learned") if which == "network" else make()
    agent = AutoPSVI().start(environment.problem)
    rng, delays = np.random.default_rng(seed), Poisson(10).sample(np.random.default_rng(seed + 1), episodes)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    found = []
    for episode in range(episodes):
        if late := queue.arrived(episode):
            agent.learn([Feedback(k, trajectory) for k, trajectory in late])
        found.append(play(environment, agent.plan(rng), seed=seed, episode=episode))
        queue.add(episode, int(delays[episode]), found[-1])
    return found


def steps_of(trajectories: list[Trajectory], discount: float) -> tuple[Floats, Ints, Floats]:
    """Return observations, actions and the discounted returns that followed."""
    numbers, actions, returns = [], [], []
    for each in trajectories:
        total, to_go = 0.0, []
        for reward in each.rewards[::-1].tolist():
            total = reward + discount * total
            to_go.append(total)
        numbers += [state.values for state in each.states[:-1]]
        actions += each.actions.tolist()
        returns += to_go[::-1]
    return np.array(numbers), np.array(actions), np.array(returns)


def unexplained(which: str, known: tuple[Floats, Ints, Floats], held_out: tuple[Floats, Ints, Floats]) -> float:
    """Return the mean squared error on held-out data, relative to its variance."""
    numbers, actions, returns = known
    count = int(max(actions.max(), held_out[1].max())) + 1
    centre, unit = returns.mean(), returns.std() or 1.0
    wanted = (returns - centre) / unit
    if which == "network":
        rng, ends = np.random.default_rng(0), np.full(len(actions), -1)
        data = Transitions(numbers, np.arange(len(actions)), actions, ends, wanted, np.zeros(len(actions)))
        network = Network.begun(numbers, count, rng).fitted_to(data, TRAINING, (-np.inf, np.inf), rng)
        guesses = forward(network.layers, network.standardised(held_out[0]))[2]
    else:
        tiles, (many, few) = tiles_of(numbers), (len(numbers), len(held_out[0]))
        ours, theirs = (np.zeros((rows, tiles.size)) for rows in (many, few))
        for matrix, observed in ((ours, numbers), (theirs, held_out[0])):
            encoded = tiles.encode_rows(observed)
            matrix[np.repeat(np.arange(len(observed)), np.diff(encoded.starts)), encoded.indices] = encoded.values
        guesses = np.zeros((few, count))
        for action in range(count):
            own = ours[actions == action]
            precision = own.T @ own + RIDGE / tiles.active * np.eye(tiles.size)
            guesses[:, action] = theirs @ np.linalg.solve(precision, own.T @ wanted[actions == action])
    errors = held_out[2] - centre - unit * guesses[np.arange(len(guesses)), held_out[1]]
    return float(np.mean(errors**2) / (np.var(held_out[2]) or 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=120)
    parser.add_argument("--seed", type=int, default=3000)
    parser.add_argument("--only", choices=list(PROBLEMS))
    given = parser.parse_args()
    tiled: Any = _adaptive
    tiled.MOST_TILED = 16  # so that tiles can be played on six numbers
    print(f"{'problem':12s} {'played on':9s} {'last fifth':>10s}   unexplained by tiles / network, early and late")
    for name, make in PROBLEMS.items():
        if given.only not in (None, name):
            continue
        for which in ("tiles", "network"):
            runs = played(make, which, given.episodes, given.seed)
            last = float(np.mean([each.rewards.sum() for each in runs[-max(1, given.episodes // 5) :]]))
            shown = []
            for count in (given.episodes // 4, given.episodes):
                discount, cut = 1.0 - 2.0 / min(make().horizon, 200), 2 * count // 3
                known, held_out = (steps_of(part, discount) for part in (runs[:cut], runs[cut:count]))
                shown.append(" / ".join(f"{unexplained(each, known, held_out):.2f}" for each in ("tiles", "network")))
            print(f"{name:12s} {which:9s} {last:10.1f}   {shown[0]:>13s}   {shown[1]:>13s}", flush=True)


if __name__ == "__main__":
    main()
