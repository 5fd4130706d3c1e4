"""Small models, all paths through them, and the occupancy of a policy by brute force."""

from __future__ import annotations

import itertools

import numpy as np

from belated.agents._occupancy import (
    Model,
)
from belated.environments import FiniteMDP, RandomLinearMDP
from belated.types import Floats, Trajectory

SMALL = RandomLinearMDP(states=3, actions=2, dimension=3, horizon=3, seed=4)


def told(mdp: FiniteMDP) -> FiniteMDP:
    """Return `mdp` with a random start and dynamics that the agent may know."""
    start = np.random.default_rng(1).dirichlet(np.ones(mdp.states))
    return FiniteMDP(mdp.transitions, mdp.rewards, start=start, known_dynamics=True)


def some_policy(shape: tuple[int, ...], seed: int = 0) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def some_model(horizon: int, states: int, actions: int, rng: np.random.Generator, width: float = 0.3) -> Model:
    """Return bounds around random dynamics, which are within them."""
    distribution, start = (
        rng.dirichlet(np.ones(states), size=(horizon, states, actions)),
        rng.dirichlet(np.ones(states)),
    )
    below, above = rng.random((2, *distribution.shape)) * width
    return Model(
        np.maximum(distribution - below, 0),
        np.minimum(distribution + above, 1),
        start * 0.8,
        np.minimum(start + 0.1, 1),
        False,
    )


def paths(mdp: FiniteMDP, policy: Floats) -> list[tuple[float, Trajectory]]:
    """Return every trajectory of `policy` with its probability."""
    found = []
    steps = range(mdp.horizon)
    for states in itertools.product(range(mdp.states), repeat=mdp.horizon + 1):
        for actions in itertools.product(range(mdp.actions), repeat=mdp.horizon):
            chance = float(mdp.start[states[0]])
            for h in steps:
                chance *= policy[h, states[h], actions[h]] * mdp.transitions[h, states[h], actions[h], states[h + 1]]
            if chance > 0:
                rewards = np.array([mdp.rewards[h, states[h], actions[h]] for h in steps])
                found.append((chance, Trajectory(np.array(states), np.array(actions), rewards)))
    return found


def naive_mean(low: Floats, high: Floats, values: Floats, upper: bool) -> float:
    distribution = low.copy()
    for s in sorted(range(len(values)), key=lambda s: values[s], reverse=upper):
        distribution[s] = min(high[s], low[s] + max(1 - distribution.sum(), 0))
    return float(distribution @ values)


def naive_reach(model: Model, policy: Floats, upper: bool) -> Floats:
    horizon, states, actions = policy.shape
    reached = np.zeros((horizon, states))
    for h, s in itertools.product(range(horizon), range(states)):
        chance = np.eye(states)[s]
        for t in reversed(range(h)):
            chance = np.array(
                [
                    sum(
                        policy[t, x, a] * naive_mean(model.low[t, x, a], model.high[t, x, a], chance, upper)
                        for a in range(actions)
                    )
                    for x in range(states)
                ]
            )
        reached[h, s] = naive_mean(model.start_low, model.start_high, chance, upper)
    return reached
