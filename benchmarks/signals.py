"""What signals are worth: half of the clicks become a yes, long after; and what a signal costs that says nothing."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import ByAge, MemoryStore, Model, ModelSettings
from belated.types import Floats
from benchmarks.measure import Measure, at_least, at_most
from benchmarks.problems import Effort

CLICKS = (0.20, 0.12, 0.12, 0.12, 0.12)
"""How likely a click is, of each action; it comes after 20 seconds on average."""
YES = 0.5
"""How likely a click becomes a yes, after 30 to 100 % of the window."""
WINDOW = 2000.0
KINDS = ("none", "click", "coin")
"""No signal, the click, or a coin that says nothing."""


class Played(NamedTuple):
    """How a run ended."""

    regret: float
    errors: Floats
    """Of the believed rates."""
    width: float
    """The mean standard deviation of these beliefs."""
    worth: float


def signals(effort: Effort) -> list[Measure]:
    """Compare estimates in flight and regret, with the click, with a coin and without a signal."""
    runs, found = 20 if effort.patient else 2, []
    count = 3_000 if effort.patient else 300
    with threadpool_limits(1):
        free = {kind: [play(kind, count, seed, 1.0) for seed in range(runs)] for kind in KINDS}
        bound = {kind: [play(kind, 2 * count, seed, 0.002) for seed in range(100, 100 + runs)] for kind in KINDS}
    mse = {kind: float(np.mean([run.errors**2 for run in free[kind]])) for kind in KINDS}
    wide = {kind: float(np.mean([run.width for run in free[kind]])) for kind in KINDS}
    for kind, name in (("click", "the click"), ("coin", "a coin that says nothing")):
        told = 100 * float(np.mean([run.worth for run in free[kind]]))
        note = (
            f"{runs} runs of {count} decisions at random, {WINDOW / count:.0%} of them in flight; it tells {told:.1f} %"
        )
        target = (at_least(5) if kind == "click" else None) if effort.patient else None
        less = 100 * (1 - mse[kind] / mse["none"])
        found.append(Measure(f"{name}: mean squared error of the rates, less than without", (less,), "%", target, note))
        target = at_most(2) if kind == "coin" and effort.patient else None
        more = 100 * (wide[kind] / wide["none"] - 1)
        found.append(Measure(f"{name}: standard deviations of beliefs, more than without", (more,), "%", target, note))
        here, there = (np.array([run.regret for run in bound[each]]) for each in (kind, "none"))
        error = 100 * float((here - there).std(ddof=1)) / math.sqrt(runs) / float(there.mean())
        said = f"{here.mean():.1f} beside {there.mean():.1f}; the standard error of the difference is {error:.1f} %"
        found.append(
            Measure(f"{name}: regret, more than without", (100 * (here.mean() / there.mean() - 1),), "%", None, said)
        )
    return found


def play(kind: str, count: int, seed: int, floor: float) -> Played:
    """Decide once a second; tell of clicks and yeses when their time has come."""
    rng, now = stream(seed, "bench"), [0.0]
    names = [f"a{i}" for i in range(len(CLICKS))]
    table = {"actions": names, "silence": {"kind": "by_age", "seconds": WINDOW}, "floor": floor, "seed": seed}
    settings = ModelSettings.from_table({**table, "signals": [] if kind == "none" else ["signal"]})
    model = Model("m", settings, MemoryStore(), clock=lambda: now[0])
    due: list[tuple[float, str, bool]] = []
    regret = 0.0
    for _ in range(count):
        now[0] += 1.0
        while due and due[0][0] <= now[0]:
            _, name, is_yes = heapq.heappop(due)
            if is_yes:
                model.feedback(name, 1.0)
            else:
                model.signal(name, "signal")
        made = model.decide({})
        rate = CLICKS[names.index(made.action)]
        click, coin, becomes, late, later = rng.random(5).tolist()
        regret += YES * (max(CLICKS) - rate)
        if (click < rate and kind == "click") or (coin < 0.2 and kind == "coin"):
            heapq.heappush(due, (now[0] - 20.0 * math.log1p(-late), made.id, False))
        if click < rate and becomes < YES:
            heapq.heappush(due, (now[0] + WINDOW * (0.3 + 0.7 * later), made.id, True))
    assert isinstance(settings.silence, ByAge)
    believed, weights = model.beliefs(), model.weights()
    errors = np.array([weights[name][0] - YES * rate for name, rate in zip(names, CLICKS, strict=True)])
    width = float(np.mean([each.errors[-1] for each in believed.values()]))
    return Played(regret, errors, width, model.worth().get("signal", 0.0))
