"""Whether sessions are learned behind HTTP as they are in process, and what single decisions make of them.

The same agent plays the same worlds twice: in `run`, one session after the other, and behind `belated serve`, where
sixteen clients ask at once and plans are made meanwhile. Single decisions, ours and Vowpal Wabbit's, are told of each
step what it paid, or the mean or the sum of what it and all later steps of its session paid.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated.agents import AutoPSVI
from belated.client import Client
from belated.environments import FiniteMDP
from belated.runner import run
from belated.types import Floats
from belated_studies.peer_environments import ONE_CORE, Peer, PeerError, cache_folder
from benchmarks.measure import Measure, at_least, unmeasured
from benchmarks.peers import SCRIPTS, peers, prepare
from benchmarks.problems import Effort
from benchmarks.service import Running
from benchmarks.session_players import DELAY, REWARDS, Elsewhere, Served, Single, World, play, settings_of, worlds

#: Runs of CartPole, served and in process, and of everything else.
CARTPOLE, RUNS, OTHERS = "CartPole, H = 200", 10, 3
#: Sessions of each world, with patience and without.
SESSIONS = {"RiverSwim 6, H = 20": (2_000, 300), "shop funnel, H = 6": (2_000, 300), CARTPOLE: (300, 60)}
#: What is served should have at least this share of what the same agent has in process.
SHARE = 0.95
PEER = "vowpalwabbit"

Tell = Callable[[str], None]


def session_returns(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure the return of the last fifth of the sessions, but for CartPole."""
    return [measure for name, world in worlds().items() if name != CARTPOLE for measure in _world(world, effort, tell)]


def session_cartpole(effort: Effort, tell: Tell) -> list[Measure]:
    """Measure it of CartPole, whose runs differ so much that it takes ten of them."""
    return _world(worlds()[CARTPOLE], effort, tell)


def _world(world: World, effort: Effort, tell: Tell) -> list[Measure]:
    return _share(world, effort, tell) + _others(world, effort, tell)


class _Counted(NamedTuple):
    """How much of a world is played."""

    world: World
    sessions: int
    seeds: range

    @classmethod
    def of(cls, world: World, runs: int, effort: Effort) -> _Counted:
        return cls(world, SESSIONS[world.name][0 if effort.patient else 1], range(runs if effort.patient else 1))

    @property
    def note(self) -> str:
        environment, runs = self.world.make(), len(self.seeds)
        note = f"last fifth of {self.sessions} sessions, 16 at once, rewards Poisson(10) sessions late, {runs} runs"
        best = f"; the best possible is {environment.optimal_value:.3g}" if isinstance(environment, FiniteMDP) else ""
        return note + best

    def last(self, returns: Floats) -> Floats:
        """Return the mean of the last fifth in each run."""
        found: Floats = returns[:, -(self.sessions // 5) :].mean(axis=1)
        return found

    def mean(self, who: str, returns: Floats, told: str = "") -> Measure:
        last = self.last(returns)
        error = f" ± {2 * _error(last):.2g} (two standard errors)" if len(last) > 1 else ""
        return Measure(f"{self.world.name}: {who}", (float(last.mean()),), "", None, f"mean{error}; {told}{self.note}")


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _share(world: World, effort: Effort, tell: Tell) -> list[Measure]:
    """Measure AutoPSVI in process and behind HTTP, and the share that the second has of the first."""
    counted = _Counted.of(world, RUNS if world.name == CARTPOLE else OTHERS, effort)
    count, seeds = counted.sessions, counted.seeds
    tell(f"playing {world.name} in process")
    with threadpool_limits(1):
        results = run(world.make(), {"auto": AutoPSVI()}, DELAY, episodes=count, seeds=seeds, jobs=1, progress=False)
    here = results.returns(agent="auto")
    tell(f"playing {world.name} over HTTP")
    behind, seconds = _served(world, count, seeds)
    mine, yours = counted.last(behind), counted.last(here)
    share, error = 100.0 * float(mine.mean() / yours.mean()), ""
    if len(seeds) > 1:  # of a ratio of two means
        off = share * math.hypot(_error(mine) / float(mine.mean()), _error(yours) / float(yours.mean()))
        error = f"± {2 * off:.2g} (two standard errors); "
    target = at_least(100 * SHARE) if effort.patient else None  # few sessions say little
    return [
        counted.mean("AutoPSVI in process", here, "one session after the other; "),
        counted.mean("AutoPSVI served", behind, f"{seconds:.0f} s a run; "),
        Measure(f"{world.name}: served, of in process", (share,), "%", target, error + counted.note),
    ]


def _others(world: World, effort: Effort, tell: Tell) -> list[Measure]:
    """Measure single decisions, ours and Vowpal Wabbit's."""
    counted, found = _Counted.of(world, OTHERS, effort), []
    for what, credit in REWARDS.items():
        tell(f"playing {world.name} as single decisions, {what}")
        with threadpool_limits(1):
            returns = np.array(
                [play(world, Single(world, credit, seed), counted.sessions, seed) for seed in counted.seeds]
            )
        found.append(counted.mean(f"single decisions, {what}", returns))
    return found + _peer(counted, effort, tell)


def _served(world: World, count: int, seeds: range) -> tuple[Floats, float]:
    """Return what each session paid, shape (runs, sessions), and the seconds of a run."""
    returns, began = [], time.perf_counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            running = Running(Path(folder), models={"played": settings_of(world, seed)})
            try:
                with Client(f"http://127.0.0.1:{running.port}") as client:
                    while client.model("played")["sessions"]["plan"] is None:  # a service starts before its visitors do
                        time.sleep(0.1)
                returns.append(play(world, Served(world, running.port, "played"), count, seed))
            finally:
                running.stop()
    return np.array(returns), (time.perf_counter() - began) / len(seeds)


def _peer(counted: _Counted, effort: Effort, tell: Tell) -> list[Measure]:
    """Let Vowpal Wabbit play as its own joiner would have it, or say why it did not."""
    world = counted.world
    peer, found = replace(peers()[PEER], script=SCRIPTS / "sessions_vowpalwabbit.py"), list[Measure]()
    for what in ("suffix mean", "suffix sum"):
        try:
            prepare(peer, effort, tell, cache_folder())
        except PeerError as error:
            return [unmeasured(f"{world.name}: {PEER}", str(error))]
        tell(f"playing {world.name} by {PEER}, {what}")
        returns = []
        for seed in counted.seeds:
            with _started(peer, world.make().problem.actions, seed) as process:
                returns.append(play(world, Elsewhere(world, REWARDS[what], process), counted.sessions, seed))
        found.append(counted.mean(f"{PEER} SquareCB, {what}", np.array(returns)))
    return found


@contextmanager
def _started(peer: Peer, actions: int, seed: int) -> Iterator[subprocess.Popen[str]]:
    """Start a script that answers line by line, and end it."""
    command = [str(peer.python(cache_folder())), str(peer.script), str(actions), str(seed)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=ONE_CORE) as process:
        yield process
