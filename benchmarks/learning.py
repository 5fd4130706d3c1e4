"""What a model learns at its defaults: tables replayed as bandits, rewards late and partly missing, and a drift."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belated.decisions import MemoryStore, Model, ModelSettings
from belated.environments.classification import DATASETS
from belated.rng import stream
from belated.types import Floats, Ints
from benchmarks.measure import Measure, at_least
from benchmarks.problems import Effort

ROUNDS, DELAY, MISSING, LAST = 3_000, 200, 0.2, 300
#: What the better of VW's squarecb and bayesianbandits, at their defaults, got right of 3 000 when they were tried.
BARS = {"wine": 2_880, "breast-cancer": 2_876, "digits": 2_062}
#: Half-life in decisions where preferences change, and what should be right of the last 300 after a change halfway.
HALF_LIFE, AFTER_DRIFT = 300, 0.65


def learning(effort: Effort) -> list[Measure]:
    """Count right answers at the defaults, and after a change of preferences halfway."""
    runs = 20 if effort.patient else 3
    note = f"{ROUNDS} rounds, geometric delay of mean {DELAY}, {MISSING:.0%} of the rewards never come, {runs} runs"
    found = []
    for name, least in BARS.items():
        rows, classes = load(name)
        with threadpool_limits(1):
            right = np.array([play(rows, classes, seed).sum() for seed in range(runs)])
        found.append(_mean(f"{name}: right answers at the defaults", right, least, note, effort))
    for name in BARS:
        rows, classes = load(name)
        for halves in (None, HALF_LIFE):
            with threadpool_limits(1):
                ends = [play(rows, classes, seed, drift=True, half_life=halves)[-LAST:].mean() for seed in range(runs)]
            named = "nothing forgotten" if halves is None else f"half-life of {halves} decisions"
            bar, end = None if halves is None else AFTER_DRIFT, f"the last {LAST} of {note}"
            found.append(_mean(f"{name}, other classes halfway: {named}", np.array(ends), bar, end, effort))
    return found


def _mean(name: str, values: Floats, bar: float | None, note: str, effort: Effort) -> Measure:
    error = 2.0 * float(values.std(ddof=1)) / math.sqrt(len(values))
    target = None if bar is None or not effort.patient else at_least(bar)
    return Measure(name, (float(values.mean()),), "", target, f"mean ± {error:.3g} (two standard errors); {note}")


def load(name: str) -> tuple[Floats, Ints]:
    """Return the standardised columns and the classes of a table that comes with scikit-learn."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    rows, classes = getattr(datasets, DATASETS[name])(return_X_y=True)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), classes


def play(rows: Floats, classes: Ints, seed: int, *, drift: bool = False, half_life: int | None = None) -> Floats:
    """Play rows drawn at random, and return which answers were right; `drift`: all classes move on by one halfway."""
    count = int(classes.max()) + 1
    names = [f"x{i}" for i in range(rows.shape[1])]
    table = {"actions": [str(i) for i in range(count)], "features": names, "silence": {"kind": "unknown"}, "seed": seed}
    if half_life is not None:
        table["forgetting"] = {"decisions": half_life}
    now = [0.0]
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    rng = stream(seed, "bench")
    shown, delays = rng.integers(len(rows), size=ROUNDS), rng.geometric(1.0 / DELAY, ROUNDS)
    lost = rng.random(ROUNDS) < MISSING
    due: dict[int, list[tuple[str, float]]] = {}
    right = np.zeros(ROUNDS)
    for t in range(ROUNDS):
        now[0] = float(t)
        for made, reward in due.pop(t, ()):
            model.feedback(made, reward)
        choice = model.decide(dict(zip(names, rows[shown[t]].tolist(), strict=True)))
        moved = int(drift and t >= ROUNDS // 2)
        right[t] = int(choice.action) == (classes[shown[t]] + moved) % count
        if not lost[t]:
            due.setdefault(t + int(delays[t]), []).append((choice.id, float(right[t])))
    return right
