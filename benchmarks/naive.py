"""Delayed-PSVI as one would first write it in NumPy: keep all data, rebuild the regression every episode.

Vectorised over the data, unlike the transcription in the tests, so that it is a fair opponent; the same random numbers
in the same order, so that it must play exactly the same episodes.
"""

from __future__ import annotations

import numpy as np

from belated._kernels.streams import stream
from belated.delays import arrival_schedule
from belated.environments import FiniteMDP
from belated.types import Floats, Ints, TablePolicy, Trajectory

TIE = 1e-12


def play(world: FiniteMDP, delays: Ints, *, scale: float, noise: float, draws: int, seed: int) -> Floats:
    """Return the value of the policy of each episode."""
    episodes, horizon = delays.size, world.horizon
    phi = np.zeros((horizon, episodes, world.dimension))
    rewards = np.zeros((horizon, episodes))
    following = np.zeros((horizon, episodes), np.int64)
    env_rng, rng = stream(seed, "environment"), stream(seed, "agent")
    offsets, order = arrival_schedule(delays)
    in_flight: dict[int, Trajectory] = {}
    found = np.zeros(episodes)
    for k in range(episodes):
        for n in range(offsets[k], offsets[k + 1]):  # what has arrived is kept in one block, so that no copy is needed
            late = in_flight.pop(int(order[n]))
            phi[:, n] = world.features[late.rows[:-1], late.actions]
            rewards[:, n] = late.rewards
            following[:, n] = late.rows[1:]
        arrived = slice(offsets[k + 1])
        actions = np.zeros((horizon, world.states), np.int64)
        values = np.zeros(world.states)
        for h in range(horizon - 1, -1, -1):
            x = phi[h, arrived]
            y = rewards[h, arrived] + values[following[h, arrived]]
            precision = x.T @ x / noise**2 + np.eye(world.dimension)
            mean = np.linalg.solve(precision, x.T @ y / noise**2)
            lower = np.linalg.cholesky(precision)
            weights = [
                mean + scale * np.linalg.solve(lower.T, rng.standard_normal(world.dimension)) for _ in range(draws)
            ]
            q = np.minimum(np.max([world.features @ w for w in weights], axis=0), horizon - h)
            values = q.max(axis=1)
            for s in range(world.states):
                ties = np.flatnonzero(q[s] >= values[s] - TIE * max(1.0, abs(values[s])))
                actions[h, s] = ties[int(rng.random() * ties.size)] if ties.size > 1 else ties[0]
        policy = TablePolicy(actions)
        played = world.rollout(policy, env_rng)
        found[k] = world.values(policy)[0, played.rows[0]]
        in_flight[k] = played
    return found
