"""No bias from silence: nobody reports a no, yeses come late, and the better arm's come latest."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents import OTFLinTS, OTFLinUCB
from belated.agents._otf import OTF
from belated.decisions import (
    ByAge,
    DecisionLearner,
    DefaultAfter,
    Mature,
    MemoryStore,
    Model,
    ModelSettings,
    Unknown,
)
from belated.decisions._silence import Silence
from belated.environments import Bandit
from belated.types import Feedback, Floats, Trajectory
from benchmarks.measure import Measure, Target, at_least, at_most, duration
from benchmarks.problems import Effort

RATES, DELAYS = (0.10, 0.05), (1500.0, 20.0)
"""Of both arms: how likely a yes is, and the mean of the seconds until it is told."""
WINDOWS, DAY = (100.0, 1500.0, 6000.0), 5000.0
FLOOR = 0.02
"""So that the poorer arm's rate stays known, too."""
FLOOR_USED = 0.002
"""The default, for regret."""


class Beliefs(NamedTuple):
    """The rates that are believed, what is true of them, and the standard errors of means of as many decisions.

    By age, what is true is what comes up to the last age that a decision of the arm has reached; at the last age that
    is all that ever comes, since what comes after the window still counts when it comes.
    """

    rates: Floats
    truths: Floats
    errors: Floats
    so_far: Floats
    """What is true of what can have come by now of these decisions."""

    @property
    def off(self) -> float:
        """How far the worse estimate is from the truth, in standard errors."""
        return float(np.max(np.abs(self.rates - self.truths) / self.errors))

    @property
    def off_so_far(self) -> float:
        """How far it is from what can have come by now."""
        return float(np.max(np.abs(self.rates - self.so_far) / self.errors))

    @classmethod
    def of(cls, rates: Floats, counts: Floats) -> Beliefs:
        """Return beliefs that rest on so many decisions of each arm."""
        p = np.array(RATES)
        return cls(rates, p, np.sqrt(p * (1 - p) / np.maximum(counts, 1.0)), p)

    @classmethod
    def by_age(cls, rates: Floats, ages: ByAge, counts: Floats, over: list[Floats]) -> Beliefs:
        """Return beliefs that rest on so many decisions of each age and arm, shape (ages, 2).

        `over` are the ages of each arm's decisions whose window is over: what comes of them later has not come yet.
        """
        rest = np.exp(-np.array([0.0, *ages.ends[:-1], math.inf])[:, None] / np.array(DELAYS))
        p = np.array(RATES) * (rest[:-1] - rest[1:])  # a yes at this age
        known = counts > 0.0
        variances = np.where(known, p * (1 - p) / np.maximum(counts, 1.0), 0.0).sum(axis=0)
        errors = np.where(known.any(axis=0), np.sqrt(variances), 1.0)
        truths = np.where(known, p, 0.0).sum(axis=0)
        coming = [
            float(np.exp(-old / delay).mean()) if len(old) else 0.0 for old, delay in zip(over, DELAYS, strict=True)
        ]
        return cls(rates, truths, errors, truths - np.array(RATES) * coming)


class Played(NamedTuple):
    """How a run ended."""

    share: float
    """Of the last tenth of the decisions, that of the better arm."""
    regret: float
    """Yeses that the better arm would have had, too."""
    moments: tuple[Beliefs, ...]
    """Now and then, yeses being in flight."""
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
                "ByAge": lambda seed, window=window: _learner(ByAge(window), window, seed),  # type: ignore[misc]
                "DefaultAfter": lambda seed, window=window: _learner(DefaultAfter(window), window, seed),  # type: ignore[misc]
            }
            if not day:
                agents["OTFLinTS"] = lambda seed, window=window: _otf(OTFLinTS(window=int(window), scale=0.05), seed)  # type: ignore[misc]
                agents["OTFLinUCB"] = lambda seed, window=window: _otf(OTFLinUCB(window=int(window), scale=0.05), seed)  # type: ignore[misc]
            for name, make in agents.items():
                found += _measures(name, where, _plays(make, runs, count, day), effort)
    waiting = _plays(lambda seed: _learner(Unknown(), 0.0, seed), runs, count, day=False)
    found += _measures("waiting for what is told", "no window, steady traffic", waiting, effort)
    return [*found, *_regrets(effort), *_times(effort)]


