"""Chains with a small reward nearby and a large one far away: `Chain`, `NChain` and `RiverSwim`."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import integer, real
from belated.environments._finite import FiniteMDP, full_name

LEFT, RIGHT = 0, 1


class Chain(FiniteMDP):
    """A chain of `size` states with `size` steps per episode, started at the left end, with one-hot features.

    Action 1 (right) moves right with probability 1 - 1/size, else left; at the right end it pays 1. Action 0 (left)
    moves left, and pays 0.1/size at the left end. An episode is just long enough to reach the right end: a single step
    to the left costs the reward. This is the chain of the deep exploration literature; H = S as in the experiments of
    Howson et al. (2023), who do not state the probabilities, so those are ours.

    >>> Chain(size=5)
    Chain('chain-5', states=5, actions=2, dimension=10, horizon=5)
    >>> Chain(size=5).optimal_value
    0.4378
    """

    def __init__(self, size: int = 10) -> None:
        size = integer("size", size, at_least=2)
        transitions = np.zeros((size, 2, size))
        rewards = np.zeros((size, 2))
        for state in range(size):
            back, on = max(state - 1, 0), min(state + 1, size - 1)
            transitions[state, LEFT, back] = 1.0
            transitions[state, RIGHT, on] += 1.0 - 1.0 / size
            transitions[state, RIGHT, back] += 1.0 / size
        rewards[0, LEFT] = 0.1 / size
        rewards[-1, RIGHT] = 1.0
        super().__init__(transitions, rewards, horizon=size, name=f"chain-{size}")

    def to_dict(self) -> dict[str, Any]:
        return {"environment": "chain", "size": self.states}


class NChain(FiniteMDP):
    """A chain of `size` states with `size` + 8 steps per episode, started in the second state, with one-hot features.

    Actions 0 and 1 move left and right, and stay at the ends; with probability `slip` the move goes the other way. A
    step from the left end pays 0.001, a step from the right end pays 1. Always going right pays 10 without slips,
    whatever the size. This is the chain of Osband et al. (2016) with the horizon of the experiments that followed.

    >>> NChain(size=50)
    NChain('nchain-50', states=50, actions=2, dimension=100, horizon=58)
    >>> NChain(size=50).optimal_value
    10.0
    """

    def __init__(self, size: int = 25, slip: float = 0.0) -> None:
        size = integer("size", size, at_least=3)
        self._slip = real("slip", slip, at_least=0, at_most=1)
        transitions = np.zeros((size, 2, size))
        rewards = np.zeros((size, 2))
        for state in range(size):
            ends = {LEFT: max(state - 1, 0), RIGHT: min(state + 1, size - 1)}
            for action, end in ends.items():
                transitions[state, action, end] += 1.0 - self._slip
                transitions[state, action, ends[1 - action]] += self._slip
        rewards[0], rewards[-1] = 0.001, 1.0
        super().__init__(
            transitions,
            rewards,
            start=1,
            horizon=size + 8,
            name=full_name(f"nchain-{size}", f"slip{self._slip:g}" if self._slip else ""),
        )

    def to_dict(self) -> dict[str, Any]:
        return {"environment": "nchain", "size": self.states, **({"slip": self._slip} if self._slip else {})}


class RiverSwim(FiniteMDP):
    """A river of `states` to swim upstream (right), started at the left end, with one-hot features.

    Action 0 (left) always moves left, or stays at the left end, where it pays 0.005. Action 1 (right) moves right with
    probability `forward`, left with `backward`, else it stays; at an end, moves beyond it become stays. At the right
    end it pays 1. (Other versions give the two ends probabilities of their own, 0.6 and 0.4.)

    >>> RiverSwim()
    RiverSwim('riverswim-5', states=5, actions=2, dimension=10, horizon=20)
    >>> RiverSwim().optimal_value
    7.0780
    """

    def __init__(self, states: int = 5, horizon: int = 20, forward: float = 0.35, backward: float = 0.05) -> None:
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
        rewards[0, LEFT] = 0.005
        rewards[-1, RIGHT] = 1.0
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
        return {
            "environment": "riverswim",
            "states": self.states,
            "horizon": self.horizon,
            "forward": self._forward,
            "backward": self._backward,
        }
