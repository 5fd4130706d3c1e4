"""Play trials with another package: `python play_trials.py FILE`, in the environment of that package.

The file has what would come of every arm in every round, and when it would be certain. The package chooses arms and is
told each reward when it is certain; printed are the arms, as JSON. Every package is used as its documentation begins,
for arms without contexts, with what it has by default.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Player(NamedTuple):
    """How a package chooses in a round, and learns from an earlier one."""

    choose: Callable[[int], int]
    learn: Callable[[int, int, float], Any]


def vowpalwabbit(arms: int, seed: int) -> Player:
    """SquareCB, its recommended exploration; an arm is its name, and costs are what is lost."""
    import vowpalwabbit as vw

    learner = vw.Workspace("--cb_explore_adf --squarecb --quiet")
    names = [f"|a {arm}" for arm in range(arms)]
    rng, drawn = random.Random(seed), list[float]()

    def choose(t: int) -> int:
        chances = learner.predict(["shared |c", *names])
        arm = rng.choices(range(arms), chances)[0]
        drawn.append(chances[arm])
        return arm

    def learn(t: int, arm: int, reward: float) -> None:
        labelled = ["shared |c", *names]
        labelled[1 + arm] = f"0:{-reward}:{drawn[t]} {names[arm]}"
        learner.learn(labelled)

    return Player(choose, learn)


def bayesianbandits(arms: int, seed: int) -> Player:
    """Thompson sampling with its model that estimates the noise."""
    import bayesianbandits as bb
    import numpy as np

    listed = [bb.Arm(arm, learner=bb.NormalInverseGammaRegressor()) for arm in range(arms)]
    agent: Any = bb.ContextualAgent(listed, bb.ThompsonSampling(), random_seed=seed)
    constant = np.ones((1, 1))

    def learn(t: int, arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(constant, np.array([reward]))

    return Player(lambda t: int(agent.pull(constant)[0]), learn)


def river(arms: int, seed: int) -> Player:
    """Thompson sampling with a beta distribution of "no event"."""
    from river import bandit, proba

    policy: Any = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)
    listed = list(range(arms))
    return Player(lambda t: int(policy.pull(listed)), lambda t, arm, reward: policy.update(arm, reward == 0.0))


PLAYERS = {"vowpalwabbit": vowpalwabbit, "bayesianbandits": bayesianbandits, "river": river}


def play(player: Player, rewards: Any, delays: Any) -> list[int]:
    """Return the arms that were chosen; what is certain in round k with delay τ is told before round k + τ + 1."""
    due: dict[int, list[int]] = {}
    chosen: list[int] = []
    for t in range(len(rewards)):
        for late in due.pop(t, ()):
            player.learn(late, chosen[late], float(rewards[late][chosen[late]]))
        chosen.append(player.choose(t))
        due.setdefault(t + int(delays[t][chosen[t]]) + 1, []).append(t)
    return chosen


def main() -> None:
    """Let the package that the file names play all its runs."""
    import numpy as np

    with np.load(sys.argv[1]) as archive:
        given = dict(archive)
    make = PLAYERS[str(given["package"])]
    runs = zip(given["seeds"].tolist(), given["rewards"], given["delays"], strict=True)
    print(json.dumps([play(make(rewards.shape[1], seed), rewards, delays) for seed, rewards, delays in runs]))


if __name__ == "__main__":
    main()
