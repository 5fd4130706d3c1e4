"""Chains with a small reward nearby and a large one far away: `Chain`, `NChain` and `RiverSwim`."""

from __future__ import annotations

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
        self._specification = {"environment": "chain", "size": self.states}


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
        slip = real("slip", slip, at_least=0, at_most=1)
        transitions = np.zeros((size, 2, size))
        rewards = np.zeros((size, 2))
        for state in range(size):
            ends = {LEFT: max(state - 1, 0), RIGHT: min(state + 1, size - 1)}
            for action, end in ends.items():
                transitions[state, action, end] += 1.0 - slip
                transitions[state, action, ends[1 - action]] += slip
        rewards[0], rewards[-1] = 0.001, 1.0
        super().__init__(
            transitions,
            rewards,
            start=1,
            horizon=size + 8,
            name=full_name(f"nchain-{size}", f"slip{slip:g}" if slip else ""),
        )
        self._specification = {"environment": "nchain", "size": self.states, **({"slip": slip} if slip else {})}


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
        forward = real("forward", forward, at_least=0, at_most=1)
        backward = real("backward", backward, at_least=0, at_most=1)
        real("forward + backward", forward + backward, at_most=1)
        stay = max(0.0, 1.0 - forward - backward)

        transitions = np.zeros((states, 2, states))
        rewards = np.zeros((states, 2))
        for state in range(states):
            left, right = max(state - 1, 0), min(state + 1, states - 1)
            transitions[state, LEFT, left] = 1.0
            transitions[state, RIGHT, state] += stay
            transitions[state, RIGHT, left] += backward
            transitions[state, RIGHT, right] += forward
        rewards[0, LEFT] = 0.005
        rewards[-1, RIGHT] = 1.0
        super().__init__(
            transitions,
            rewards,
            horizon=integer("horizon", horizon, at_least=1),
            name=full_name(
                f"riverswim-{states}",
                f"h{horizon}" if horizon != 20 else "",
                f"forward{forward}" if forward != 0.35 else "",
                f"backward{backward}" if backward != 0.05 else "",
            ),
        )
        self._specification = {
            "environment": "riverswim",
            "states": self.states,
            "horizon": self.horizon,
            "forward": forward,
            "backward": backward,
        }
