"""The logged probabilities are true, and so are the estimates that are made from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from belated.decisions import DecisionState, MemoryStore, Model, ModelSettings, Status
from belated.decisions._evaluation import Evaluation, always, assess, evaluate, target_of, uniform, usable
from belated.decisions._replay import replay
from belated.errors import InvalidInputError
from benchmarks.probabilities import play

RATES = {"a": (0.4, 0.3), "b": (0.6, -0.2), "c": (0.4, 0.0)}  # chance of a yes: intercept and slope in x


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def settings_of(**changes: Any) -> ModelSettings:
    table = {"actions": list(RATES), "features": ["x"], "silence": {"kind": "unknown"}, "floor": 0.15}
    return ModelSettings.from_table({**table, **changes})


def run(n: int, seed: int, delay: float = 20.0, **changes: Any) -> Model:
    """A learning model with late rewards."""
    clock, rng = Clock(), np.random.default_rng(seed)
    model = Model("m", settings_of(seed=seed, **changes), MemoryStore(), clock=clock)
    due: list[tuple[float, str, float]] = []
    for _ in range(n):
        clock.now += 1.0
        ready = [each for each in due if each[0] <= clock.now]
        due = [each for each in due if each[0] > clock.now]
        for _, name, reward in ready:
            model.feedback(name, reward)
        x = float(rng.choice([-1.0, 1.0]))
        choice = model.decide({"x": x})
        rate, slope = RATES[choice.action]
        due.append((clock.now + rng.exponential(delay), choice.id, float(rng.random() < rate + slope * x)))
    for _, name, reward in due:
        model.feedback(name, reward)
    return model


def of(evaluation: Evaluation, method: str) -> Any:
    return next(each for each in evaluation.estimates if each.method == method)


def test_by_hand() -> None:
    clock = Clock()
    model = Model("m", settings_of(features=[]), MemoryStore(), clock=clock)
    for action, probability, reward in (("a", 0.5, 1.0), ("b", 0.25, 2.0), ("a", 0.5, 0.0), ("c", 0.25, 3.0)):
        model.record({}, action, reward, probability=probability)
    model.record({}, "a", 9.0)  # nobody knows how likely that was
    model.decide({})  # still in flight
    result = evaluate(model.log(), always("a"), model.settings)
    assert (result.decisions, result.largest, result.effective) == (4, 2.0, 2.0)
    weights, rewards = np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.0, 3.0])
    assert of(result, "IPS").value == 0.5
    assert of(result, "IPS").error == pytest.approx(np.std(weights * rewards, ddof=1) / 2)
    assert of(result, "SNIPS").value == 0.5
    assert of(result, "SNIPS").error == pytest.approx(math.sqrt(np.mean((weights * (rewards - 0.5)) ** 2) / 4))
    # q̂(a) is 1/2 · 0 from the third decision for the first, and 1/2 · 1 the other way round
    assert of(result, "DR").value == pytest.approx(np.mean([0 + 2 * (1 - 0), 0.0, 0.5 + 2 * (0 - 0.5), 0.5]), abs=0.3)
    assert result.logged.value == 1.5
    low, value, high = of(result, "IPS").low, of(result, "IPS").value, of(result, "IPS").high
    assert (high - value, value - low) == pytest.approx((1.959964 * of(result, "IPS").error,) * 2, rel=1e-6)


def test_what_cannot_be_used_is_said() -> None:
    model = run(20, 0)
    with pytest.raises(InvalidInputError, match="at least 2 decisions"):
        evaluate([], uniform, model.settings)
    for bad in (lambda context, actions: [0.5, 0.6, 0.0], lambda context, actions: [1.0]):
        with pytest.raises(InvalidInputError, match="what the policy returns must be 3 probabilities"):
            evaluate(model.log(), bad, model.settings)
    with pytest.raises(InvalidInputError, match="level must be"):
        evaluate(model.log(), uniform, model.settings, level=1.0)
    nothing = evaluate(model.log(), lambda context, actions: [0.0, 0.0, 1.0], settings_of())
    assert nothing.decisions == 20


def test_actions_follow_the_logged_probabilities() -> None:
    model = run(1500, 3)
    expected, counts, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for entry in model.log():
        assert entry.probabilities is not None
        p = np.array(entry.probabilities)
        assert p.min() >= 0.15 / 3 - 1e-12 and p.sum() == pytest.approx(1.0)
        assert entry.probability == p[entry.actions.index(entry.action)]
        expected += p
        variance += p * (1 - p)
        counts[entry.actions.index(entry.action)] += 1
    assert variance.min() > 20
    assert float(((counts - expected) ** 2 / variance).max()) < 3.5**2
    # among the decisions whose action had a small probability, that many took it
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.9)):
        inside = [
            (p, action == entry.action)
            for entry in model.log()
            for p, action in zip(entry.probabilities or (), entry.actions, strict=True)
            if low <= p < high
        ]
        chances, taken = np.array([p for p, _ in inside]), sum(hit for _, hit in inside)
        assert len(inside) > 50
        assert abs(taken - chances.sum()) < 3.5 * math.sqrt((chances * (1 - chances)).sum())


def truth(policy: Any) -> float:
    rows = [(policy({"x": x}, list(RATES)), x) for x in (-1.0, 1.0)]
    values = [p * (RATES[a][0] + RATES[a][1] * x) for row, x in rows for p, a in zip(row, RATES, strict=True)]
    return float(sum(values)) / 2


def mostly_right(context: Any, actions: Any) -> list[float]:
    return [0.8, 0.1, 0.1] if context["x"] > 0 else [0.0, 1.0, 0.0]


def test_estimates_are_near_the_truth() -> None:
    model = run(2500, 1)
    for policy in (uniform, always("a"), mostly_right):
        result = evaluate(model.log(), policy, model.settings)
        for estimate in result.estimates:
            assert abs(estimate.value - truth(policy)) < 3 * estimate.error
            assert estimate.error < 0.1
    assert of(result, "DR").error < of(result, "IPS").error  # of the last: a good guess of the rewards helps


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    hits = {"IPS": 0, "SNIPS": 0, "DR": 0}
    for seed in range(100):
        model = run(3000, seed)
        for estimate in evaluate(model.log(), uniform, model.settings).estimates:
            hits[estimate.method] += abs(estimate.value - truth(uniform)) <= 2 * estimate.error
    assert min(hits.values()) >= 90  # of 95.4 on average, with a standard deviation of 2.1


@pytest.mark.slow
def test_a_uniform_policy_on_twenty_thousand_decisions() -> None:
    estimates = [play(20_000, 0.15, seed).ips for seed in range(100)]
    hits = sum(abs(value - truth(uniform)) <= 2 * error for value, error in estimates)
    print(f"\nwithin two standard errors in {hits} of {len(estimates)} runs")
    assert hits >= 93


def test_replay_of_the_same_settings_rebuilds_the_model() -> None:
    model = run(400, 5, forgetting={"decisions": 200})
    pairs = list(replay(model, model.settings))
    entries = list(model.log())
    assert [entry for entry, _ in pairs] == entries
    same = 0
    for entry, probabilities in pairs:
        assert probabilities.sum() == pytest.approx(1.0)
        same += entry.probabilities == tuple(probabilities)
    assert same == len(entries)  # it would have drawn from the very same numbers


def test_replay_through_other_settings_tells_what_they_would_earn() -> None:
    model = run(1200, 2, floor=0.6)
    other = settings_of(floor=0.01, features=["x"], ridge=2.0)
    pairs = list(replay(model, other))
    log = usable(entry for entry, _ in pairs)
    target = [p for entry, p in pairs if entry.learned is not None and entry.probability is not None]
    result = assess(log, target, other)
    best = (0.7 + 0.8) / 2  # a or b, as x says
    assert of(result, "DR").value > result.logged.value + 3 * of(result, "DR").error
    assert abs(of(result, "DR").value - best) < 0.1
    assert len(list(replay(model, settings_of(scale=0.0, floor=0.02)))) == 1200


def test_replay_repeats_everything_that_happened() -> None:
    clock = Clock()
    silence = {"kind": "mature", "seconds": 10.0}
    model = Model("m", settings_of(silence=silence, aggregate="sum"), MemoryStore(), clock=clock)
    ids = []
    for i in range(60):
        clock.now += 1.0
        ids.append(model.decide({"x": float(i % 2)}, active=i % 5 > 0, size=1 + i % 2).id)
        model.feedback(ids[i // 2], 1.0, event=f"{i % 3}", slot=None if i // 2 % 2 == 0 else 1)
        if i % 7 == 0:
            model.cancel(ids[i // 3])
        if i % 4 == 0:
            model.activate(ids[i // 4])
    clock.now += 100.0
    model.tick()
    pairs = list(replay(model, model.settings))
    assert [entry for entry, _ in pairs] == list(model.log())
    assert {entry.status for entry, _ in pairs} >= {
        DecisionState.CANCELLED,
        DecisionState.REWARDED,
        DecisionState.DEFAULTED,
        DecisionState.INACTIVE,
    }
    assert model.counts[Status.ACCEPTED] > 40


def test_targets_are_probabilities_for_each_decision() -> None:
    model = run(10, 0)
    entries = list(model.log())
    assert [row.tolist() for row in target_of(always("z"), entries)] == [[1 / 3] * 3] * 10
    assert [row.tolist() for row in target_of(always("b"), entries)] == [[0.0, 1.0, 0.0]] * 10
