"""No bias from silence: nobody reports a no, yeses come late, and the estimates are right all the same."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

from belated.decisions import DefaultAfter, Mature, MemoryStore, Model, ModelSettings

RATES = {"slow": 0.10, "fast": 0.05}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


Run = tuple[Model, list[str], dict[str, list[float]]]


def run(silence: Any, n: int, seed: int, floor: float, slow: float = 1500.0, day: bool = False) -> Run:
    """Return the model, what it chose, and each arm's estimate along the way."""
    clock, rng = Clock(), np.random.default_rng(seed)
    settings = ModelSettings(actions={"slow": {}, "fast": {}}, silence=silence, floor=floor, seed=seed)
    model = Model("m", settings, MemoryStore(), clock=clock)
    due: list[tuple[float, str]] = []
    chosen: list[str] = []
    seen: dict[str, list[float]] = {name: [] for name in RATES}
    for i in range(n):
        pace = 1.0 + 0.9 * np.sin(2 * np.pi * clock.now / 5000) if day else 1.0
        clock.now += float(rng.exponential(1.0 / pace))
        while due and due[0][0] <= clock.now:
            model.feedback(heapq.heappop(due)[1], 1.0)
        choice = model.decide({})
        chosen.append(choice.action)
        if rng.random() < RATES[choice.action]:
            delay = float(rng.exponential(slow if choice.action == "slow" else 20.0))
            heapq.heappush(due, (clock.now + delay, choice.id))
        if i % 500 == 499:
            for name, weights in model.weights().items():
                seen[name].append(float(weights[0]))
    return model, chosen, seen


def assert_unbiased(model: Model, least: int) -> None:
    state = model.state
    for name, rate in RATES.items():
        weight = float(state.posterior.ages[0].sums.gram(state.blocks[name])[0, 0])  # how many decisions count
        assert weight > least
        error = np.sqrt(rate * (1 - rate) / weight)
        assert abs(model.weights()[name][0] - rate) < 3 * error + 1.0 / weight


def test_mature_estimates_are_right() -> None:
    model, _, seen = run(Mature(2000.0), 5_000, seed=1, floor=1.0, slow=400.0)
    assert_unbiased(model, 1000)
    assert max(seen["slow"] + seen["fast"]) < 0.2  # at no time does it believe in the yeses alone
    assert model.verify() == []


def test_a_default_after_a_long_window_believes_the_yeses() -> None:
    _, _, seen = run(DefaultAfter(2000.0), 2_000, seed=1, floor=1.0)
    assert min(seen["fast"]) > 0.9  # the bias that Mature is there to avoid


@pytest.mark.slow
@pytest.mark.parametrize("day", [False, True])
@pytest.mark.parametrize("window", [300.0, 6000.0])
def test_the_better_arm_wins_although_its_yeses_are_slow(window: float, day: bool) -> None:
    _, chosen, _ = run(Mature(window), 60_000, seed=2, floor=0.05, day=day)
    assert chosen[-5000:].count("slow") / 5000 > 0.9
