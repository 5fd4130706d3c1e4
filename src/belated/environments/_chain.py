"""`Chain`: a corridor that must be crossed without a rest, with a small comfort at its entrance."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import integer
from belated.environments._finite import FiniteMDP

LEFT, RIGHT = 0, 1
COMFORT = 0.1


class Chain(FiniteMDP):
    """A chain of `size` states, entered at the left, with `size` steps an episode and one-hot features.

    Action 1 (right) moves on with probability 1 - 1/size and else back; at the right end it pays 1. Action 0 (left)
    moves back, and pays 0.1/size at the left end. There is just time enough to reach the far end: a single step to the
    left, or a slip, costs the reward. This is the chain of the deep exploration literature; H = S as in the
    experiments of Howson et al. (2023), who leave the probabilities open, so those are ours.

    >>> Chain(size=5)
    Chain('chain-5', states=5, actions=2, dimension=10, horizon=5)
    >>> Chain(size=5).optimal_value
    0.4378
    """

    def __init__(self, size: int = 10) -> None:
        """Build the tables."""
        size = integer("size", size, at_least=2)
        transitions = np.zeros((size, 2, size))
        rewards = np.zeros((size, 2))
        for state in range(size):
            back, on = max(state - 1, 0), min(state + 1, size - 1)
            transitions[state, LEFT, back] = 1.0
            transitions[state, RIGHT, on] += 1.0 - 1.0 / size
            transitions[state, RIGHT, back] += 1.0 / size
        rewards[0, LEFT] = COMFORT / size
        rewards[-1, RIGHT] = 1.0
        super().__init__(transitions, rewards, horizon=size, name=f"chain-{size}")

    def to_dict(self) -> dict[str, Any]:
        """Return the specification that `environment_from_dict` reads."""
        return {"environment": "chain", "size": self.states}