def _regrets(effort: Effort) -> list[Measure]:
    """Compare regret at the defaults, with a window of 6 000 seconds: yeses lost, over runs with seeds of their own."""
    window, found = WINDOWS[-1], []
    for horizon, gap in ((1.4, 1.0), (20.0, 5.0)):
        count, runs = (int(horizon * window / gap), 40 if horizon < 2 else 20) if effort.patient else (1_000, 2)
        regrets: dict[str, Floats] = {}
        agents: dict[str, Callable[[int], Agent]] = {
            "Mature": lambda seed: _learner(Mature(window), window, seed, FLOOR_USED),
            "ByAge": lambda seed: _learner(ByAge(window), window, seed, FLOOR_USED),
            "OTFLinTS": lambda seed, gap=gap: _otf(OTFLinTS(window=int(window / gap), scale=0.05), seed),  # type: ignore[misc]
        }
        with threadpool_limits(1):
            for name, make in agents.items():
                plays = [play(make(seed), count, seed, False, gap).regret for seed in range(100, 100 + runs)]
                regrets[name] = np.array(plays)
        said = "; ".join(
            f"{name} {each.mean():.1f} ± {each.std(ddof=1) / math.sqrt(runs):.1f}" for name, each in regrets.items()
        )
        less = 100 * (1 - regrets["ByAge"].mean() / regrets["Mature"].mean())
        note = f"mean of {runs} runs of {count} decisions, and its standard error: {said}"
        target = at_least(25.0 if horizon < 2 else 0.0) if effort.patient else None
        what = f"ByAge, window {window:g} s, horizon of {horizon:g} windows: regret below that of Mature"
        found.append(Measure(what, (float(less),), "%", target, note))
        spreads = {name: float(each.std(ddof=1)) for name, each in regrets.items()}
        said = "; ".join(f"{name} {each:.1f}" for name, each in spreads.items())
        what = f"OTFLinTS, window {window:g} s, horizon of {horizon:g} windows: spread of regret from run to run"
        ratio = spreads["OTFLinTS"] / max(spreads["ByAge"], 1e-9)
        found.append(Measure(what, (ratio,), "× ByAge", None, f"standard deviations: {said}"))
    return found


