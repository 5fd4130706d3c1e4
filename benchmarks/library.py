"""The library against itself and against a naive transcription."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents import DelayedLPSVI, DelayedPSVI
from belated.environments import FiniteMDP
from belated.runner import run, simulate
from belated.runner._simulation import BLOCK
from belated_studies.paper.refactorising import RefactorisingPSVI
from belated_studies.timing import seconds, stopwatch
from benchmarks import naive
from benchmarks.measure import Measure, Target, at_least, at_most, duration, interleaved, median_duration, ratios
from benchmarks.problems import AGENT, DELAY, Effort, large, medium, small
from benchmarks.scene import agent_episodes, make_scene, time_blocks


def against_naive(effort: Effort) -> list[Measure]:
    """Time per episode against the naive transcription, which must play the very same episodes."""
    return [
        _against_naive("small problem", small(), effort.small_episodes, effort.repeats, at_least(50)),
        _against_naive("medium problem", medium(), effort.medium_episodes, effort.repeats, at_least(9)),
    ]


def _against_naive(name: str, world: FiniteMDP, episodes: int, repeats: int, target: Target) -> Measure:
    delays = DELAY.sample(stream(0, "delay"), episodes)
    ours = simulate(world, AGENT, DELAY, episodes=episodes, seed=0)["value"].to_numpy()

    def slow() -> float:
        play = {"scale": AGENT.scale, "noise": AGENT.noise, "draws": AGENT.draws, "seed": 0}
        theirs: list[np.ndarray] = []
        taken = seconds(lambda: theirs.append(naive.play(world, delays, **play)))  # type: ignore[arg-type]
        np.testing.assert_allclose(theirs[0], ours, rtol=0, atol=1e-9)
        return taken

    def fast() -> float:
        return seconds(lambda: simulate(world, AGENT, DELAY, episodes=episodes, seed=0))

    with threadpool_limits(1):
        theirs, mine = interleaved(repeats, slow, fast)
    sizes = f"S={world.states} A={world.actions} d={world.dimension} H={world.horizon} K={episodes}"
    each = f"{duration(float(np.median(theirs)) / episodes)} against {duration(float(np.median(mine)) / episodes)}"
    note = f"{sizes}; one episode takes {each}"
    return Measure(f"Delayed-PSVI against naive NumPy, {name}", ratios(theirs, mine), target=target, note=note)


def flatness(effort: Effort) -> list[Measure]:
    """Cost of the last tenth of episodes over that of the first tenth, after warm-up."""
    values = []
    for _ in range(effort.repeats):
        taken, played = time_blocks(small(), AGENT, effort.flat_episodes, BLOCK)
        each = taken / played
        tenth = max(1, each.size // 10)
        values.append(float(each[-tenth:].mean() / each[:tenth].mean()))
    note = f"small problem, {effort.flat_episodes} episodes"
    return [Measure("last tenth of episodes over first tenth", tuple(values), target=at_most(1.2), note=note)]


def two_cores(effort: Effort) -> list[Measure]:
    """Throughput of two seeds on two cores over one seed on one."""

    def play(seeds: int, jobs: int, episodes: int = effort.core_episodes) -> float:
        agents = {"psvi": AGENT}
        return seconds(lambda: run(small(), agents, DELAY, episodes=episodes, seeds=seeds, jobs=jobs, progress=False))

    play(2, 2, episodes=1)  # compiles what is measured
    one, two = interleaved(effort.repeats, lambda: play(1, 1), lambda: play(2, 2))
    values = tuple(2 * value for value in ratios(one, two))
    note = f"small problem, {effort.core_episodes} episodes a seed, {median_duration(one)} on one core"
    return [Measure("throughput, two seeds on two cores over one", values, target=at_least(1.7), note=note)]


def large_dimension(effort: Effort) -> list[Measure]:
    """One plan and one arrival of rank-one Delayed-PSVI against other ways to draw, where d is large."""
    world = large(effort.dimension)
    others = {
        "refactorising Delayed-PSVI": RefactorisingPSVI(),
        "plain Delayed-LPSVI, N=40": DelayedLPSVI(steps=40),
    }
    with threadpool_limits(1):
        timers = [
            stopwatch(agent_episodes(make_scene(world, algorithm, episodes=2)), effort.least_seconds)
            for algorithm in (DelayedPSVI(), *others.values())
        ]
        ours, *theirs = interleaved(effort.repeats, *timers)
    sizes = f"d={effort.dimension} H={world.horizon} M=2; one plan and one arrival take"
    return [
        Measure(
            f"Delayed-PSVI against {name}",
            ratios(slow, ours),
            target=at_least(8),
            note=f"{sizes} {median_duration(slow)} against {median_duration(ours)}",
        )
        for name, slow in zip(others, theirs, strict=True)
    ]
