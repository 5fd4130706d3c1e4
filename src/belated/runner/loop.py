"""One run: one agent, one environment, one law of delays, one seed; out come rows.

The loop is written twice. `_play` asks an agent in Python and serves any agent. `_play_compiled` is the same loop
for the library's own algorithms, compiled, many episodes a call. Both draw the same random numbers in the
same order and give the same rows, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from belated.algorithms.agent import Learner
from belated.algorithms.agent import learn as learn_kernel
from belated.algorithms.agent import plan as plan_kernel
from belated.compiled import entry_point
from belated.delays import NEVER, DelayBuffer, DelayLaw, arrival_schedule
from belated.environments import FiniteMDP
from belated.environments.kernels import World, policy_values, rollout
from belated.errors import InvalidInputError
from belated.rng import stream
from belated.types import Agent, Algorithm, Feedback, Floats, Ints, Policy, Trajectory
from belated.validate import indices, integer, refuse

#: Episodes a compiled call plays before Python gets a word in, for progress and interruption.
BLOCK = 256


class Journal(NamedTuple):
    """What is recorded of every episode, each of length K."""

    start: Ints
    value: Floats
    sampled_return: Floats
    arrived: Ints


class Post(NamedTuple):
    """Trajectories under way. A slot is taken when one is sent and given back when it arrives."""

    offsets: Ints
    order: Ints
    slot: Ints
    """Slot of each episode's trajectory; -1 for one that arrives too late to be used."""
    free: Ints
    """Stack of free slots; its last entry counts them."""
    states: Ints
    actions: Ints
    rewards: Floats


def simulate(
    environment: FiniteMDP,
    algorithm: Algorithm,
    delay: DelayLaw,
    *,
    episodes: int,
    seed: int,
    watch: Callable[[int], None] | None = None,
) -> pl.DataFrame:
    """Play `episodes` episodes and return one row for each.

    The columns are `episode`, `start` (the first state), `delay` (null: never arrives), `arrived` (trajectories that
    arrived just before this episode was planned), `value` (the exact value of the policy played, from that
    start), `optimal` (the best possible one) and `sampled_return` (the rewards that were seen). `watch` is
    called now and then with the number of episodes played since its last call.

    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> rows = simulate(RiverSwim(), DelayedPSVI(), Poisson(5), episodes=100, seed=0)
    >>> rows.columns
    ['episode', 'start', 'delay', 'arrived', 'value', 'optimal', 'sampled_return']
    """
    for name, value, kind in (
        ("environment", environment, FiniteMDP),
        ("algorithm", algorithm, Algorithm),
        ("delay", delay, DelayLaw),
    ):
        if not isinstance(value, kind) or isinstance(value, type):
            raise refuse(name, value, f"of type {kind.__name__}")
    total = integer("episodes", episodes, at_least=1)
    delays = delay.sample(stream(seed, "delay"), total)
    journal = Journal(np.zeros(total, np.int64), np.zeros(total), np.zeros(total), np.zeros(total, np.int64))
    agent = algorithm.start(environment.problem)
    streams = stream(seed, "environment"), stream(seed, "agent")
    tell = watch or (lambda played: None)
    if isinstance(agent, Learner):
        _play_compiled(environment.world, agent, delays, *streams, journal, tell)
    else:
        _play(environment, agent, delays, *streams, journal, tell)
    never = delays == NEVER
    return pl.DataFrame(
        {
            "episode": np.arange(total),
            "start": journal.start,
            "delay": pl.Series(np.where(never, 0, delays)).set(pl.Series(never), None),
            "arrived": journal.arrived,
            "value": journal.value,
            "optimal": environment.optimal_values()[0][journal.start],
            "sampled_return": journal.sampled_return,
        }
    )


