"""Time LinUCBDisjoint of river on the stream in an .npz file: `python use_river.py FILE`.

The first rounds are not timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def play(decide: Callable[[int], int], learn: Callable[[int, int, float], Any], rewards: Any, warm_up: int) -> float:
    """Return seconds per round."""
    began = 0.0
    for t in range(len(rewards)):
        if t == warm_up:
            began = time.perf_counter()
        action = decide(t)
        learn(t, action, float(rewards[t, action]))
    return (time.perf_counter() - began) / (len(rewards) - warm_up)


def main(path: str) -> None:
    """Print seconds per round as JSON."""
    import numpy as np
    from river import bandit

    given = np.load(path)
    rewards = given["rewards"]
    actions = list(range(rewards.shape[1]))
    contexts = [dict(enumerate(map(float, row))) for row in given["contexts"]]  # what it takes; not timed
    agent = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0 / float(given["noise"]) ** 2, seed=0)

    def decide(t: int) -> int:
        return int(agent.pull(actions, context=contexts[t]))

    def learn(t: int, action: int, reward: float) -> None:
        agent.update(action, contexts[t], reward)

    seconds = play(decide, learn, rewards, given["warm_up"])
    print(json.dumps([{"what": "LinUCBDisjoint, a model for each action", "seconds": seconds}]))


if __name__ == "__main__":
    main(sys.argv[1])
