"""Compiled loops to time: the machine's own limits, and the pieces of an episode, many times each."""

from __future__ import annotations

import numpy as np

from belated._kernels.gaussian import draw_many, solve, solve_transposed
from belated._kernels.jit import borrowed, copy, entry_point, fast_sums
from belated._kernels.normals import standard_normal
from belated.agents._base import ALL, ANYWHERE, Arrival, Record
from belated.agents._lpsvi import LPSVIRecord, draw_chains
from belated.agents._psvi import PSVIRecord
from belated.agents._ucbvi import UCBVIRecord
from belated.environments._kernels import World, evaluate, play_episode, start_episode
from belated.types import Floats, Ints


@fast_sums
def matrix_vector(matrix: Floats, x: Floats, y: Floats) -> None:
    """Set y = Aᵀx, four rows of A at a time, so that y is read and written once for four of them."""
    rows, columns = matrix.shape
    y[:] = 0.0
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(columns):
            y[j] += x[i] * a[j] + x[i + 1] * b[j] + x[i + 2] * c[j] + x[i + 3] * d[j]
    for i in range(whole, rows):
        row = matrix[i]
        for j in range(columns):
            y[j] += x[i] * row[j]


@entry_point
def matrix_vector_many(matrix: Floats, x: Floats, y: Floats, count: int) -> None:
    """Multiply `count` times."""
    for _ in range(count):
        matrix_vector(matrix, x, y)


@entry_point
def normals_many(rng: np.random.Generator, out: Floats, count: int) -> None:
    """Fill `out` with standard normal numbers `count` times."""
    for _ in range(count):
        for i in range(out.size):
            out[i] = standard_normal(rng)


@entry_point
def learn_many(record: Record, states: Ints, actions: Ints, rewards: Floats, count: int) -> None:
    """Learn `count` trajectories, going round those given."""
    record = borrowed(record)
    for k in range(count):
        i = k % states.shape[0]
        record.learn(Arrival(k, 0, states[i], actions[i], rewards[i], False, ALL))
        record.settle()


@entry_point
def plan_and_learn_many(
    record: Record, rng: np.random.Generator, policy: Ints, states: Ints, actions: Ints, rewards: Floats, count: int
) -> None:
    """Plan and learn one trajectory, `count` times: all that an agent does in an episode."""
    record = borrowed(record)
    for k in range(count):
        i = k % states.shape[0]
        record.plan(rng, ANYWHERE, policy)
        record.learn(Arrival(k, 0, states[i], actions[i], rewards[i], False, ALL))
        record.settle()


@entry_point
def rollout_many(
    world: World, policies: Ints, rng: np.random.Generator, states: Ints, actions: Ints, rewards: Floats, count: int
) -> None:
    """Play `count` episodes, going round the policies given."""
    for k in range(count):
        states[0] = start_episode(world, k, rng)
        play_episode(world, k, policies[k % policies.shape[0]], rng, states, actions, rewards)


@entry_point
def evaluate_many(world: World, policies: Ints, values: Floats, count: int) -> None:
    """Compute the exact values of `count` policies, going round those given."""
    for k in range(count):
        evaluate(world, k, policies[k % policies.shape[0]], values)


@entry_point
def psvi_weights_many(agent: PSVIRecord, rng: np.random.Generator, count: int) -> None:
    """Find the weights of every step `count` times as a plan does, and nothing else: M exact draws a step."""
    for _ in range(count):
        for h in range(agent.table.horizon):
            copy(agent.learned.reward_moment[h], agent.work.moment)
            solve_transposed(agent.learned.factor[h], agent.work.moment)
            draw_many(agent.learned.factor[h], agent.work.moment, agent.scale, rng, agent.drawn)


@entry_point
def lpsvi_weights_many(agent: LPSVIRecord, rng: np.random.Generator, count: int) -> None:
    """Do the same by M chains a step, whose step size follows λ_max(Ω)."""
    learned, work = agent.learned, agent.work
    for _ in range(count):
        for h in range(agent.table.horizon):
            agent.spectrum.stale[h] = True  # something arrives in every episode
            copy(learned.reward_moment[h], work.moment)
            draw_chains(
                agent.chain, learned.precision[h], agent.spectrum, h, work.moment, rng, learned.samples[h], work.vector
            )


@entry_point
def ucbvi_weights_many(agent: UCBVIRecord, rng: np.random.Generator, count: int) -> None:
    """Do the same by the mean of each step; nothing is drawn."""
    for _ in range(count):
        for h in range(agent.table.horizon):
            copy(agent.learned.reward_moment[h], agent.work.moment)
            solve_transposed(agent.learned.factor[h], agent.work.moment)
            solve(agent.learned.factor[h], agent.work.moment)


def draw_weights_many(record: PSVIRecord | LPSVIRecord | UCBVIRecord, rng: np.random.Generator, count: int) -> None:
    """Find the weights of every step `count` times."""
    if isinstance(record, PSVIRecord):
        psvi_weights_many(record, rng, count)
    elif isinstance(record, LPSVIRecord):
        lpsvi_weights_many(record, rng, count)
    else:
        ucbvi_weights_many(record, rng, count)
