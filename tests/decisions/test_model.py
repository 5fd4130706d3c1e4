"""A model over a store: names, JSON, keys, rankings, shadow mode, past decisions, settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, Clock, model_of, settings_of

from belated.decisions import (
    Choice,
    ConflictError,
    Decide,
    DecisionState,
    Mature,
    MemoryStore,
    Model,
    ModelSettings,
    Outcome,
    Status,
)
from belated.decisions._ids import new_id, time_of
from belated.errors import InvalidInputError, UnknownNameError


def test_ids_are_unique_and_sorted_by_time() -> None:
    ids = [new_id(1_700_000_000.0 + i / 1000) for i in range(5000)]
    assert ids == sorted(ids) and len(set(ids)) == 5000
    assert len({new_id(5.0) for _ in range(5000)}) == 5000
    assert [len(part) for part in ids[0].split("-")] == [8, 4, 4, 4, 12]
    assert {each[14] for each in ids} == {"7"} and {each[19] for each in ids} <= set("89ab")
    assert time_of(ids[7]) == pytest.approx(1_700_000_000.007, abs=1e-3)
    for other in ("", "x", ids[0].upper(), ids[0][:-1], ids[0] + "0", "g" + ids[0][1:], "'; DROP TABLE decision; --"):
        assert time_of(other) is None or other == other.lower() == ids[0]


def test_a_choice_says_what_was_chosen() -> None:
    model = model_of()
    choice = model.decide(CONTEXT)
    assert isinstance(choice, Choice)
    assert choice.action in ("a", "b", "c") and choice.ranking == (choice.action,) and choice.model_version == 0
    entry = model.lookup(choice.id)
    assert (entry.action, entry.context, entry.actions, entry.status) == (
        choice.action, CONTEXT, ["a", "b", "c"], DecisionState.IN_FLIGHT
    )  # fmt: skip
    assert entry.probabilities is not None and sum(entry.probabilities) == pytest.approx(1.0)
    assert choice.probability == entry.probabilities[entry.actions.index(choice.action)] > 0
    assert model.feedback(choice.id, 1.0) == Outcome(Status.ACCEPTED, choice.id, "", 1.0)
    assert model.decide(CONTEXT).model_version == 1
    assert model.in_flight == 1


def test_the_same_seed_and_log_draw_the_same() -> None:
    def play(name: str, seed: int) -> list[Any]:
        model, seen = model_of(name=name, seed=seed), []
        for i in range(60):
            choice = model.decide({"x": float(i % 3), "y": 1.0})
            seen.append((choice.action, choice.probability))
            model.feedback(choice.id, float(choice.action == "b"))
        return seen

    assert play("ads", 1) == play("ads", 1)
    assert play("ads", 1) != play("ads", 2)
    assert play("ads", 1) != play("other", 1)


def test_it_learns_which_action_is_best() -> None:
    model = model_of(floor=0.0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = float(rng.choice([-1.0, 1.0]))
        choice = model.decide({"x": x, "y": 0.0})
        model.feedback(choice.id, float({"a": x > 0, "b": x < 0, "c": False}[choice.action]))
    for x, best in ((1.0, 0), (-1.0, 1)):
        assert model.probabilities({"x": x, "y": 0.0})[best] > 0.9


def test_a_key_makes_a_decision_once() -> None:
    model = model_of()
    choice = model.decide(CONTEXT, key="k")
    assert model.decide({"y": 1.0, "x": 0.3}, key="k") == choice
    for other in ({"x": 0.3, "y": 2.0}, {"x": 0.3, "y": 1.5}):
        with pytest.raises(ConflictError, match="key 'k' already belongs to a decision"):
            model.decide(other, key="k")
    with pytest.raises(ConflictError):
        model.decide(CONTEXT, key="k", actions=["a"])
    model.retire_action("c")
    assert model.decide(CONTEXT, key="k") == choice  # whatever has changed since
    assert model_of(store=model.store, name="other").decide(CONTEXT, key="k").id != choice.id
    results = model.run([Decide(context=CONTEXT, key="l"), Decide(context=CONTEXT, key="l")])
    assert results[0] == results[1] and model.summary()["decisions"] == 2


def test_sets_of_actions_change_from_call_to_call() -> None:
    model = model_of()
    assert {model.decide(CONTEXT, actions=["b"]).action for _ in range(3)} == {"b"}
    assert model.decide(CONTEXT, actions=["b"]).probability == 1.0
    inflight = model.decide(CONTEXT, actions=["c"])
    model.retire_action("c")
    model.add_action("d")
    assert {model.decide(CONTEXT).action for _ in range(60)} == {"a", "b", "d"}
    assert model.feedback(inflight.id, 5.0).status is Status.ACCEPTED
    assert abs(model.weights()["c"]).sum() > 0  # a retired action still learns
    with pytest.raises(InvalidInputError, match="each of actions must be one of those on offer"):
        model.decide(CONTEXT, actions=["c"])
    again = Model("ads", None, model.store)
    assert again.settings.names == ("a", "b", "d") and again.settings_version == 3
    assert again.verify() == []


def test_actions_may_come_with_the_request() -> None:
    table = {"features": ["x"], "action_features": ["u"], "silence": {"kind": "unknown"}, "floor": 0.0}
    model = Model("items", ModelSettings.from_table(table), MemoryStore())
    for i in range(200):
        offer = {f"item-{i}-{j}": {"u": float(j)} for j in range(4)}
        choice = model.decide({"x": 1.0}, actions=offer)
        model.feedback(choice.id, -abs(offer[choice.action]["u"] - 3.0))
    assert model.probabilities({"x": 1.0}, {"new": {"u": 3.0}, "old": {"u": 0.0}})[0] > 0.9
    wrong: list[Any] = [None, [], {}, ["a"], {"a": {}}, "abc", {"a": {"u": "1"}}]
    for bad in wrong:
        with pytest.raises(InvalidInputError):
            model.decide({"x": 1.0}, actions=bad)
    open_set = Model(
        "open", ModelSettings.from_table({"features": ["x"], "silence": {"kind": "unknown"}}), MemoryStore()
    )
    assert open_set.decide({"x": 1.0}, actions=["p", "q"]).action in ("p", "q")


def test_a_ranking_has_one_reward_for_the_chosen_slot() -> None:
    model = model_of(silence={"kind": "mature", "seconds": 10.0, "default": 0.25}, noise=1.0)
    choice = model.decide(CONTEXT, size=3)
    assert sorted(choice.ranking) == ["a", "b", "c"] and choice.action == choice.ranking[0]
    clock: Any = model._clock
    clock.now += 11
    model.tick()
    features = np.array([1.0, 0.3, 1.0])
    expected = 0.25 * features / (1 + features @ features)
    np.testing.assert_allclose(model.weights()[choice.ranking[0]], expected)  # nobody chose: the first counts as a no
    assert model.feedback(choice.id, 1.0, slot=2).status is Status.ACCEPTED
    weights = model.weights()
    np.testing.assert_allclose(weights[choice.ranking[0]], 0.0, atol=1e-15)
    np.testing.assert_allclose(weights[choice.ranking[2]], 4 * expected)
    assert model.feedback(choice.id, 1.0, slot=1, event="e").status is Status.CONFLICT
    assert model.feedback(choice.id, 1.0, slot=3, event="e").status is Status.INVALID
    assert model.lookup(choice.id).slot == 2
    assert model.verify() == []
    with pytest.raises(InvalidInputError, match="size must be"):
        model.decide(CONTEXT, size=4)


def test_the_first_of_a_ranking_is_drawn_as_a_single_choice_would_be() -> None:
    single, ranked = model_of(seed=3), model_of(seed=3)
    for _ in range(30):
        assert single.decide(CONTEXT)[1:3] == ranked.decide(CONTEXT, size=2)[1:3]


def test_shadow_mode_learns_the_callers_choice_and_compares_ours() -> None:
    model = model_of()
    for _ in range(50):
        choice = model.decide(CONTEXT, chosen="b", probability=0.5)
        assert (choice.action, choice.probability) == ("b", 0.5) and choice.suggestion in ("a", "b", "c")
        model.feedback(choice.id, 1.0)
    assert model.weights()["b"].sum() > 0.9 and model.weights()["a"].sum() == 0
    assert model.decide(CONTEXT, chosen="a").probability is None
    for bad in ({"chosen": "z"}, {"probability": 0.5}, {"chosen": "a", "probability": 0.0}, {"chosen": "a", "size": 2}):
        with pytest.raises(InvalidInputError):
            model.decide(CONTEXT, **bad)


def test_past_decisions_can_be_recorded() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "mature", "seconds": 100.0}, forgetting={"seconds": 50.0}, noise=1.0)
    model.record(CONTEXT, "a", 1.0, made=850.0, id="order 7", probability=0.2)
    entry = model.lookup("order 7")
    assert (entry.made, entry.due, entry.learned, entry.probability) == (850.0, 950.0, 1.0, 0.2)
    x = np.array([1.0, 0.3, 1.0])
    weight = 2.0**-3.0  # three half-lives ago
    np.testing.assert_allclose(model.weights()["a"], weight * x / (1 + weight * x @ x), rtol=1e-12)
    assert model.record(CONTEXT, "a", made=999.0).id and model.in_flight == 1
    for bad in ({"made": 2000.0}, {"made": -1.0}, {"made": float("nan")}, {"id": ""}):
        with pytest.raises(InvalidInputError):
            model.record(CONTEXT, "a", 1.0, **bad)
    with pytest.raises(ConflictError, match="a decision with the id 'order 7' already exists"):
        model.record(CONTEXT, "a", 1.0, id="order 7")
    with pytest.raises(InvalidInputError):
        model.record(CONTEXT, "a", float("nan"))
    assert model.summary()["decisions"] == 2


def test_settings_are_versioned_and_some_cannot_change() -> None:
    model = model_of(silence={"kind": "default_after", "seconds": 10.0, "reward": -1.0})
    old = model.decide(CONTEXT)
    assert model.change(model.settings) == 1
    assert model.change(replace(model.settings, silence=Mature(5.0, 0.5), noise=0.5)) == 2
    new = model.decide(CONTEXT)
    clock: Any = model._clock
    clock.now += 20.0
    model.tick()
    assert (model.lookup(old.id).learned, model.lookup(new.id).learned) == (-1.0, 0.5)  # each by its own rules
    for changes in ({"forgetting": {"decisions": 5}}, {"features": ["x"]}, {"seed": 4}):
        with pytest.raises(InvalidInputError, match="is fixed for the life of a model"):
            Model("ads", settings_of(**changes), model.store)
    assert Model("ads", None, model.store).settings_version == 2
    assert model.verify() == []
    with pytest.raises(UnknownNameError, match=r"\['ads'\], got 'adds'"):
        Model("adds", None, model.store)
