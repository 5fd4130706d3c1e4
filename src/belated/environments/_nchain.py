"""`NChain`: a long corridor with a crumb behind and a meal far ahead, the usual test of deep exploration."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import integer, real
from belated.environments._finite import FiniteMDP, full_name

LEFT, RIGHT = 0, 1
CRUMB, MEAL = 0.001, 1.0
#: How many steps an episode has more than the chain has states.
SPARE = 8


class NChain(FiniteMDP):
    """A chain of `size` states, entered in the second, with `size` + 8 steps an episode and one-hot features.

    Actions 0 and 1 move one to the left and to the right, and stay at the ends; with probability `slip` the move goes
    the other way. Every step that begins at the left end pays 0.001, every one that begins at the right end pays 1.
    Going right all the time pays 10 without slips, whatever the size. This is the chain of Osband et al. (2016) with
    the horizon of the experiments that followed them.

    >>> NChain(size=50)
    NChain('nchain-50', states=50, actions=2, dimension=100, horizon=58)
    >>> NChain(size=50).optimal_value
    10.0
    """

    def __init__(self, size: int = 25, slip: float = 0.0) -> None:
        """Build the tables."""
        size = integer("size", size, at_least=3)
        self._slip = real("slip", slip, at_least=0, at_most=1)
        transitions = np.zeros((size, 2, size))
        rewards = np.zeros((size, 2))
        for state in range(size):
            ends = {LEFT: max(state - 1, 0), RIGHT: min(state + 1, size - 1)}
            for action, end in ends.items():
                transitions[state, action, end] += 1.0 - self._slip
                transitions[state, action, ends[1 - action]] += self._slip
        rewards[0], rewards[-1] = CRUMB, MEAL
        super().__init__(
            transitions,
            rewards,
            start=1,
            horizon=size + SPARE,
            name=full_name(f"nchain-{size}", f"slip{self._slip:g}" if self._slip else ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the specification that `environment_from_dict` reads."""
        return {"environment": "nchain", "size": self.states, **({"slip": self._slip} if self._slip else {})}
