"""Intervals that cover, for sessions: what logs of served sessions say about three other policies."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import (
    Choice,
    Decide,
    End,
    Estimate,
    MemoryStore,
    Model,
    ModelSettings,
    Reward,
    evaluate_sessions,
    sessions_in,
)
from belated.decisions._evaluation import Policy
from belated.environments import ShopFunnel
from belated.types import Floats
from benchmarks.measure import Measure, at_least, at_most
from benchmarks.problems import Effort

HORIZONS, FLOOR = (4, 8), 0.1
#: Sessions side by side, and from one set of plans to the next.
BATCH = 50
METHODS = ("PDIS", "WPDIS", "DR")
BEST = np.eye(3)[[0, 1, 1, 2, 0]]
#: π(a | page): what is best so often, and else any action.
POLICIES: dict[str, Floats] = {
    "nine of ten": 0.9 * BEST + 0.1 / 3,
    "soft": 0.6 * BEST + 0.4 / 3,
    "half at random": 0.5 * BEST + 0.5 / 3,
}


class Judged(NamedTuple):
    """An estimate, beside the truth."""

    policy: str
    estimate: Estimate
    truth: float


def session_coverage(effort: Effort) -> list[Measure]:
    """Count how often the truth is in intervals of 95 %, and how often there is one."""
    count, runs = (1_000, 400) if effort.patient else (200, 2)
    found = []
    with ProcessPoolExecutor(2, initializer=threadpool_limits, initargs=(1,)) as two:
        for horizon in HORIZONS:
            logs = list(two.map(partial(judge, horizon, count), range(runs)))
            judged = [each for log in logs for each in log]
            for policy in POLICIES:
                for method in METHODS:
                    cell = [each for each in judged if (each.policy, each.estimate.method) == (policy, method)]
                    found.append(_measure(f"H = {horizon}, {count} sessions: {policy}, {method}", cell))
            whole = _measure(f"H = {horizon}: all intervals", judged)
            targets = (at_least(93), at_most(97)) if effort.patient and whole.values else (None,)
            found += [Measure(whole.name, whole.values, "%", target, whole.note) for target in targets]
    return found


def _measure(name: str, judged: Sequence[Judged]) -> Measure:
    given = [each for each in judged if not each.estimate.reason]
    inside = sum(each.estimate.low <= each.truth <= each.estimate.high for each in given)
    values = (100.0 * inside / len(given),) if given else ()
    return Measure(name, values, "%", note=f"{len(given)} intervals from {len(judged)} estimates")


def judge(horizon: int, count: int, seed: int) -> list[Judged]:
    """Evaluate every policy by a log of its own."""
    funnel = ShopFunnel(horizon)
    model = play(funnel, count, seed)
    sessions, found = list(sessions_in(model)), []
    for name, table in POLICIES.items():
        result = evaluate_sessions(sessions, policy_of(table), model.settings)
        found += [Judged(name, each, earned(funnel, table)) for each in result.estimates]
    return found


def policy_of(table: Floats) -> Policy:
    pages = ShopFunnel.PAGES

    def policy(context: Any, actions: Sequence[str]) -> Sequence[float]:
        chances: list[float] = table[pages.index(context["page"])].tolist()
        return chances

    return policy


def earned(funnel: ShopFunnel, table: Floats) -> float:
    """Return the true mean return of a policy."""
    value = np.zeros(funnel.states)
    for _ in range(funnel.horizon):
        value = (table * (funnel.rewards[0] + funnel.transitions[0] @ value)).sum(axis=1)
    return float(value[0])


def play(funnel: ShopFunnel, count: int, seed: int) -> Model:
    """Serve sessions, which end when a visitor has gone, so many side by side, and plan before the next ones."""
    table = {
        "actions": list(funnel.ACTIONS), "categories": ["page"], "hashed": 8, "silence": {"kind": "unknown"},
        "horizon": funnel.horizon, "floor": FLOOR, "seed": seed,
    }  # fmt: skip
    now, rng = [0.0], stream(seed, "bench")
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    gone = funnel.states - 1
    for first in range(0, count, BATCH):
        now[0] += 1.0
        model.plan()
        pages = dict.fromkeys(range(first, min(first + BATCH, count)), 0)
        rewards = list[Reward]()
        for h in range(funnel.horizon):
            steps = [Decide({"page": funnel.PAGES[page]}, session=str(name)) for name, page in pages.items()]
            for name, made in zip(list(pages), model.run(steps), strict=True):
                assert isinstance(made, Choice), made
                page, action = pages[name], funnel.ACTIONS.index(made.action)
                rewards.append(Reward(made.id, float(rng.random() < funnel.rewards[0, page, action])))
                pages[name] = int(rng.choice(funnel.states, p=funnel.transitions[0, page, action]))
            left = [name for name, page in pages.items() if page == gone or h + 1 == funnel.horizon]
            model.run([End(str(name), terminal=pages.pop(name) == gone) for name in left])
        model.run(rewards)
    return model
