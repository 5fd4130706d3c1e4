"""What is measured, each as a function that returns a `Measure`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import belated
from belated.rng import stream
from benchmarks import naive

WORLD = belated.SyntheticLinearMDP(actions=50)
AGENT = belated.DelayedPSVI(scale=5.0, noise=0.1)
DELAY = belated.Poisson(50)
EPISODES = 4000


class Measure(NamedTuple):
    """A ratio (or a size) with its spread over repeats, and what it should be."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    target: str
    met: bool


def _summary(name: str, values: list[float], unit: str, target: str, met: Callable[[float], bool]) -> Measure:
    middle = float(np.median(values))
    return Measure(name, middle, min(values), max(values), unit, target, met(middle))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _simulate(episodes: int = EPISODES, watch: Callable[[int], None] | None = None) -> np.ndarray:
    rows = belated.simulate(WORLD, AGENT, DELAY, episodes=episodes, seed=0, watch=watch)
    return rows["value"].to_numpy()


def against_naive(repeats: int) -> list[Measure]:
    """Time per episode against the naive transcription, which must play the very same episodes."""
    delays = DELAY.sample(stream(0, "delay"), EPISODES)
    ours = _simulate()
    ratios, per_episode = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        theirs = naive.play(WORLD, delays, scale=5.0, noise=0.1, draws=2, seed=0)
        slow = time.perf_counter() - began
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-9)
        fast = float(np.median([_seconds(_simulate) for _ in range(5)]))
        ratios.append(slow / fast)
        per_episode.append(1e6 * fast / EPISODES)
    return [
        _summary("Delayed-PSVI against naive NumPy, per episode", ratios, "×", "≥ 30", lambda v: v >= 30),
        _summary("Delayed-PSVI, one episode", per_episode, "µs", "–", lambda v: True),
    ]


def flatness(repeats: int) -> list[Measure]:
    """Cost of the last tenth of episodes over that of the first tenth, after warm-up."""
    ratios = []
    for _ in range(repeats):
        marks = [time.perf_counter()]
        _simulate(64 * 256, watch=lambda played, marks=marks: marks.append(time.perf_counter()))  # type: ignore[misc]
        blocks = np.diff(marks)[1:]  # the first block, before feedback arrives, is the warm-up
        tenth = blocks.size // 10
        ratios.append(float(blocks[-tenth:].sum() / blocks[:tenth].sum()))
    return [_summary("last tenth of episodes over first tenth", ratios, "×", "≤ 1.2", lambda v: v <= 1.2)]


def two_cores(repeats: int) -> list[Measure]:
    """Throughput of two seeds on two cores over one seed on one."""

    def play(seeds: int, jobs: int) -> float:
        agents = {"psvi": AGENT}
        return _seconds(
            lambda: belated.run(WORLD, agents, DELAY, episodes=30_000, seeds=seeds, jobs=jobs, progress=False)
        )

    ratios = [2 * play(1, 1) / play(2, 2) for _ in range(repeats)]
    return [_summary("throughput, two seeds on two cores over one", ratios, "×", "≥ 1.7", lambda v: v >= 1.7)]


FRESH = """
import json, resource, time
import belated
from benchmarks.measures import AGENT, DELAY, EPISODES, WORLD
def once():
    began = time.perf_counter()
    belated.simulate(WORLD, AGENT, DELAY, episodes=10, seed=0)
    return time.perf_counter() - began
first, second = once(), once()
belated.run(WORLD, {"psvi": AGENT}, DELAY, episodes=EPISODES, seeds=10, progress=False)
print(json.dumps([first - second, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def fresh_process(repeats: int) -> list[Measure]:
    """Time a second start spends on compilation, and peak memory of ten seeds, in processes of their own."""
    compiling, memory = [], []
    for _ in range(repeats):
        printed = subprocess.run([sys.executable, "-c", FRESH], check=True, capture_output=True, text=True).stdout
        seconds, megabytes = json.loads(printed)
        compiling.append(seconds)
        memory.append(megabytes)
    return [
        _summary("compilation in a second start", compiling, "s", "< 2", lambda v: v < 2),
        _summary("peak memory, ten seeds", memory, "MB", "< 500", lambda v: v < 500),
    ]


ALL = (against_naive, flatness, two_cores, fresh_process)
