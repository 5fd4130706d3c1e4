"""Time LinTS and LinUCB of contextualbandits on the stream in an .npz file: `python use_contextualbandits.py FILE`.

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
    from contextualbandits.online import LinTS, LinUCB

    given = np.load(path)
    contexts, rewards = given["contexts"], given["rewards"]
    actions = np.arange(rewards.shape[1])
    found = []
    for what, kind in (("LinTS", LinTS), ("LinUCB", LinUCB)):
        agent = kind(nchoices=actions.size, fit_intercept=False, random_state=1)
        agent.fit(contexts[actions], actions, rewards[actions, actions])

        def decide(t: int, agent: Any = agent) -> int:
            return int(agent.predict(contexts[t : t + 1])[0])

        def learn(t: int, action: int, reward: float, agent: Any = agent) -> None:
            agent.partial_fit(contexts[t : t + 1], np.array([action]), np.array([reward]))

        seconds = play(decide, learn, rewards, given["warm_up"])
        found.append({"what": f"{what}, a model for each action", "seconds": seconds})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
