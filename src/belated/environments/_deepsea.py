"""`DeepSea`: a grid where a single sequence of moves finds the treasure."""

from __future__ import annotations

import numpy as np

from belated._util.validate import flag, integer
from belated.environments._finite import FiniteMDP, full_name
from belated.types import Floats, Ints

LEFT, RIGHT = 0, 1
LEFT_BONUS = 0.01
TREASURE = 1.0
#: The seed of bsuite.
SEED = 42


class DeepSea(FiniteMDP):
    """Deep sea, as in bsuite: a `size` × `size` grid, crossed from the top left corner in `size` steps.

    Each step goes one row down and one column to the left (action 0) or right (action 1), staying within the
    grid; cell (row, column) is state `row * size + column`, and the features are one-hot. Only going right at every
    step finds the treasure, worth 1, in the bottom right corner.

    With `randomised`, which of the two actions goes right is drawn for each cell, from `seed` as in bsuite. With
    `stochastic`, a move to the right goes straight down with probability 1 / size, and the rewards of the two bottom
    corners have standard normal noise.

    In bsuite a move to the right costs 0.01 / size. Rewards here lie in [0, 1], so every reward is raised by that
    amount: a move to the left pays 0.01 / size, a move to the right nothing. Every policy gains 0.01, so regret is
    unchanged; the optimal value is 1 and always going left is worth 0.01.

    >>> DeepSea(size=4)
    DeepSea('deepsea-4', states=16, actions=2, dimension=32, horizon=4)
    >>> DeepSea(size=4).optimal_value
    1.0
    >>> DeepSea(size=4, randomised=True).optimal_value
    1.0
    """

    def __init__(self, size: int = 10, randomised: bool = False, stochastic: bool = False, seed: int = SEED) -> None:
        size = integer("size", size, at_least=2)
        randomised, self._stochastic = flag("randomised", randomised), flag("stochastic", stochastic)
        seed = checked_seed(seed)
        right = right_actions(size, randomised, seed)
        straight = 1.0 / size if self._stochastic else 0.0
        transitions = np.zeros((size * size, 2, size * size))
        rewards = np.zeros((size * size, 2))
        for row in range(size):
            below = min(row + 1, size - 1) * size  # the episode ends when it leaves the last row
            for column in range(size):
                cell = row * size + column
                rewards[cell, 1 - right[cell]] = LEFT_BONUS / size
                transitions[cell, 1 - right[cell], below + max(column - 1, 0)] = 1.0
                transitions[cell, right[cell], below + min(column + 1, size - 1)] = 1.0 - straight
                transitions[cell, right[cell], below + column] += straight
        rewards[-1, right[-1]] = TREASURE
        name = deepsea_name(size, randomised, self._stochastic, seed)
        super().__init__(transitions, rewards, horizon=size, name=name)
        self._specification = {
            "environment": "deepsea",
            "size": self.horizon,
            **({"randomised": True, "seed": seed} if randomised else {}),
            **({"stochastic": True} if self._stochastic else {}),
        }

    @property
    def _spread(self) -> Floats:
        if not self._stochastic:
            return super()._spread
        spread = np.zeros(self.states)
        spread[[-self.horizon, -1]] = 1.0
        return spread


def checked_seed(seed: int) -> int:
    """Return `seed`, limited to 32 bits as in the legacy generator of bsuite."""
    return integer("seed", seed, at_least=0, at_most=2**32 - 1)


def right_actions(size: int, randomised: bool, seed: int) -> Ints:
    """Return the action that goes right in each cell, drawn by the legacy generator as in bsuite."""
    draws = np.random.RandomState(seed).binomial(1, 0.5, [size, size]) if randomised else np.full((size, size), RIGHT)
    return np.asarray(draws.reshape(-1), dtype=np.int64)


def deepsea_name(size: int, randomised: bool, stochastic: bool, seed: int) -> str:
    drawn = "randomised" if seed == SEED else f"randomised{seed}"
    return full_name(f"deepsea-{size}", drawn if randomised else "", "stochastic" if stochastic else "")
