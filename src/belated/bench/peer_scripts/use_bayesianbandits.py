"""Time Thompson sampling of bayesianbandits on the stream in an .npz file: `python use_bayesianbandits.py FILE`.

Once with one model for all actions, whose features are the context times the signs of the action, and once with a model
for each action, the first example of its documentation.

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
    from bayesianbandits import Arm, ContextualAgent, LipschitzContextualAgent, NormalRegressor, ThompsonSampling
    from bayesianbandits.featurizers import FunctionArmFeaturizer

    given = np.load(path)
    contexts, signs, rewards = given["contexts"], given["signs"], given["rewards"]
    precision = 1.0 / float(given["noise"]) ** 2

    def features(x: Any, actions: Any) -> Any:
        return x[:, :, np.newaxis] * signs[list(actions)].T[np.newaxis]

    shared = LipschitzContextualAgent(
        arms=[Arm(i) for i in range(len(signs))],
        policy=ThompsonSampling(),
        arm_featurizer=FunctionArmFeaturizer(features),
        learner=NormalRegressor(alpha=1.0, beta=precision),
        random_seed=0,
    )
    separate = ContextualAgent(
        [Arm(i, learner=NormalRegressor(alpha=1.0, beta=precision)) for i in range(len(signs))],
        ThompsonSampling(),
        random_seed=0,
    )
    found = []
    for what, agent in (("one model for all actions", shared), ("a model for each action", separate)):

        def decide(t: int, agent: Any = agent) -> int:
            return int(agent.pull(contexts[t : t + 1])[0])

        def learn(t: int, action: int, reward: float, agent: Any = agent) -> None:
            agent.update(contexts[t : t + 1], np.array([reward]))

        found.append({"what": f"Thompson sampling, {what}", "seconds": play(decide, learn, rewards, given["warm_up"])})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
