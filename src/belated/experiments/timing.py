"""Time per episode against the feature dimension: the paper's computational claim, measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated.algorithms import CompiledSettings, DelayedLPSVI, DelayedPHE, DelayedPSVI, DelayedUCBVI, RandomPolicy
from belated.algorithms.agent import learn, plan, settle
from belated.compiled import allocating_kernel, copy, kernel
from belated.environments import RandomLinearMDP
from belated.experiments.refactorising import RefactorisingPSVI
from belated.posterior.block import block_update
from belated.posterior.gaussian import rank_one_update
from belated.rng import stream
from belated.types import Feedback, Floats, Ints

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

LARGE_DIMENSIONS = (10, 64, 256, 1024, 4096)
#: For large d: the longest horizon whose factors fit, H·d²·8 bytes being 256 MB at d = 4096.
LARGE_HORIZON = 2
#: Trajectories learned before the clock starts.
LEARNED = 200
#: What is timed for large d, and the largest d at which it is bearable.
LARGE: dict[str, tuple[CompiledSettings, int]] = {
    "PSVI, rank one": (DelayedPSVI(), 4096),
    "PSVI, float32": (DelayedPSVI(storage="float32"), 4096),
    "PHE, conjugate gradients": (DelayedPHE(), 4096),
    "PSVI, refactorising": (RefactorisingPSVI(), 1024),
    "LPSVI, plain": (DelayedLPSVI(), 4096),
}

ARRIVALS = (1, 4, 8, 16, 24, 32, 64, 128, 256)
#: Ways to bring r observations into a factor.
UPDATES = ("rank one", "block", "refactorising")


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
    """Plan and take in one trajectory, `count` times: all that depends on d, without the environment."""
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
    with threadpool_limits(1):
        for dimension in dimensions:
            world = RandomLinearMDP(states=20, actions=10, dimension=dimension, horizon=HORIZON)
            for name, (settings, _) in VARIANTS.items():
                seconds = _time(world, settings, repeats, least_seconds)
                timings.append(Timing(name, dimension, float(np.median(seconds)), min(seconds), max(seconds)))
                watch()
    return timings


def measure_large(
    *,
    dimensions: tuple[int, ...] = LARGE_DIMENSIONS,
    repeats: int = 3,
    least_seconds: float = 0.05,
    watch: Callable[[], None] = lambda: None,
) -> list[Timing]:
    """Time the agents for large d, one arrival an episode, on one core; `LARGE` says which and up to which d.

    They have learned `LEARNED` trajectories before: the time of conjugate gradients grows with the pairs visited.
    """
    timings = []
    with threadpool_limits(1):
        for dimension in dimensions:
            world = RandomLinearMDP(states=20, actions=10, dimension=dimension, horizon=LARGE_HORIZON)
            for name, (settings, largest) in LARGE.items():
                if dimension <= largest:
                    seconds = _time(world, settings, repeats, least_seconds, LEARNED)
                    timings.append(Timing(name, dimension, float(np.median(seconds)), min(seconds), max(seconds)))
                    watch()
    return timings


class Update(NamedTuple):
    """Seconds to bring so many observations at once into a factor of dimension d: median of the repeats."""

    way: str
    dimension: int
    arrivals: int
    seconds: float


@allocating_kernel
def _update(way: int, factor: Floats, x: Floats) -> None:
    """Replace U by the factor of UᵀU + XXᵀ, shape of X (d, r), in one of the `UPDATES`."""
    if way == 0:
        for column in x.T.copy():
            rank_one_update(factor, column)
    elif way == 1:
        block_update(factor, x)
    else:
        copy(np.linalg.cholesky(np.dot(factor.T, factor) + np.dot(x, x.T)).T, factor)


def arrivals(
    *, dimensions: tuple[int, ...] = (64, 256, 1024), counts: tuple[int, ...] = ARRIVALS, repeats: int = 5
) -> list[Update]:
    """Time every way to learn r observations at once; where the curves cross, `posterior.block` changes the way."""
    found, rng = [], stream(0, "timing")
    with threadpool_limits(1):
        for dimension in dimensions:
            factor = np.eye(dimension)
            _update(0, factor, rng.standard_normal((dimension, 3 * dimension)))  # a factor that is dense
            for count in counts:
                x = rng.standard_normal((dimension, count))
                for way, name in enumerate(UPDATES):
                    taken = []
                    for _ in range(repeats + 1):
                        spare, used = factor.copy(), x.copy()
                        began = time.perf_counter()
                        _update(way, spare, used)
                        taken.append(time.perf_counter() - began)
                    found.append(Update(name, dimension, count, float(np.median(taken[1:]))))  # the first compiles
    return found


def _time(
    world: RandomLinearMDP, settings: CompiledSettings, repeats: int, least_seconds: float, learned: int = 0
) -> list[float]:
    """Return seconds per episode of each repeat; the number of episodes grows until one lasts long enough."""
    agent = settings.start(world.problem)
    rng = stream(0, "agent")
    trajectory = world.rollout(world.optimal_policy(), stream(0, "environment"))
    policy = np.zeros((world.horizon, world.states), np.int64)
    explorer, dynamics = RandomPolicy().start(world.problem), stream(1, "environment")
    agent.learn([Feedback(k, world.rollout(explorer.plan(dynamics), dynamics)) for k in range(learned)])

    def once(count: int) -> float:
        began = time.perf_counter()
        _episodes(agent.record, rng, policy, trajectory.states, trajectory.actions, trajectory.rewards, count)
        return time.perf_counter() - began

    once(1)  # compiles, and touches the memory
    count = 1
    while (elapsed := once(count)) < least_seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * least_seconds / max(elapsed, 1e-6))))
    return [once(count) / count for _ in range(repeats)]


def exponent(timings: list[Timing], variant: str, *, above: int = 100) -> float:
    """Return the slope of log time against log d for `variant`, fitted over d ≥ `above`."""
    chosen = [timing for timing in timings if timing.variant == variant and timing.dimension >= above]
    d = np.log([timing.dimension for timing in chosen])
    seconds = np.log([timing.seconds for timing in chosen])
    return float(np.polyfit(d, seconds, 1)[0])
