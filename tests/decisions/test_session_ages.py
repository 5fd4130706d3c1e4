"""Sessions that are learned by age: what is still to come of a step is expected without a bias, and counted once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy
from decision_models import Clock
from session_models import sessions_of

from belated.decisions import ModelSettings
from belated.decisions._plans import encode_state
from belated.decisions._session_ages import expected
from belated.decisions._session_learner import SessionLearner
from belated.types import Floats

WINDOW = 64.0
BY_AGE = {"kind": "by_age", "seconds": WINDOW}


def oracle(came: Floats, features: Floats, kind: Any) -> Floats:
    """The same, row by row: each age regressed on what came before and on the features, from those who passed it."""
    total, filled = came[:, 0].copy(), came.copy()
    for b in range(1, came.shape[1]):
        known = [i for i in range(len(came)) if not np.isnan(came[i, b])]
        if known:
            means = {k: np.mean([[total[i], came[i, b]] for i in known if kind[i] == k], axis=0) for k in set(kind)}
            s = np.array([total[i] - means[kind[i]][0] for i in known])
            c = np.array([came[i, b] - means[kind[i]][1] for i in known])
            slope = (s @ c) / (s @ s * (1 + 1 / len(known)))
            x = features[known]
            theta = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (c - slope * s))
        for i in range(len(came)):
            if np.isnan(came[i, b]):
                guess = 0.0
                if known:
                    before, mean = means[kind[i]]
                    guess = mean + slope * (total[i] - before) + features[i] @ theta
                filled[i, b] = guess
        total += filled[:, b]
    return total


def test_what_is_expected_is_what_regressions_by_hand_say() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 4)) * (rng.random((12, 4)) < 0.6)
    row, kind = rng.integers(12, size=80), rng.integers(2, size=80)
    came = rng.standard_normal((80, 5)) + rows[row, :1]
    passed = rng.integers(1, 5, size=80)  # nobody has passed the last age
    came[np.arange(5) >= passed[:, np.newaxis]] = np.nan
    found = expected(came, scipy.sparse.csr_array(rows), row, kind)
    assert found == pytest.approx(oracle(came, rows[row], kind), abs=1e-8)


def test_slow_and_good_against_fast_and_bad_without_a_bias() -> None:
    """Sessions of all ages up to three windows; the good action pays late, so that little has come of it so far."""
    rng, model = np.random.default_rng(1), settings()
    learner, plays = SessionLearner(model), 20_000
    silence: Any = model.silence
    seen = np.zeros(2)
    for session in range(plays):
        action, age = int(rng.integers(2)), rng.uniform(1.0, 3 * WINDOW)
        paid = rng.random() < (0.3, 0.2)[action]
        when = rng.uniform(0.7, 0.9) * WINDOW if action == 0 else rng.uniform(0.0, 0.1) * WINDOW
        ends = (0.0, *silence.ends)
        parts = [float(paid and a < when <= b) for a, b in pairwise(ends) if b <= age]
        learner.step(session, 0, encode_state(model, {"page": "p"}, model.names), action)
        learner.end(session, terminal=True)
        learner.reward(session, 0, float(paid) if age >= WINDOW else None, parts)
        seen[action] += 2 * sum(parts) / plays
    steps = learner.steps(joint=False)
    found = [float(steps.rewards[steps.rewarded & (steps.action == action)].mean()) for action in (0, 1)]
    assert steps.rewarded.all()
    assert found == pytest.approx([0.3, 0.2], abs=4 * 0.46 / np.sqrt(plays / 3))
    assert seen[0] < 0.25  # what has come of it


def settings(**more: Any) -> ModelSettings:
    table = {"actions": ["a", "b"], "categories": ["page"], "hashed": 8, "silence": BY_AGE, "horizon": 3}
    return ModelSettings.from_table({**table, **more})


def rewards(learner: SessionLearner) -> list[float]:
    steps = learner.steps(joint=False)
    return [float(value) for value, known in zip(steps.rewards, steps.rewarded, strict=True) if known]


def test_once_the_windows_are_over_what_counts_is_what_has_come() -> None:
    clocks = Clock(), Clock()
    models = [
        sessions_of(clock=clock, silence=silence)
        for clock, silence in zip(clocks, (BY_AGE, {**BY_AGE, "kind": "mature"}), strict=True)
    ]
    for model, clock in zip(models, clocks, strict=True):
        for name in ("one", "two", "three"):
            first = model.decide({"x": 0.0}, session=name).id
            model.decide({"x": 1.0}, session=name)
            model.feedback(first, 0.5)
            model.end(name, terminal=True)
            clock.now += 0.3 * WINDOW
            model.tick()
            model.feedback("", 1.0, session=name, event="order")
            model.plan()
        model.feedback("", 0.25, session="one", event="order", correction=True)
        model.cancel(session="two")
        model.plan()
    one, two = (rewards(model._the_planner().learner) for model in models)
    assert (len(one), two) == (4, [])
    by_age, mature = ([each.parts for each in model.lookup_session("three").steps] for model in models)
    assert sum(map(len, by_age)) > 0 == sum(map(len, mature))
    for model, clock in zip(models, clocks, strict=True):
        clock.now += WINDOW
        model.tick()
        model.tick()
        model.plan()
        assert model.verify() == []
    one, two = (rewards(model._the_planner().learner) for model in models)
    assert sorted(one) == sorted(two) == [0.25, 0.5, 0.5, 1.0]


def test_a_young_session_counts_with_what_is_expected_of_it() -> None:
    """Of sessions that have paid in the end 1 in every other one, one of whose first age is over is expected to pay."""
    model, silence = settings(), settings().silence
    learner = SessionLearner(model)
    page = encode_state(model, {"page": "p"}, model.names)
    for session in range(40):
        learner.step(session, 0, page, 0)
        learner.end(session, terminal=True)
        paid = session % 2
        learner.reward(session, 0, float(paid), [0.0] * 7 + [float(paid)])
    learner.step(99, 0, page, 0)
    learner.end(99, terminal=True)
    assert len(rewards(learner)) == 40  # nothing is over: it is in flight, as with any silence
    learner.reward(99, 0, None, [0.0])
    assert len(silence.ends) == 8  # type: ignore[union-attr]
    assert sum(rewards(learner)) == pytest.approx(20.5)
    learner.reward(99, 0, None, [0.0] * 7)
    again = SessionLearner(model)
    again.restore(learner.memory())
    assert sum(rewards(again)) == pytest.approx(20.5)
    learner.cancel(99)
    assert sum(rewards(learner)) == 20.0
