"""Intervals that cover: what the logs of models say about three policies, at the default floor and at larger ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import Estimate, MemoryStore, Model, ModelSettings, Reward, always, uniform
from belated.decisions._evaluation import Policy, assess, target_of, usable
from benchmarks.measure import Measure, at_least, at_most
from benchmarks.problems import Effort

#: Mean reward of each action: intercept and slope in a feature x, uniform in [-1, 1].
MEANS = {"a": (0.05, 0.02), "b": (0.20, 0.05), "c": (0.12, -0.05)}
FLOORS = (0.002, 0.02, 0.1)
"""The default, and two for logs that are to be evaluated."""
NOISE = 0.1
"""Of rewards that are normal; the others are 0 or 1."""
IN_FLIGHT = (0.1, 0.3, 0.6)
"""Fractions of a log in flight that is learned by age, with a floor of 0.1."""
HALVES = {"a": 0.02, "b": 0.4, "c": 0.1}
"""Fraction of the window after which half of an action's positives have arrived."""
BATCH = 50
"""Decisions at a time; their rewards arrive after the next batch."""


def rule(context: Any, actions: Sequence[str]) -> list[float]:
    """Choose the action that is best: b, or c where x is small."""
    return [float(action == ("c" if context["x"] < -0.8 else "b")) for action in actions]


POLICIES: dict[str, Policy] = {"any action alike": uniform, "always c": always("c"), "a good rule": rule}


class Judged(NamedTuple):
    """An estimate, beside the truth."""

    policy: str
    estimate: Estimate
    truth: float

    @property
    def given(self) -> bool:
        """Whether there is an interval."""
        return not self.estimate.reason

    @property
    def inside(self) -> bool:
        """Whether it contains the truth."""
        return self.estimate.low <= self.truth <= self.estimate.high


def coverage(effort: Effort) -> list[Measure]:
    """Count how often 95 % intervals contain the truth, and how often there is one."""
    count, runs = (8_000, 100) if effort.patient else (400, 4)
    found = []
    with ProcessPoolExecutor(2, initializer=threadpool_limits, initargs=(1,)) as two:
        for floor in FLOORS:
            judged: list[Judged] = []
            for normal in (False, True):
                logs = list(two.map(partial(judge, count, floor, normal), range(runs)))
                some = [each for log in logs for each in log]
                about = f"{'normal rewards' if normal else 'rewards 0 or 1'}, {count} decisions"
                found += _cells(some, f"floor {floor:g}, {about}")
                judged += some
            found += _pooled(judged, f"floor {floor:g}", effort)
        for share in IN_FLIGHT:
            logs = list(two.map(partial(judge_in_flight, count // 2, share), range(runs)))
            where = f"{100 * share:g} % of the decisions in flight, learned by age"
            found += _pooled([each for log in logs for each in log], where, effort)
    return found


def _cells(judged: list[Judged], where: str) -> list[Measure]:
    found = []
    for policy in POLICIES:
        for method in ("IPS", "SNIPS", "DR"):
            cell = [each for each in judged if (each.policy, each.estimate.method) == (policy, method)]
            given = [each for each in cell if each.given]
            note = f"{len(given)} intervals from {len(cell)} logs"
            found.append(Measure(f"{where}: {policy}, {method}", _share(given), "%", note=note))
    return found


def _pooled(judged: list[Judged], where: str, effort: Effort) -> list[Measure]:
    given = [each for each in judged if each.given]
    note = f"{len(given)} intervals from {len(judged)} estimates"
    targets = (at_least(93), at_most(97)) if effort.patient and given else (None,)
    return [Measure(f"{where}: all intervals", _share(given), "%", target, note) for target in targets]


def _share(given: list[Judged]) -> tuple[float, ...]:
    return (100.0 * sum(each.inside for each in given) / len(given),) if given else ()


def judge(count: int, floor: float, normal: bool, seed: int) -> list[Judged]:
    """Evaluate every policy on its own log."""
    return judged(play(count, floor, normal, seed))


def judge_in_flight(count: int, share: float, seed: int) -> list[Judged]:
    """Evaluate every policy on a log of which this fraction is in flight."""
    return judged(play_by_age(count, share, seed))


def judged(model: Model) -> list[Judged]:
    """Evaluate every policy by the log of a model."""
    log, found = usable(model.log()), []
    for name, policy in POLICIES.items():
        truth = earned(policy)
        result = assess(log, target_of(policy, log.entries), model.settings)
        found += [Judged(name, each, truth) for each in result.estimates]
    return found


def earned(policy: Policy) -> float:
    """Return the true mean reward of a policy."""
    means, slopes = np.array(list(MEANS.values())).T
    grid = np.linspace(-1.0, 1.0, 2001)[:-1] + 0.0005
    return float(np.mean([np.dot(policy({"x": x}, list(MEANS)), means + slopes * x) for x in grid.tolist()]))


def play(count: int, floor: float, normal: bool, seed: int) -> Model:
    """Let a model decide with default settings except the floor."""
    table = {"actions": list(MEANS), "features": ["x"], "silence": {"kind": "unknown"}, "floor": floor, "seed": seed}
    now = [0.0]
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    rng = stream(seed, "bench")
    late: list[Reward] = []
    for _ in range(count // BATCH):
        now[0] += 1.0
        x = rng.uniform(-1.0, 1.0, BATCH)
        made = model.decide_many([{"x": each} for each in x.tolist()])
        model.feedback_many(late)
        mean = np.array([MEANS[each.action][0] + MEANS[each.action][1] * at for each, at in zip(made, x, strict=True)])
        drawn = mean + NOISE * rng.standard_normal(BATCH) if normal else rng.random(BATCH) < mean
        late = [Reward(each.id, float(reward)) for each, reward in zip(made, drawn, strict=True)]
    model.feedback_many(late)
    return model


def play_by_age(count: int, share: float, seed: int) -> Model:
    """Let a model decide that learns by age; positives arrive within the window, and negatives are never reported."""
    window = share * count
    silence = {"kind": "by_age", "seconds": window}
    table = {"actions": list(MEANS), "features": ["x"], "silence": silence, "floor": 0.1, "seed": seed}
    now = [0.0]
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    rng = stream(seed, "bench")
    due: list[tuple[float, str]] = []
    for x in rng.uniform(-1.0, 1.0, count).tolist():
        now[0] += 1.0
        while due and due[0][0] <= now[0]:
            model.feedback(heapq.heappop(due)[1], 1.0)
        made = model.decide({"x": x})
        rate, slope = MEANS[made.action]
        if rng.random() < rate + slope * x:
            late = window * rng.random() ** (math.log(HALVES[made.action]) / math.log(0.5))
            heapq.heappush(due, (now[0] + late, made.id))
    return model
