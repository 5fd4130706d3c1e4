"""Compiled loops to time: the machine's own limits, and the pieces of an episode, many times each."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._kernels.gaussian import draw_many, solve, solve_transposed
from belated._kernels.jit import by_record, copy, entry_point, fast_sums, kernel
from belated._kernels.normals import standard_normal
from belated.agents._base import learn, plan, settle
from belated.agents._lpsvi import LPSVIRecord, draw_chain, step_of
from belated.agents._psvi import PSVIRecord
from belated.agents._ucbvi import UCBVIRecord
from belated.environments._kernels import World, first_state, policy_values, rollout
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


@kernel
def matrix_vector_many(matrix: Floats, x: Floats, y: Floats, count: int) -> None:
    """Multiply `count` times."""
    for _ in range(count):
        matrix_vector(matrix, x, y)


@kernel
def normals_many(rng: np.random.Generator, out: Floats, count: int) -> None:
    """Fill `out` with standard normal numbers `count` times."""
    for _ in range(count):
        for i in range(out.size):
            out[i] = standard_normal(rng)


@entry_point
def learn_many(record: Any, states: Ints, actions: Ints, rewards: Floats, count: int) -> None:
    """Learn `count` trajectories, going round those given."""
    for k in range(count):
        i = k % states.shape[0]
        learn(record, k, states[i], actions[i], rewards[i])
        settle(record)


@entry_point
def plan_and_learn_many(
    record: Any, rng: np.random.Generator, policy: Ints, states: Ints, actions: Ints, rewards: Floats, count: int
) -> None:
    """Plan and learn one trajectory, `count` times: all that an agent does in an episode."""
    for k in range(count):
        i = k % states.shape[0]
        plan(record, rng, policy)
        learn(record, k, states[i], actions[i], rewards[i])
        settle(record)


@kernel
def rollout_many(
    world: World, policies: Ints, rng: np.random.Generator, states: Ints, actions: Ints, rewards: Floats, count: int
) -> None:
    """Play `count` episodes, going round the policies given."""
    for k in range(count):
        states[0] = first_state(world, k, rng)
        rollout(world, k, policies[k % policies.shape[0]], rng, states, actions, rewards)


@kernel
def evaluate_many(world: World, policies: Ints, values: Floats, count: int) -> None:
    """Compute the exact values of `count` policies, going round those given."""
    for k in range(count):
        policy_values(world, k, policies[k % policies.shape[0]], values)


@by_record()
def draw_weights(record: Any, rng: np.random.Generator) -> None:
    """Find the weights of every step as a plan does, and nothing else: chosen by the type of `record`."""


@draw_weights.register(PSVIRecord)
@kernel
def psvi_weights(agent: PSVIRecord, rng: np.random.Generator) -> None:
    """M exact draws a step."""
    for h in range(agent.table.horizon):
        copy(agent.learned.reward_moment[h], agent.work.moment)
        solve_transposed(agent.learned.factor[h], agent.work.moment)
        draw_many(agent.learned.factor[h], agent.work.moment, agent.scale, rng, agent.drawn)


@draw_weights.register(LPSVIRecord)
@kernel
def lpsvi_weights(agent: LPSVIRecord, rng: np.random.Generator) -> None:
    """M chains a step, whose step size follows λ_max(Ω)."""
    for h in range(agent.table.horizon):
        agent.spectrum.stale[h] = True  # something arrives in every episode
        copy(agent.learned.reward_moment[h], agent.work.moment)
        step = step_of(agent, h)
        for m in range(agent.draws):
            draw_chain(agent, h, m, step, rng)


@draw_weights.register(UCBVIRecord)
@kernel
def ucbvi_weights(agent: UCBVIRecord, rng: np.random.Generator) -> None:
    """The mean of each step; nothing is drawn."""
    for h in range(agent.table.horizon):
        copy(agent.learned.reward_moment[h], agent.work.moment)
        solve_transposed(agent.learned.factor[h], agent.work.moment)
        solve(agent.learned.factor[h], agent.work.moment)


@entry_point
def draw_weights_many(record: Any, rng: np.random.Generator, count: int) -> None:
    """Find the weights of every step `count` times."""
    for _ in range(count):
        draw_weights(record, rng)
