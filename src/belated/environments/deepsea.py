"""`DeepSea`: a grid where a single sequence of moves finds the treasure."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.environments.finite import FiniteMDP
from belated.validate import integer

LEFT, RIGHT = 0, 1
LEFT_BONUS = 0.01
TREASURE = 1.0


class DeepSea(FiniteMDP):
    """The deep sea of bsuite: a `size` × `size` grid, crossed from the top left corner in `size` steps.

    Each step goes one row down and one column to the left (action 0) or right (action 1), staying within the
    grid; cell (row, column) is state `row * size + column`, and the features are one-hot. Only moving right
    at every step finds the treasure, worth 1, in the bottom right corner.

    In bsuite a move to the right costs 0.01 / size. Rewards here lie in [0, 1], so every reward is raised by
    that amount: a move to the left pays 0.01 / size, a move to the right nothing. All policies gain the same,
    0.01, so their differences are unchanged; the optimal value is 1 and always going left is worth 0.01.

    >>> DeepSea(size=4)
    DeepSea('deepsea-4', states=16, actions=2, dimension=32, horizon=4)
    >>> DeepSea(size=4).optimal_value
    1.0
    """

    def __init__(self, size: int = 10) -> None:
        """Build the tables."""
        size = integer("size", size, at_least=2)
        transitions = np.zeros((size * size, 2, size * size))
        rewards = np.zeros((size * size, 2))
        rewards[:, LEFT] = LEFT_BONUS / size
        rewards[-1, RIGHT] = TREASURE
        for row in range(size):
            below = min(row + 1, size - 1) * size  # the episode is over when the last row is left
            for column in range(size):
                cell = row * size + column
                transitions[cell, LEFT, below + max(column - 1, 0)] = 1.0
                transitions[cell, RIGHT, below + min(column + 1, size - 1)] = 1.0
        super().__init__(transitions, rewards, horizon=size, name=f"deepsea-{size}")

    def to_dict(self) -> dict[str, Any]:
        """Return the specification that `environment_from_dict` reads."""
        return {"environment": "deepsea", "size": self.horizon}
