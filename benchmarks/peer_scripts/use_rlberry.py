"""Time LSVI-UCB of rlberry-scool on the MDP in an .npz file: `python use_rlberry.py FILE`.

The agent is set up as in the package's own example for this algorithm. Its cost of an episode grows with the episodes
before it, since every step of every earlier episode is visited again.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main(path: str) -> None:
    """Print seconds per episode as JSON."""
    import numpy as np
    import rlberry
    from gymnasium.spaces import Discrete
    from rlberry.envs import Model
    from rlberry_scool.agents.features import FeatureMap
    from rlberry_scool.agents.linear import LSVIUCBAgent

    rlberry.logger.setLevel("ERROR")
    given = np.load(path)
    features, transitions, rewards = given["features"], given["transitions"], given["rewards"]
    states, actions, dimension = features.shape
    episodes, horizon = int(given["episodes"]), int(given["horizon"])

    class World(Model):  # type: ignore[misc]
        """The MDP of the file, which starts in state 0."""

        def __init__(self) -> None:
            Model.__init__(self)
            self.observation_space, self.action_space = Discrete(states), Discrete(actions)
            self.reward_range = (0.0, 1.0)
            self.state = 0

        def reset(self, seed: Any = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            self.state = 0
            return 0, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            reward = float(rewards[self.state, action])
            self.state = int(self.rng.choice(states, p=transitions[self.state, action]))
            return self.state, reward, False, False, {}

    class Table(FeatureMap):  # type: ignore[misc]
        """The features of the file."""

        def __init__(self) -> None:
            self.shape = (dimension,)

        def map(self, observation: int, action: int) -> Any:
            return features[observation, action]

    agent = LSVIUCBAgent(World(), horizon=horizon, feature_map_fn=lambda env: Table(), gamma=1.0)
    began = time.perf_counter()
    agent.fit(budget=episodes)
    seconds = (time.perf_counter() - began) / episodes
    print(json.dumps([{"what": "LSVI-UCB", "seconds": seconds}]))


if __name__ == "__main__":
    main(sys.argv[1])
