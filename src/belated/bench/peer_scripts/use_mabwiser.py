"""Time LinTS and LinUCB of mabwiser on the stream in an .npz file: `python use_mabwiser.py FILE`.

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
    from mabwiser.mab import MAB, LearningPolicy

    given = np.load(path)
    contexts, rewards = given["contexts"], given["rewards"]
    actions = list(range(rewards.shape[1]))
    found = []
    for what, policy in (("LinTS", LearningPolicy.LinTS(alpha=1.0)), ("LinUCB", LearningPolicy.LinUCB(alpha=1.0))):
        agent = MAB(actions, policy, seed=0)
        agent.fit(actions, [float(rewards[i, i]) for i in actions], contexts[actions])  # it wants some data to start

        def decide(t: int, agent: Any = agent) -> int:
            return int(agent.predict(contexts[t : t + 1]))

        def learn(t: int, action: int, reward: float, agent: Any = agent) -> None:
            agent.partial_fit([action], [reward], contexts[t : t + 1])

        seconds = play(decide, learn, rewards, given["warm_up"])
        found.append({"what": f"{what}, a model for each action", "seconds": seconds})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
