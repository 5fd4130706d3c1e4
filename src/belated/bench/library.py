"""The library against itself and against a naive transcription."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from belated.algorithms import DelayedLPSVI, DelayedPSVI
from belated.bench import naive
from belated.bench.measure import Measure, duration, interleaved, ratios, seconds, stopwatch, unmeasured
from belated.bench.problems import AGENT, DELAY, Effort, large, medium, small
from belated.bench.scene import agent_episodes, make_scene, time_blocks
from belated.environments import FiniteMDP
from belated.experiments.refactorising import RefactorisingPSVI
from belated.rng import stream
from belated.runner import run, simulate
from belated.runner.loop import BLOCK


def against_naive(effort: Effort) -> list[Measure]:
    """Time per episode against the naive transcription, which must play the very same episodes."""
    return [
        _against_naive("small problem", small(), effort.small_episodes, effort.repeats, "≥ 50"),
        _against_naive("medium problem", medium(), effort.medium_episodes, effort.repeats, "≥ 9"),
    ]


def _against_naive(name: str, world: FiniteMDP, episodes: int, repeats: int, target: str) -> Measure:
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
    return [Measure("last tenth of episodes over first tenth", tuple(values), target="≤ 1.2", note=note)]


def two_cores(effort: Effort) -> list[Measure]:
    """Throughput of two seeds on two cores over one seed on one."""

    def play(seeds: int, jobs: int) -> float:
        agents, episodes = {"psvi": AGENT}, effort.core_episodes
        return seconds(lambda: run(small(), agents, DELAY, episodes=episodes, seeds=seeds, jobs=jobs, progress=False))

    one, two = interleaved(effort.repeats, lambda: play(1, 1), lambda: play(2, 2))
    values = tuple(2 * value for value in ratios(one, two))
    note = f"small problem, {effort.core_episodes} episodes a seed"
    return [Measure("throughput, two seeds on two cores over one", values, target="≥ 1.7", note=note)]


#: Linux keeps the peak of the process that started this one in ru_maxrss, but not in VmHWM.
FRESH = """
import json, pathlib, sys, time
import belated
from belated.bench.problems import AGENT, DELAY, small
def once():
    began = time.perf_counter()
    belated.simulate(small(), AGENT, DELAY, episodes=10, seed=0)
    return time.perf_counter() - began
def peak():
    status = pathlib.Path("/proc/self/status")
    if status.is_file():
        facts = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(facts["VmHWM"].split()[0]) / 2**10
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
first, second = once(), once()
belated.run(small(), {"psvi": AGENT}, DELAY, episodes=4000, seeds=10, progress=False)
print(json.dumps([first - second, peak()]))
"""


def fresh_process(effort: Effort) -> list[Measure]:
    """Time that a first and a second start spend on compilation, and peak memory, in processes of their own."""
    start, again, memory = (
        unmeasured("compilation in a first start", "it takes long; run without --quick"),
        unmeasured("compilation in a second start", "", target="< 2"),
        unmeasured("peak memory, ten seeds of 4000 episodes", "", target="< 500"),
    )
    found, environment = [], dict(os.environ)
    with tempfile.TemporaryDirectory() as empty:
        if effort.patient:
            environment["NUMBA_CACHE_DIR"] = empty
        else:
            simulate(small(), AGENT, DELAY, episodes=10, seed=0)  # the first start, which fills the usual cache
        for _ in range(effort.repeats + effort.patient):
            command = [sys.executable, "-c", FRESH]
            done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["it stopped"])[-1]
                return [replace(each, note=f"not measured: {reason}") for each in (start, again, memory)]
            found.append(json.loads(done.stdout))
    if effort.patient:
        start = replace(start, values=(found.pop(0)[0],), unit="s", note="small problem, Delayed-PSVI")
    compiling, peaks = zip(*found, strict=True)
    return [
        start,
        replace(again, values=compiling, unit="s", note="small problem"),
        replace(memory, values=peaks, unit="MB", note="small problem"),
    ]


LONG = """
import json, sys
import belated
from belated.bench.problems import AGENT, DELAY, small
episodes = int(sys.argv[1])
def resident():
    facts = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(facts["VmRSS"].split()[0]) / 2**10
world = small()
belated.simulate(world, AGENT, DELAY, episodes=10_000, seed=0, record_every=1000)
seen = [resident()]
belated.simulate(
    world, AGENT, DELAY, episodes=episodes, seed=0, record_every=1000, watch=lambda played: seen.append(resident())
)
print(json.dumps(max(seen) - seen[0]))
"""


def long_run(effort: Effort) -> list[Measure]:
    """Growth of resident memory over a long run of which every thousandth episode is recorded."""
    name, target = f"growth of memory over {effort.long_episodes:,} episodes", "< 50"
    if not Path("/proc/self/status").is_file():
        return [unmeasured(name, "this system does not tell how much memory a process has", target=target)]
    command = [sys.executable, "-c", LONG, str(effort.long_episodes)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return [unmeasured(name, (done.stderr.strip().splitlines() or ["it stopped"])[-1], target=target)]
    return [Measure(name, (float(json.loads(done.stdout)),), unit="MB", target=target, note="small problem")]


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
            target="≥ 8",
            note=f"{sizes} {duration(float(np.median(slow)))} against {duration(float(np.median(ours)))}",
        )
        for name, slow in zip(others, theirs, strict=True)
    ]
