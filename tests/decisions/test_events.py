"""What becomes of events and requests: early, repeated, bad, several in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, Clock, model_of

from belated.decisions import (
    Activate,
    Cancel,
    Choice,
    ConflictError,
    Decide,
    DecisionState,
    Model,
    Reward,
    Status,
)
from belated.decisions._ids import new_id
from belated.errors import InvalidInputError


def test_an_early_reward_waits_for_its_decision() -> None:
    clock = Clock(1_700_000_000.0)
    model = model_of(clock=clock)
    early, old = new_id(clock.now - 5.0), new_id(clock.now - 7200.0)
    assert model.feedback(early, 1.0).status is Status.PARKED
    assert model.feedback(early, 1.0).status is Status.DUPLICATE
    assert model.feedback(early, 2.0).status is Status.CONFLICT
    assert model.feedback(early, 2.0, event="e").status is Status.PARKED
    for name in (old, new_id(clock.now + 500.0), "never", early[:-1]):
        assert model.feedback(name, 1.0).status is Status.UNKNOWN
    assert model.summary()["parked"] == 2
    again = Model("ads", None, model.store, clock=clock)
    again.record(CONTEXT, "a", id=early)
    assert (again.lookup(early).reward, again.summary()["parked"]) == (3.0, 0)
    assert again.verify() == []
    other = model_of(store=model.store, clock=clock, name="other")
    refused = other.feedback(early, 1.0)
    assert (refused.status, refused.detail) == (Status.UNKNOWN, "there is no such decision of this model")


def test_parking_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.decisions._core.MOST_PARKED", 5)
    model = model_of()
    statuses = [model.feedback(new_id(1_000.0), 1.0).status for _ in range(8)]
    assert statuses == [Status.PARKED] * 5 + [Status.UNKNOWN] * 3


def test_what_is_parked_for_long_keeps_nobody_from_parking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.decisions._core.MOST_PARKED", 5)
    clock = Clock(1_700_000_000.0)
    model = model_of(clock=clock)
    made_up = [new_id(clock.now) for _ in range(5)]
    outcomes = model.feedback_many([Reward(name, 1.0) for name in [*made_up, new_id(clock.now)]])
    assert [each.status for each in outcomes] == [Status.PARKED] * 5 + [Status.UNKNOWN]
    assert "5 rewards are already parked" in outcomes[-1].detail
    clock.now += 3_500.0
    assert model.feedback(new_id(clock.now), 1.0).status is Status.UNKNOWN
    clock.now += 500.0
    early = new_id(clock.now)
    assert model.feedback(early, 1.0).status is Status.PARKED
    assert [model.summary()[name] for name in ("parked", "lapsed")] == [1, 5]
    model.snapshot()
    again = Model("ads", None, model.store, clock=clock)
    again.record(CONTEXT, "a", id=early)
    assert again.lookup(early).reward == 1.0
    again.record(CONTEXT, "a", id=made_up[0])  # it appears all the same
    assert again.lookup(made_up[0]).reward == 1.0
    assert [again.summary()[name] for name in ("parked", "lapsed")] == [0, 4]
    assert again.verify() == []


def test_one_unknown_decision_cannot_take_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.decisions._core.MOST_OF_ONE", 3)
    model = model_of()
    name = new_id(1_000.0)
    outcomes = [model.feedback(name, 1.0, event=str(each)) for each in range(5)]
    assert [each.status for each in outcomes] == [Status.PARKED] * 3 + [Status.UNKNOWN] * 2
    assert "3 rewards of it are already parked" in outcomes[-1].detail
    assert model.feedback(name, 1.0, event="0").status is Status.DUPLICATE
    assert model.feedback(new_id(1_000.0), 1.0).status is Status.PARKED


def test_a_reward_at_the_very_end_of_the_window_is_in_time() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "unknown", "seconds": 60})
    choices = [model.decide(CONTEXT) for _ in range(2)]
    clock.now += 60.0
    assert model.feedback(choices[0].id, 1.0).status is Status.ACCEPTED
    clock.now += 1e-3
    assert model.feedback(choices[1].id, 1.0).status is Status.LATE


@pytest.mark.parametrize(
    "bad",
    [
        {"reward": float("nan")}, {"reward": float("inf")}, {"reward": 1e13}, {"reward": "1"}, {"reward": True},
        {"reward": None}, {"reward": [1.0]}, {"reward": 10**400}, {"id": ""}, {"id": 3}, {"id": None},
        {"id": "x" * 300},
        {"id": "a\0"}, {"event": 3}, {"event": "x" * 300}, {"event": None}, {"version": -1}, {"version": 1.5},
        {"version": "1"}, {"version": True}, {"correction": 1}, {"correction": True, "version": 2}, {"observed": -1.0},
        {"observed": float("nan")}, {"observed": "now"}, {"slot": -1}, {"slot": 0.5}, {"slot": 1}, {"id": "\ud800"},
    ],
)  # fmt: skip
def test_bad_events_are_invalid_and_change_nothing(bad: dict[str, Any]) -> None:
    model = model_of()
    choice = model.decide(CONTEXT)
    (outcome,) = model.feedback_many([Reward(**{"id": choice.id, "reward": 1.0, **bad})])
    assert outcome.status is Status.INVALID and next(iter(bad)) in outcome.detail
    assert model.lookup(choice.id).history == () and model.counts[Status.INVALID] == 1


def test_numbers_that_look_odd_are_fine() -> None:
    model = model_of()
    odd: list[Any] = [-0.0, 5e-324, 1e12, -1e12, 3, np.float64(0.5), np.int64(2)]
    for reward in odd:
        choice = model.decide({"x": -0.0, "y": 5e-324})
        assert model.feedback(choice.id, reward).reward == reward
    assert np.isfinite(model.decide({"x": 1e12, "y": -1e12}).probability or np.nan)


@pytest.mark.parametrize(
    "bad",
    [
        {"context": {"x": 1.0}}, {"context": None}, {"actions": []}, {"actions": ["a", "a"]}, {"actions": ["z"]},
        {"actions": "a"}, {"actions": 3}, {"actions": {"a": {"u": 1}}}, {"key": ""}, {"key": 3}, {"active": 1},
        {"size": 0}, {"size": 1.5}, {"size": True}, {"chosen": 3}, {"chosen": []}, {"chosen": ["a", "a"]}, {"id": 5},
        {"context": {"x": 1.0, "y": float("nan")}, "key": "k"}, {"context": {"x": {1, 2}, "y": 1.0}, "key": "k"},
    ],
)  # fmt: skip
def test_bad_requests_are_refused_and_change_nothing(bad: dict[str, Any]) -> None:
    model = model_of()
    with pytest.raises(InvalidInputError):
        model.decide(**{"context": CONTEXT, **bad})
    assert model.summary()["decisions"] == 0 and list(model.store.log("ads")) == []


def test_one_bad_request_spoils_no_batch_but_its_own() -> None:
    model = model_of()
    batch: list[Any] = [
        Decide(context=CONTEXT),
        Decide(context={}),
        Reward(id="never", reward=1.0),
        Cancel(id="never"),
        Activate(id=""),
    ]
    results: list[Any] = list(model.run(batch))
    assert isinstance(results[0], Choice) and isinstance(results[1], InvalidInputError)
    assert [each.status for each in results[2:]] == [Status.UNKNOWN, Status.UNKNOWN, Status.INVALID]
    with pytest.raises(InvalidInputError):
        model.decide_many([CONTEXT, {}])
    assert model.summary()["decisions"] == 1
    assert len(model.decide_many([CONTEXT] * 50)) == 50
    assert model.decide_many([]) == [] and model.run([]) == []
    with pytest.raises(InvalidInputError, match="each operation"):
        model.run(["decide"])  # type: ignore[list-item]


def test_operations_of_a_batch_see_one_another() -> None:
    model = model_of()
    name = new_id(1_000.0)
    results: list[Any] = model.run(
        [
            Decide(context=CONTEXT, chosen="a", id=name), Reward(id=name, reward=1.0), Reward(id=name, reward=1.0),
            Reward(id=name, reward=2.0), Reward(id=name, reward=2.0, event="e"), Cancel(id=name), Cancel(id=name),
            Reward(id=name, reward=3.0, event="f"), Decide(context=CONTEXT, chosen="a", id=name),
        ]
    )  # fmt: skip
    assert [each.status.value for each in results[1:8]] == [
        "accepted", "duplicate", "conflict", "accepted", "accepted", "duplicate", "late"
    ]  # fmt: skip
    assert isinstance(results[8], ConflictError)
    assert model.lookup(name).status is DecisionState.CANCELLED and model.verify() == []


def test_aggregates_of_only_negative_rewards() -> None:
    for aggregate, expected in (
        ("max", -1.0),
        ("min", -3.0),
        ("sum", -6.0),
        ("mean", -2.0),
        ("first", -2.0),
        ("last", -3.0),
    ):
        model = model_of(aggregate=aggregate)
        choice = model.decide(CONTEXT)
        for event, reward, observed in (("b", -1.0, 5.0), ("c", -3.0, 6.0), ("a", -2.0, 4.0)):
            model.feedback(choice.id, reward, event=event, observed=observed)
        assert model.lookup(choice.id).learned == expected


def test_an_old_correction_that_comes_again_is_harmless() -> None:
    model = model_of()
    name = model.decide(CONTEXT).id
    statuses = [
        model.feedback(name, reward, version=version).status.value
        for reward, version in ((1.0, 0), (3.0, 2), (2.0, 1), (1.0, 0), (3.0, 2), (9.0, 2))
    ]
    assert statuses == ["accepted", "accepted", "duplicate", "duplicate", "duplicate", "conflict"]
    assert model.lookup(name).learned == 3.0


def test_a_cancelled_decision_cannot_be_activated() -> None:
    model = model_of()
    choice = model.decide(CONTEXT, active=False)
    assert model.cancel(choice.id).status is Status.ACCEPTED
    assert model.activate(choice.id).status is Status.CONFLICT
    assert model.cancel(choice.id).status is Status.DUPLICATE
