"""No bias from silence: nobody reports a no, yeses come late, and the better arm's come latest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents import OTFLinTS, OTFLinUCB
from belated.agents._otf import OTF
from belated.decisions import DecisionLearner, DefaultAfter, Mature, Unknown
from belated.decisions._silence import Silence
from belated.environments import Bandit
from belated.types import Feedback, Floats, Trajectory
from benchmarks.measure import Measure, Target, at_least, at_most
from benchmarks.problems import Effort

RATES, DELAYS = (0.10, 0.05), (1500.0, 20.0)
"""Of both arms: how likely a yes is, and the mean of the seconds until it is told."""
WINDOWS, DAY = (100.0, 1500.0, 6000.0), 5000.0
FLOOR = 0.02
"""So that the poorer arm's rate stays known, too."""


class Beliefs(NamedTuple):
    """The rates that are believed, and how many decisions of each arm they rest on."""

    rates: Floats
    counts: Floats

    @property
    def off(self) -> float:
        """How far the worse estimate is from the truth, in standard errors."""
        each = zip(self.rates, RATES, self.counts, strict=True)
        return max(abs(float(mean) - p) / math.sqrt(p * (1 - p) / max(float(n), 1.0)) for mean, p, n in each)


class Played(NamedTuple):
    """How a run ended."""

    share: float
    """Of the last tenth of the decisions, that of the better arm."""
    live: Beliefs
    """Right after the last decision: yeses are still in flight."""
    after: Beliefs
    """When all of them have come, and all windows are over."""


class Agent(NamedTuple):
    """Anybody who decides: which arm, given the number and the time; and is told of yeses."""

    decide: Callable[[int, float], int]
    yes: Callable[[int, float], object]
    beliefs: Callable[[float], Beliefs]
    """What it believes at a time."""


def silence(effort: Effort) -> list[Measure]:
    """Compare what silence can be taken for: rates of 10 and 5 %, yeses after 1500 and 20 seconds on average."""
    count, runs = (20_000, 3) if effort.patient else (4_000, 1)
    found = []
    for day in (False, True):
        for window in WINDOWS:
            where = f"window {window:g} s, {'day and night' if day else 'steady traffic'}"
            agents: dict[str, Callable[[int], Agent]] = {
                "Mature": lambda seed, window=window: _learner(Mature(window), window, seed),  # type: ignore[misc]
                "DefaultAfter": lambda seed, window=window: _learner(DefaultAfter(window), window, seed),  # type: ignore[misc]
            }
            if not day:
                agents["OTFLinTS"] = lambda seed, window=window: _otf(OTFLinTS(window=int(window), scale=0.05), seed)  # type: ignore[misc]
                agents["OTFLinUCB"] = lambda seed, window=window: _otf(OTFLinUCB(window=int(window), scale=0.05), seed)  # type: ignore[misc]
            for name, make in agents.items():
                found += _measures(name, where, _plays(make, runs, count, day), effort)
    waiting = _plays(lambda seed: _learner(Unknown(), 0.0, seed), runs, count, day=False)
    return [*found, *_measures("waiting for what is told", "no window, steady traffic", waiting, effort)]


def _plays(make: Callable[[int], Agent], runs: int, count: int, day: bool) -> list[Played]:
    with threadpool_limits(1):
        return [play(make(seed), count, seed, day) for seed in range(runs)]


def _measures(name: str, where: str, runs: list[Played], effort: Effort) -> list[Measure]:
    def ours(target: Target) -> Target | None:
        return target if name == "Mature" and effort.patient else None

    what, found = f"{name}, {where}", []
    shares = tuple(100 * run.share for run in runs)
    found.append(Measure(f"{what}: decisions for the better arm", shares, "%", ours(at_least(90)), "of the last tenth"))
    for when in ("live", "after"):
        each = [getattr(run, when) for run in runs]
        believed = "; ".join(" and ".join(f"{100 * rate:.2f}" for rate in one.rates) for one in each)
        ending = "with yeses in flight" if when == "live" else "when all have come"
        target = ours(at_most(3)) if when == "after" else None
        note = f"the furthest from the truth; believed: {believed} %"
        found.append(Measure(f"{what}: estimates {ending}", (max(one.off for one in each),), "s.e.", target, note))
    return found


def play(agent: Agent, count: int, seed: int, day: bool) -> Played:
    """Decide about once a second; tell of each yes when its time has come, and of a no never."""
    rng, now = stream(seed, "bench"), 0.0
    due: list[tuple[float, int]] = []
    chosen = np.zeros(count, np.int64)
    for i in range(count):
        pace = 1.0 + 0.9 * math.sin(2 * math.pi * now / DAY) if day else 1.0
        now += rng.exponential(1.0 / pace)
        while due and due[0][0] <= now:
            at, which = heapq.heappop(due)
            agent.yes(which, at)
        arm = chosen[i] = agent.decide(i, now)
        if rng.random() < RATES[arm]:
            heapq.heappush(due, (now + rng.exponential(DELAYS[arm]), i))
    live = agent.beliefs(now)
    for at, which in sorted(due):
        agent.yes(which, at)
    return Played(float((chosen[-count // 10 :] == 0).mean()), live, agent.beliefs(now + 100 * max(*WINDOWS, *DELAYS)))


def _learner(silence: Silence, window: float, seed: int) -> Agent:
    """Return ours; its clock is that of the play."""
    now, ids, arms = [0.0], [], []  # type: list[float], list[str], list[tuple[float, int]]
    learner = DecisionLearner(2, silence=silence, floor=FLOOR, seed=seed, clock=lambda: now[0])
    rows = np.eye(2)

    def decide(number: int, time: float) -> int:
        now[0] = time
        made = learner.decide(rows)
        ids.append(made.id)
        arms.append((time, made.action))
        return made.action

    def yes(number: int, time: float) -> None:
        now[0] = max(now[0], time)
        learner.feedback(ids[number], 1.0)

    def beliefs(time: float) -> Beliefs:
        now[0] = time
        while learner.tick():
            pass
        over = np.array([arm for made, arm in arms if made + window <= time], np.int64)
        return Beliefs(learner.mean(), np.bincount(over, minlength=2).astype(np.float64))

    return Agent(decide, yes, beliefs)


def _otf(settings: OTF, seed: int) -> Agent:
    """Return an agent of Vernade et al.; its window is in rounds, which here are seconds on average."""
    world = Bandit(np.eye(2)[np.newaxis], np.array([RATES]))
    agent, rng = settings.start(world.problem), stream(seed, "agent")
    arms: list[int] = []

    def decide(number: int, time: float) -> int:
        arms.append(int(agent.plan(rng).actions.ravel()[0]))
        return arms[-1]

    def yes(number: int, time: float) -> None:
        if len(arms) - number <= settings.window:
            told = Trajectory(np.array([0, 0]), np.array([arms[number]]), np.array([1.0]))
            agent.learn([Feedback(number, told)])

    def beliefs(time: float) -> Beliefs:
        learned = agent.record.learned
        rates = np.linalg.solve(learned.factor.T @ learned.factor, learned.moment)  # V = UᵀU
        return Beliefs(rates, np.bincount(arms, minlength=2).astype(np.float64))

    return Agent(decide, yes, beliefs)
