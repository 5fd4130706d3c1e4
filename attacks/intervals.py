"""Off-policy intervals for policies that a log hardly covers: none may be given without support, or miss the truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from attacks.tally import Tally
from belated.decisions import Evaluation, MemoryStore, Model, ModelSettings, Reward, always, evaluate, uniform

FLOORS = (0.002, 0.02, 0.1)
BATCH, FAR = 50, 5.0
"""Decisions at a time; an error of this many standard errors is not bad luck."""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Let models of random problems decide, and evaluate each constant policy and the uniform one."""
    for i in range(tries):
        if not tally.left():
            return
        floor, count, actions = FLOORS[i % 3], int(rng.integers(4, 60)) * BATCH, int(rng.integers(3, 11))
        rates = rng.uniform(0.05, 0.2, actions)
        with tally.attempt(f"floor {floor}, {count} decisions, {actions} actions, rates {rates.round(3).tolist()}"):
            model = play(rates, floor, count, rng)
            names = list(model.settings.names)
            policies: list[tuple[Any, float]] = [(uniform, float(rates.mean()))]
            policies += [(always(name), float(rate)) for name, rate in zip(names, rates, strict=True)]
            for policy, truth in policies:
                judge(evaluate(model.log(), policy, model.settings), truth, model, policy)


def judge(found: Evaluation, truth: float, model: Model, policy: Any) -> None:
    """Check that an interval is there only if the log carries it, and is not far from the truth."""
    carries = 0.0
    for entry in model.log():
        assert entry.probabilities is not None
        target = np.array(policy(entry.context, entry.actions))
        carries += float(np.min(np.array(entry.probabilities)[target > 0.0]))
    for each in found.estimates:
        if each.reason:
            assert math.isnan(each.low) and math.isnan(each.high) and math.isnan(each.error), each
            continue
        assert carries > 5, f"{each.method} has an interval, of an action that was expected {carries:.1f} times"
        assert abs(each.value - truth) < FAR * each.error, f"{each}, and the truth is {truth}"


def play(rates: np.ndarray[Any, Any], floor: float, count: int, rng: np.random.Generator) -> Model:
    """Let a model decide, with binary rewards that arrive a batch later."""
    table = {
        "actions": [f"a{i}" for i in range(len(rates))], "features": ["x"], "silence": {"kind": "unknown"},
        "floor": floor, "seed": int(rng.integers(2**31)),
    }  # fmt: skip
    now = [0.0]
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    late: list[Reward] = []
    for _ in range(count // BATCH):
        now[0] += 1.0
        made = model.decide_many([{"x": x} for x in rng.uniform(-1.0, 1.0, BATCH).tolist()])
        model.feedback_many(late)
        late = [Reward(each.id, float(rng.random() < rates[int(each.action[1:])])) for each in made]
    model.feedback_many(late)
    return model
