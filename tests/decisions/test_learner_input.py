"""What a learner is given: settings that are refused, input that changes nothing, the largest numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_learners import TWO, learner_of, state

from belated.decisions import (
    DefaultAfter,
)
from belated.decisions._ids import new_id
from belated.errors import InvalidInputError, UnknownNameError


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"dimension": 0}, "dimension"), ({"draws": 0}, "draws"), ({"floor": 2.0}, "floor"), ({"scale": -1.0}, "scale"),
        ({"scale": 1e13}, "scale"), ({"noise": 0.0}, "noise"), ({"noise": "none"}, "noise"),
        ({"ridge": np.nan}, "ridge"), ({"seed": -1}, "seed"), ({"silence": "unknown"}, "silence"),
        ({"silence": DefaultAfter}, "silence"),
        ({"aggregate": "all"}, "aggregate"), ({"forgetting": 100.0}, "forgetting"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(changes: dict[str, Any], name: str) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError), match=rf"^{name} must be"):
        learner_of(**changes)


def test_settings_cannot_be_changed() -> None:
    learner = learner_of()
    with pytest.raises(AttributeError):
        learner.noise = 0.1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        learner.settings.noise = 0.1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: a.decide([[1.0]]), InvalidInputError, "contexts must have shape"),
        (lambda a: a.decide(np.ones((2, 3))), InvalidInputError, "contexts must have shape"),
        (lambda a: a.decide([1.0, 2.0]), InvalidInputError, "contexts must have shape"),
        (lambda a: a.decide(np.empty((0, 2))), InvalidInputError, "the number of actions in contexts"),
        (lambda a: a.decide([[1.0, np.nan]]), InvalidInputError, "contexts must be finite"),
        (lambda a: a.decide(np.array([[1.0, np.inf]])), InvalidInputError, "contexts must be finite"),
        (lambda a: a.decide([[1.0, -1e13]]), InvalidInputError, "contexts must be of magnitude"),
        (lambda a: a.decide([[1.0], [1.0, 2.0]]), InvalidInputError, "contexts must be"),
        (lambda a: a.decide("no"), InvalidInputError, "contexts must be"),
        (lambda a: a.decide(TWO, key=""), InvalidInputError, "key must be"),
        (lambda a: a.decide(TWO, key=3), InvalidInputError, "key must be"),
        (lambda a: a.decide(TWO, key=new_id(1.0)), InvalidInputError, "key must be"),
        (lambda a: a.decide(TWO, active=1), InvalidInputError, "active must be"),
        (lambda a: a.feedback("k", np.nan), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", -np.inf), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", 1e13), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", "1"), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", True), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", None), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("k", 1.0, correction=1), InvalidInputError, "correction must be"),
        (lambda a: a.feedback("k", 1.0, version=-1), InvalidInputError, "version must be"),
        (lambda a: a.feedback("k", 1.0, event=3), InvalidInputError, "event must be"),
        (lambda a: a.feedback(1, 1.0), InvalidInputError, "id must be"),
        (lambda a: a.cancel(None), InvalidInputError, "id must be"),
        (lambda a: a.lookup(["k"]), InvalidInputError, "id must be"),
        (lambda a: a.cancel("other"), UnknownNameError, "id must be"),
        (lambda a: a.forget(before=0), InvalidInputError, "before must be"),
        (lambda a: a.forget(before=1.0), InvalidInputError, "before must be"),
    ],
)
def test_bad_input_changes_nothing(call: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    learner = learner_of(2)
    learner.decide(TWO, key="k")
    before = state(learner, tmp_path)
    with pytest.raises(error, match=f"^{message}"):
        call(learner)
    assert state(learner, tmp_path) == before


def test_the_largest_numbers_do_not_overflow() -> None:
    learner = learner_of(2, noise=1e-12, ridge=1e-12, scale=1e12)
    for number, reward in enumerate([1e12, -1e12, 1e12, 1e12]):
        learner.decide([[1e12, 1e12], [-1e12, 1e12], [1e-12, 0.0]], key=str(number))
        learner.feedback(str(number), reward)
    assert np.isfinite(learner.mean()).all()
    assert learner.decide(TWO).action in (0, 1)