def _play(
    environment: FiniteMDP,
    agent: Agent,
    delays: Ints,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    journal: Journal,
    watch: Callable[[int], None],
) -> None:
    """Play all episodes, asking the agent in Python."""
    buffer: DelayBuffer[Trajectory] = DelayBuffer()
    shape = (environment.horizon, environment.states)
    for k, delay in enumerate(delays):
        batch = [Feedback(origin, trajectory) for origin, trajectory in buffer.arrived(k)]
        agent.learn(batch)
        policy = agent.plan(agent_rng)
        if not isinstance(policy, Policy):
            raise InvalidInputError(f"plan must return a Policy, got {type(policy).__name__}")
        policy = Policy(indices("the planned policy's actions", policy.actions, shape, environment.actions))
        trajectory = environment.rollout(policy, env_rng)
        buffer.add(k, int(delay), trajectory)
        journal.start[k] = trajectory.states[0]
        journal.value[k] = environment.values(policy)[0, trajectory.states[0]]
        journal.sampled_return[k] = np.cumsum(trajectory.rewards)[-1]  # in order, as the compiled loop adds
        journal.arrived[k] = len(batch)
        watch(1)


def _play_compiled(
    world: World,
    learner: Learner,
    delays: Ints,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    journal: Journal,
    watch: Callable[[int], None],
) -> None:
    """Play all episodes in compiled blocks."""
    states, horizon, total = world.start.size, world.horizon, delays.size
    post = make_post(delays, horizon)
    policy = np.zeros((horizon, states), np.int64)
    values = np.zeros((horizon + 1, states))
    episode = Trajectory(np.zeros(horizon + 1, np.int64), np.zeros(horizon, np.int64), np.zeros(horizon))
    current = (episode.states, episode.actions, episode.rewards)
    for first in range(0, total, BLOCK):
        last = min(first + BLOCK, total)
        play_block(learner.record, world, post, journal, env_rng, agent_rng, policy, values, current, first, last)
        watch(last - first)


def make_post(delays: Ints, horizon: int) -> Post:
    """Reserve as many slots as trajectories are ever under way at once, and none for those that come too late."""
    offsets, order = arrival_schedule(delays)
    usable = np.zeros(delays.size, np.int64)
    usable[order] = 1
    slots = int(np.max(np.cumsum(usable) - offsets[1:], initial=1))
    free = np.arange(slots + 1)
    free[-1] = slots
    return Post(
        offsets,
        order,
        usable - 1,
        free,
        np.zeros((slots, horizon + 1), np.int64),
        np.zeros((slots, horizon), np.int64),
        np.zeros((slots, horizon)),
    )


@entry_point
def play_block(
    record: Any,
    world: World,
    post: Post,
    journal: Journal,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    policy: Ints,
    values: Floats,
    current: tuple[Ints, Ints, Floats],
    first: int,
    last: int,
) -> None:
    """Play episodes `first` to `last - 1`; all state lives in the arguments."""
    states, actions, rewards = current
    top = post.free.size - 1
    for k in range(first, last):
        for position in range(post.offsets[k], post.offsets[k + 1]):  # what has arrived, oldest first
            slot = post.slot[post.order[position]]
            learn_kernel(record, post.states[slot], post.actions[slot], post.rewards[slot])
            post.free[post.free[top]] = slot
            post.free[top] += 1
        plan_kernel(record, agent_rng, policy)
        rollout(world, policy, env_rng, states, actions, rewards)
        policy_values(world, policy, values)
        total = 0.0
        for h in range(rewards.size):
            total += rewards[h]
        journal.start[k] = states[0]
        journal.value[k] = values[0, states[0]]
        journal.sampled_return[k] = total
        journal.arrived[k] = post.offsets[k + 1] - post.offsets[k]
        if post.slot[k] >= 0:  # sent: it will be used
            post.free[top] -= 1
            slot = post.free[post.free[top]]
            post.slot[k] = slot
            post.states[slot] = states
            post.actions[slot] = actions
            post.rewards[slot] = rewards