def _times(effort: Effort) -> list[Measure]:
    """Compare how long a decision takes, among ten actions with ten features, while rewards and ages come in."""
    table = {"actions": [f"a{i}" for i in range(10)], "features": [f"x{i}" for i in range(9)]}
    count, found = 4_000 if effort.patient else 400, []

    def times(kind: str) -> tuple[float, float]:
        now, rng = [0.0], stream(0, "bench")
        settings = ModelSettings.from_table({**table, "silence": {"kind": kind, "seconds": count / 4}})
        model = Model("m", settings, MemoryStore(), clock=lambda: now[0])
        took = []
        for x in rng.standard_normal((count, 9)).tolist():
            now[0] += 1.0
            context = dict(zip(table["features"], x, strict=True))
            began = time.perf_counter()
            choice = model.decide(context)
            took.append(time.perf_counter() - began)
            if rng.random() < 0.1:
                model.feedback(choice.id, 1.0)
        return float(np.median(took[count // 2 :])), float(np.mean(took[count // 2 :]))

    with threadpool_limits(1):
        pairs = [(times("mature"), times("by_age")) for _ in range(effort.repeats)]
    for place, name in enumerate(("the median decision", "decisions on average, with what they let learn")):
        target = at_most(1.5) if effort.patient else None
        values = tuple(aged[place] / mature[place] for mature, aged in pairs)
        said = " and ".join(duration(float(np.median([pair[i][place] for pair in pairs]))) for i in (0, 1))
        found.append(Measure(f"ByAge: time of {name}", values, "× Mature", target, f"{said}; 8 ages"))
    return found


def _plays(make: Callable[[int], Agent], runs: int, count: int, day: bool) -> list[Played]:
    with threadpool_limits(1):
        return [play(make(seed), count, seed, day) for seed in range(runs)]


def _measures(name: str, where: str, runs: list[Played], effort: Effort) -> list[Measure]:
    def ours(target: Target) -> Target | None:
        return target if name in ("Mature", "ByAge") and effort.patient else None

    what, found = f"{name}, {where}", []
    shares = tuple(100 * run.share for run in runs)
    if name == "ByAge":
        target = at_most(3) if effort.patient else None
        count = len(runs[0].moments)
        worst = tuple(max(one.off for one in run.moments) for run in runs)
        note = f"the furthest of {count} moments from the truth, all that ever comes, in each run"
        found.append(Measure(f"{what}: estimates of all that ever comes, at every moment", worst, "s.e.", target, note))
        worst = tuple(max(one.off_so_far for one in run.moments) for run in runs)
        note = f"the furthest of {count} moments from what can have come by then, in each run"
        found.append(Measure(f"{what}: estimates of what can have come, at every moment", worst, "s.e.", target, note))
    found.append(Measure(f"{what}: decisions for the better arm", shares, "%", ours(at_least(90)), "of the last tenth"))
    for when in ("live", "after"):
        each = [getattr(run, when) for run in runs]
        believed = "; ".join(" and ".join(f"{100 * rate:.2f}" for rate in one.rates) for one in each)
        ending = "with yeses in flight" if when == "live" else "when all have come"
        target = ours(at_most(3)) if when == "after" else None
        note = f"the furthest from the truth; believed: {believed} %"
        found.append(Measure(f"{what}: estimates {ending}", (max(one.off for one in each),), "s.e.", target, note))
    return found


def play(agent: Agent, count: int, seed: int, day: bool, gap: float = 1.0) -> Played:
    """Decide about every `gap` seconds; tell of each yes when its time has come, and of a no never."""
    rng, now = stream(seed, "bench"), 0.0
    moments: list[Beliefs] = []
    due: list[tuple[float, int]] = []
    chosen = np.zeros(count, np.int64)
    for i in range(count):
        pace = 1.0 + 0.9 * math.sin(2 * math.pi * now / DAY) if day else 1.0
        now += rng.exponential(gap / pace)
        while due and due[0][0] <= now:
            at, which = heapq.heappop(due)
            agent.yes(which, at)
        arm = chosen[i] = agent.decide(i, now)
        if rng.random() < RATES[arm]:
            heapq.heappush(due, (now + rng.exponential(DELAYS[arm]), i))
        if i % (count // 20) == 0:
            moments.append(agent.beliefs(now))
    live = agent.beliefs(now)
    regret = float((max(RATES) - np.array(RATES)[chosen]).sum())
    for at, which in sorted(due):
        agent.yes(which, at)
    share = float((chosen[-count // 10 :] == 0).mean())
    return Played(share, regret, tuple(moments), live, agent.beliefs(now + 100 * max(*WINDOWS, *DELAYS)))


def _learner(silence: Silence, window: float, seed: int, floor: float = FLOOR) -> Agent:
    """Return ours; its clock is that of the play."""
    now, ids, arms = [0.0], [], []  # type: list[float], list[str], list[tuple[float, int]]
    learner = DecisionLearner(2, silence=silence, floor=floor, seed=seed, clock=lambda: now[0])
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
        if isinstance(silence, ByAge):
            ages: Any = learner._engine.state.posterior.ages
            counts = np.array([part.sums.gram(0).diagonal()[:2] for part in ages])
            old = [np.array([time - made for made, arm in arms if arm == a and made + window <= time]) for a in (0, 1)]
            return Beliefs.by_age(learner.mean(), silence, counts, old)
        over = np.array([arm for made, arm in arms if made + window <= time], np.int64)
        return Beliefs.of(learner.mean(), np.bincount(over, minlength=2).astype(np.float64))

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
        return Beliefs.of(rates, np.bincount(arms, minlength=2).astype(np.float64))

    return Agent(decide, yes, beliefs)
