"""Time per episode against the feature dimension: the paper's computational claim, measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from belated.algorithms import CompiledSettings, DelayedLPSVI, DelayedPSVI, DelayedUCBVI
from belated.algorithms.agent import learn, plan, settle
from belated.compiled import kernel
from belated.environments import RandomLinearMDP
from belated.experiments.refactorising import RefactorisingPSVI
from belated.rng import stream
from belated.timing import Spread, timed
from belated.types import Floats, Ints

DIMENSIONS = (10, 32, 100, 316, 1000)
HORIZON = 5

#: What is timed, and the cost per episode that the paper states for it, at N = 40 and M = 2.
VARIANTS: dict[str, tuple[CompiledSettings, str]] = {
    "PSVI, refactorising": (RefactorisingPSVI(), "O(d³)"),
    "PSVI, rank one": (DelayedPSVI(), "O(d³)"),
    "LPSVI, plain": (DelayedLPSVI(), "O(N + d)"),
    "LPSVI, collapsed": (DelayedLPSVI(sampler="collapsed"), "O(N + d)"),
    "LPSVI, preconditioned": (DelayedLPSVI(sampler="preconditioned"), "O(N + d)"),
    "UCBVI": (DelayedUCBVI(), "not stated"),
}


class Timing(NamedTuple):
    """Seconds per episode of one variant at one dimension: median, least and most of the repeats."""

    variant: str
    dimension: int
    seconds: float
    low: float
    high: float


@kernel
def _episodes(
    record: Any, rng: np.random.Generator, policy: Ints, states: Ints, actions: Ints, rewards: Floats, count: int
) -> None:
    """Plan and learn one trajectory, `count` times: all that depends on d, without the environment."""
    for _ in range(count):
        plan(record, rng, policy)
        learn(record, 0, states, actions, rewards)
        settle(record)


def measure(
    *,
    dimensions: tuple[int, ...] = DIMENSIONS,
    repeats: int = 5,
    least_seconds: float = 0.05,
    watch: Callable[[], None] = lambda: None,
) -> list[Timing]:
    """Time every variant at every dimension, one arrival an episode, in one go on one core."""
    timings = []
    for dimension in dimensions:
        world = RandomLinearMDP(states=20, actions=10, dimension=dimension, horizon=HORIZON)
        for name, (settings, _) in VARIANTS.items():
            timings.append(Timing(name, dimension, *_time(world, settings, repeats, least_seconds)))
            watch()
    return timings


def _time(world: RandomLinearMDP, settings: CompiledSettings, repeats: int, least_seconds: float) -> Spread:
    """Return seconds per episode."""
    agent = settings.start(world.problem)
    rng = stream(0, "agent")
    late = world.rollout(world.optimal_policy(), stream(0, "environment"))
    policy = np.zeros((world.horizon, world.states), np.int64)
    return timed(
        lambda count: _episodes(agent.record, rng, policy, late.states, late.actions, late.rewards, count),
        repeats=repeats,
        least_seconds=least_seconds,
    )


def exponent(timings: list[Timing], variant: str, *, above: int = 100) -> float:
    """Return the slope of log time against log d for `variant`, fitted over d ≥ `above`."""
    chosen = [timing for timing in timings if timing.variant == variant and timing.dimension >= above]
    d = np.log([timing.dimension for timing in chosen])
    seconds = np.log([timing.seconds for timing in chosen])
    return float(np.polyfit(d, seconds, 1)[0])
