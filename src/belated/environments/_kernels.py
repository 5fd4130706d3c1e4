"""The compiled core of a finite MDP: playing an episode and backward induction, without allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belated._kernels.jit import entry_point, fast_sums, inlined, kernel
from belated._kernels.normals import standard_normal
from belated.types import Floats, Ints


class World(NamedTuple):
    """The tables of a finite MDP for compiled code.

    The tables have T slots: one when nothing depends on the step, else one per step. The rewards of episode k are those
    of variant k mod G; most worlds have only one.
    """

    transitions: Floats
    """P(s' | s, a), shape (T, S, A, R): only the first R states can be reached, usually R = S."""
    cumulative: Floats
    """Cumulative sums of `transitions` over s', made by `cumulated`."""
    rewards: Floats
    """Mean rewards, shape (G, T, S, A)."""
    start: Floats
    """Cumulative sums of the start distribution, shape (S,), made by `cumulated`."""
    in_turn: bool
    """Whether episode k starts in state k mod S instead."""
    bernoulli: bool
    """Whether rewards are drawn as 0 or 1 with the given means."""
    noise: Floats
    """Standard deviation of Gaussian noise that is added to the rewards of each state, shape (S,); (0,) for none."""
    horizon: int
    """Steps per episode, H."""
    discount: float
    """γ."""


def cumulated(probabilities: Floats) -> Floats:
    """Return read-only cumulative sums over the last axis, exactly 1 from the last positive entry on.

    The forced ones ensure that a uniform draw below 1 never selects an impossible state, despite rounding.

    >>> cumulated(np.array([0.5, 0.5, 0.0])).tolist()
    [0.5, 1.0, 1.0]
    """
    sums = np.minimum(np.cumsum(probabilities, axis=-1), 1.0)
    size = probabilities.shape[-1]
    last_positive = size - 1 - np.argmax(np.flip(probabilities > 0.0, axis=-1), axis=-1)
    sums[np.arange(size) >= last_positive[..., np.newaxis]] = 1.0
    sums.flags.writeable = False
    return sums


@kernel
def first_above(cumulative: Floats, uniform: float) -> int:
    """Return the first index whose cumulative probability is above `uniform`.

    >>> int(first_above(np.array([0.25, 0.25, 1.0]), 0.25))
    2
    """
    first, length = 0, cumulative.shape[0]
    while length > 1:
        half = length // 2
        # a product instead of a branch, which would be mispredicted half of the time
        first += half * (cumulative[first + half - 1] <= uniform)
        length -= half
    return first


@inlined
def start_episode(world: World, episode: int, rng: np.random.Generator) -> int:
    """Return the state in which `episode` starts; one uniform is drawn in any case."""
    drawn = first_above(world.start, rng.random())
    return episode % world.start.size if world.in_turn else drawn


@kernel
def play_episode(
    world: World,
    episode: int,
    policy: Ints,
    rng: np.random.Generator,
    states: Ints,
    actions: Ints,
    rewards: Floats,
) -> None:
    """Play `policy` (H, S) from `states[0]` on into `states` (H+1), `actions` (H) and `rewards` (H).

    Draws one uniform per step for the next state and one more number if the reward is random: the number of draws does
    not depend on the outcomes.
    """
    homogeneous = world.transitions.shape[0] == 1
    means = world.rewards[episode % world.rewards.shape[0]]
    state = states[0]
    for h in range(world.horizon):
        slot = 0 if homogeneous else h
        action = policy[h, state]
        mean = means[slot, state, action]
        before = state
        state = first_above(world.cumulative[slot, state, action], rng.random())
        actions[h] = action
        states[h + 1] = state
        if world.bernoulli:
            rewards[h] = 1.0 if rng.random() < mean else 0.0
        else:
            rewards[h] = mean
        if world.noise.size > 0:
            rewards[h] += world.noise[before] * standard_normal(rng)


@fast_sums
def action_value(world: World, means: Floats, slot: int, state: int, action: int, following: Floats) -> float:
    """Return r(s, a) plus γ times the mean of `following` over the next state."""
    chances = world.transitions[slot, state, action]
    total = 0.0
    for after in range(chances.size):
        total += chances[after] * following[after]
    return float(means[slot, state, action] + world.discount * total)


@kernel
def evaluate(world: World, episode: int, policy: Ints, values: Floats) -> None:
    """Write the exact values of `policy` (H, S) in `episode` into `values` (H+1, S)."""
    homogeneous = world.transitions.shape[0] == 1
    means = world.rewards[episode % world.rewards.shape[0]]
    values[world.horizon] = 0.0
    for back in range(world.horizon):
        h = world.horizon - 1 - back
        slot = 0 if homogeneous else h
        for state in range(values.shape[1]):
            values[h, state] = action_value(world, means, slot, state, policy[h, state], values[h + 1])


@inlined
def value_from(world: World, episode: int, policy: Ints, start: int, values: Floats) -> float:
    """Return the exact value of `policy` from `start`; with a single step, only that state is evaluated."""
    if world.horizon == 1:
        return float(world.rewards[episode % world.rewards.shape[0], 0, start, policy[0, start]])
    evaluate(world, episode, policy, values)
    return float(values[0, start])


@entry_point
def optimal_values(world: World, means: Floats, values: Floats, policy: Ints) -> None:
    """Write the optimal values under the rewards `means` (T, S, A), and the first best action, into the last two."""
    homogeneous = world.transitions.shape[0] == 1
    values[world.horizon] = 0.0
    for back in range(world.horizon):
        h = world.horizon - 1 - back
        slot = 0 if homogeneous else h
        for state in range(values.shape[1]):
            best, choice = 0.0, 0
            for action in range(means.shape[2]):
                candidate = action_value(world, means, slot, state, action, values[h + 1])
                if action == 0 or candidate > best:
                    best = candidate
                    choice = action
            values[h, state] = best
            policy[h, state] = choice


first_state, rollout, policy_values = entry_point(start_episode), entry_point(play_episode), entry_point(evaluate)
