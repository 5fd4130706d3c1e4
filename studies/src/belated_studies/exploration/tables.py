"""Tables on which rules of exploration fail in different ways: arms, lotteries, combination locks, dense features."""

from __future__ import annotations

import numpy as np

from belated._kernels.streams import stream
from belated.environments import FiniteMDP, RandomLinearMDP

CERTAIN, CHANCE = 0.4, 0.6


def arms(*means: float) -> FiniteMDP:
    """Return a bandit whose arms pay 0 or 1 with these means.

    >>> arms(0.5, 0.6).optimal_value
    0.6
    """
    return FiniteMDP([[[1.0]] * len(means)], [list(means)], horizon=1, bernoulli=True, name="arms")


def lottery(length: int) -> FiniteMDP:
    """Return a corridor of so many sure steps; then 0.4 for sure, or 1 with a chance of 0.6.

    Everything but that last choice is sure, so nothing before it says that outcomes may be random.

    >>> lottery(5).optimal_value
    0.6
    """
    end, prize, over = length, length + 1, length + 2
    transitions = np.zeros((length + 3, 2, length + 3))
    for cell in range(length):
        transitions[cell, :, cell + 1] = 1.0
    transitions[end, 0, over] = 1.0
    transitions[end, 1, [prize, over]] = CHANCE, 1.0 - CHANCE
    transitions[[prize, over], :, over] = 1.0
    rewards = np.zeros((length + 3, 2))
    rewards[end, 0], rewards[prize] = CERTAIN, 1.0
    return FiniteMDP(transitions, rewards, horizon=length + 2, name=f"lottery-{length}")


def lock(length: int, seed: int, ends: bool = False, actions: int = 4) -> FiniteMDP:
    """Return a combination lock: in each cell one action, drawn by `seed`, leads on, and any other back to the first.

    The last right action pays 1; twice as many steps as there are cells may be taken. If it `ends`, a wrong action is
    the end of the episode, and only as many steps are taken as there are cells.

    >>> lock(10, seed=0).optimal_value, lock(10, seed=0, ends=True).optimal_value
    (1.0, 1.0)
    """
    over, states = length, length + 1
    transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
    transitions[:length, :, over if ends else 0] = 1.0
    for cell, right in enumerate(stream(seed, "lock").integers(actions, size=length)):
        transitions[cell, right] = np.eye(states)[cell + 1]
        rewards[cell, right] = cell + 1 == length
    transitions[over, :, over] = 1.0
    steps, kind = (length, "strict-lock") if ends else (2 * length, "lock")
    return FiniteMDP(transitions, rewards, horizon=steps, name=f"{kind}-{length}-{seed}")


def dense(seed: int, by_step: bool, sure: bool = False) -> FiniteMDP:
    """Return a random linear MDP with 20 dense features, whose tables are the same at all steps unless `by_step`.

    Rewards are 0 or 1 or, if they are `sure`, their means.

    >>> dense(1, by_step=False).problem.homogeneous, dense(1, by_step=True).problem.homogeneous
    (True, False)
    """
    mdp = RandomLinearMDP(states=20, actions=5, dimension=20, horizon=8, seed=seed, bernoulli=not sure)
    if by_step:
        return mdp
    world = mdp.world
    return FiniteMDP(
        world.transitions[0],
        world.rewards[0, 0],
        features=mdp.problem.features,
        horizon=mdp.horizon,
        bernoulli=not sure,
        name=f"dense-{seed}{'-sure' if sure else ''}",
    )
