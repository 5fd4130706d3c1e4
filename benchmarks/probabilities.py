"""Probabilities that are true: what the log of a learner says about a policy that it does not follow."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import DecisionLearner, Unknown
from belated.types import Floats
from benchmarks.measure import Measure, at_least, below
from benchmarks.problems import Effort

#: Chance of a yes of each of three actions: intercept and slope in a feature x that is -1 or 1.
RATES = np.array([(0.4, 0.3), (0.6, -0.2), (0.4, 0.0)])
FLOORS = (0.15, 0.002)
"""Of a log that is to be evaluated, and the default, which is not meant for it."""
DELAY, LOOKED_AT = 20, 2_000


class Log(NamedTuple):
    """What came of a run, about the uniform policy."""

    ips: tuple[float, float]
    """Estimate and standard error."""
    snips: tuple[float, float]
    effective: float
    """How many decisions of the uniform policy itself would tell as much."""
    strange: float
    """How far the counts of actions are from the sums of their probabilities, as a χ² with two degrees of freedom."""


def probabilities(effort: Effort) -> list[Measure]:
    """Evaluate the uniform policy by the logs of learners, and count how often the truth is within two errors."""
    count, runs = (20_000, 100) if effort.patient else (2_000, 4)
    found = []
    with ProcessPoolExecutor(2, initializer=threadpool_limits, initargs=(1,)) as two:
        for floor in FLOORS:
            made = runs if floor == FLOORS[0] else math.ceil(0.4 * runs)
            logs = list(two.map(partial(play, count, floor), range(made)))
            found += _measures(logs, floor, f"{count} decisions, uniform policy, {made} runs", effort)
    return found


def _measures(logs: list[Log], floor: float, note: str, effort: Effort) -> list[Measure]:
    truth, share = float(RATES[:, 0].mean()), 100.0 / len(logs)
    found = []
    for name in ("ips", "snips"):
        each = [getattr(log, name) for log in logs]
        hits = share * sum(abs(value - truth) <= 2 * error for value, error in each)
        bias = float(np.mean([value for value, _ in each])) - truth
        spread = float(np.std([value for value, _ in each], ddof=1))
        about = f"{note}; off by {bias:+.4f} ± {2 * spread / math.sqrt(len(logs)):.4f} on average, expected 95.4 %"
        target = at_least(93) if name == "ips" and floor == FLOORS[0] and effort.patient else None
        found.append(Measure(f"floor {floor:g}: truth within 2 errors of {name.upper()}", (hits,), "%", target, about))
    effective = tuple(log.effective for log in logs)
    found.append(Measure(f"floor {floor:g}: effective number of decisions", effective, "", note=note))
    # χ² with two degrees of freedom exceeds -2·log(α) with probability α
    unlikely = share * sum(log.strange > -2.0 * math.log(0.05) for log in logs)
    about = f"5 % if the probabilities are true; every decision's first {LOOKED_AT}, {note}"
    target = below(12) if effort.patient else None
    found.append(Measure(f"floor {floor:g}: runs whose actions χ² calls unlikely", (unlikely,), "%", target, about))
    return found


def play(count: int, floor: float, seed: int) -> Log:
    """Let a learner decide, with late rewards."""
    learner, rng = DecisionLearner(6, silence=Unknown(), floor=floor, seed=seed), stream(seed, "bench")
    tables: dict[float, Floats] = {x: np.kron(np.eye(3), np.array([1.0, x])) for x in (-1.0, 1.0)}
    signs, delays, chances = rng.choice([-1.0, 1.0], count), rng.geometric(1 / DELAY, count), rng.random(count)
    due: dict[int, list[tuple[str, float]]] = {}
    logged, rewards = np.zeros(count), np.zeros(count)
    surplus, variance = np.zeros(3), np.zeros((3, 3))
    for now in range(count):
        for name, reward in due.pop(now, ()):
            learner.feedback(name, reward)
        made = learner.decide(tables[float(signs[now])])
        assert made.probability is not None
        rate, slope = RATES[made.action]
        logged[now], rewards[now] = made.probability, chances[now] < rate + slope * signs[now]
        due.setdefault(now + int(delays[now]), []).append((made.id, float(rewards[now])))
        if now < LOOKED_AT:
            p = np.array(learner.lookup(made.id).probabilities)
            surplus += np.eye(3)[made.action] - p
            variance += np.diag(p) - np.outer(p, p)
    strange = float(surplus[:2] @ np.linalg.solve(variance[:2, :2], surplus[:2]))  # the third follows from the two
    return Log(*_estimates(logged, rewards), strange)


def _estimates(logged: Floats, rewards: Floats) -> tuple[tuple[float, float], tuple[float, float], float]:
    weights, n = 1.0 / 3.0 / logged, len(logged)
    terms, total = weights * rewards, float(weights.sum())
    normed = float(terms.sum()) / total
    spread = weights * (rewards - normed) * (n / total)
    effective = total**2 / float(weights @ weights)
    ips = float(terms.mean()), float(terms.std(ddof=1)) / math.sqrt(n)
    return ips, (normed, math.sqrt(float(np.mean(spread**2)) / n)), effective
