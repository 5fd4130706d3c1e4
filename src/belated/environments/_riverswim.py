"""`RiverSwim`: a chain where the far reward needs swimming against the current."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import integer, real
from belated.environments._finite import FiniteMDP, full_name

LEFT, RIGHT = 0, 1
NEAR_REWARD, FAR_REWARD = 0.005, 1.0


class RiverSwim(FiniteMDP):
    """A chain of `states`, started at its left end, with one-hot features.

    Action 0 (left) always moves one to the left, or stays at the left end, where it pays 0.005. Action 1
    (right) moves forward with probability `forward`, back with `backward`, and else stays; at the left end
    the move back becomes a stay, at the right end the move forward does, and there it pays 1. (Other versions
    give the two ends probabilities of their own, 0.6 and 0.4.)

    >>> RiverSwim()
    RiverSwim('riverswim-5', states=5, actions=2, dimension=10, horizon=20)
    >>> RiverSwim().optimal_value
    7.0780
    """

    def __init__(self, states: int = 5, horizon: int = 20, forward: float = 0.35, backward: float = 0.05) -> None:
        """Build the tables."""
        states = integer("states", states, at_least=2)
        self._forward = real("forward", forward, at_least=0, at_most=1)
        self._backward = real("backward", backward, at_least=0, at_most=1)
        real("forward + backward", self._forward + self._backward, at_most=1)
        stay = max(0.0, 1.0 - self._forward - self._backward)

        transitions = np.zeros((states, 2, states))
        rewards = np.zeros((states, 2))
        for state in range(states):
            left, right = max(state - 1, 0), min(state + 1, states - 1)
            transitions[state, LEFT, left] = 1.0
            transitions[state, RIGHT, state] += stay
            transitions[state, RIGHT, left] += self._backward
            transitions[state, RIGHT, right] += self._forward
        rewards[0, LEFT] = NEAR_REWARD
        rewards[-1, RIGHT] = FAR_REWARD
        super().__init__(
            transitions,
            rewards,
            horizon=integer("horizon", horizon, at_least=1),
            name=full_name(
                f"riverswim-{states}",
                f"h{horizon}" if horizon != 20 else "",
                f"forward{self._forward}" if self._forward != 0.35 else "",
                f"backward{self._backward}" if self._backward != 0.05 else "",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the specification that `environment_from_dict` reads."""
        return {
            "environment": "riverswim",
            "states": self.states,
            "horizon": self.horizon,
            "forward": self._forward,
            "backward": self._backward,
        }
