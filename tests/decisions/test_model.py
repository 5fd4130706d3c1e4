"""A model over a store: names, JSON, keys, rankings, shadow mode, early rewards, restarts, purging, many processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.decisions import (
    Activate,
    Cancel,
    Choice,
    ConflictError,
    Decide,
    ForgottenError,
    Mature,
    MemoryStore,
    Model,
    ModelSettings,
    Outcome,
    Reward,
    SQLiteStore,
    State,
    Status,
    StoreError,
    commit,
)
from belated.decisions import engine as engines
from belated.decisions import fold as folds
from belated.decisions.ids import new_id, time_of
from belated.decisions.store.postgres import PostgresStore
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError

TABLE: dict[str, Any] = {"actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "unknown"}}
CONTEXT = {"x": 0.3, "y": 1.0}


class Clock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def settings_of(**changes: Any) -> ModelSettings:
    return ModelSettings.from_table({**TABLE, **changes})


def model_of(store: Any = None, clock: Any = None, name: str = "ads", **changes: Any) -> Model:
    return Model(name, settings_of(**changes), MemoryStore() if store is None else store, clock=clock or Clock())


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
        choice.action, CONTEXT, ["a", "b", "c"], State.IN_FLIGHT
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
        with pytest.raises(ConflictError, match="key 'k' already has a decision"):
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
    with pytest.raises(InvalidInputError, match="each of actions must be of those on offer"):
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
    with pytest.raises(ConflictError, match="already is a decision with the id 'order 7'"):
        model.record(CONTEXT, "a", 1.0, id="order 7")
    with pytest.raises(InvalidInputError):
        model.record(CONTEXT, "a", float("nan"))
    assert model.summary()["decisions"] == 2


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
    assert other.feedback(early, 1.0).status is Status.UNKNOWN  # of another model


def test_parking_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.decisions.intake.MOST_PARKED", 5)
    model = model_of()
    statuses = [model.feedback(new_id(1_000.0), 1.0).status for _ in range(8)]
    assert statuses == [Status.PARKED] * 5 + [Status.UNKNOWN] * 3


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
    outcome = model.run([Reward(**{"id": choice.id, "reward": 1.0, **bad})])[0]
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
    results = model.run(batch)
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
    results = model.run(
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
    assert model.lookup(name).status is State.CANCELLED and model.verify() == []


class Failing(MemoryStore):
    broken = False

    def append(self, rows: Any) -> None:
        if self.broken:
            raise StoreError("no")
        super().append(rows)


def test_if_the_store_refuses_nothing_has_happened() -> None:
    store = Failing()
    model = model_of(store=store)
    choice = model.decide(CONTEXT)
    before = model.summary()
    store.broken = True
    for call in (
        lambda: model.decide(CONTEXT),
        lambda: model.feedback(choice.id, 1.0),
        lambda: model.cancel(choice.id),
    ):
        with pytest.raises(StoreError):
            call()
    assert model.summary() == before
    store.broken = False
    assert model.feedback(choice.id, 1.0).status is Status.ACCEPTED
    assert model.verify() == []


def test_several_models_share_a_commit() -> None:
    store = MemoryStore()
    one, two = model_of(store=store, name="one"), model_of(store=store, name="two")
    batches = [one.prepare([Decide(context=CONTEXT)] * 3), two.prepare([Decide(context=CONTEXT)] * 2)]
    commit(store, batches)
    assert [len(batch.results) for batch in batches] == [3, 2]
    assert (one.summary()["decisions"], two.summary()["decisions"]) == (3, 2)
    assert one.verify() == two.verify() == []
    assert two.feedback(one.lookup(batches[0].results[0].id).id, 1.0).status is Status.UNKNOWN


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


def test_windows_end_without_traffic_and_in_bounded_steps() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "mature", "seconds": 10.0})
    for _ in range(25):
        model.decide(CONTEXT)
        clock.now += 0.1
    clock.now += 7 * 86_400.0
    ended = [model.tick(limit=10) for _ in range(4)]
    assert ended == [10, 10, 5, 0] and model.in_flight == 0
    assert model.tick() == 0 and model.verify() == []
    for seconds, expected in ((9.999, 0), (0.001, 1)):
        if expected == 0:
            model.decide(CONTEXT)
        clock.now += seconds
        assert model.tick() == expected


def test_a_clock_that_runs_backwards_does_no_harm() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "mature", "seconds": 10.0})
    first = model.decide(CONTEXT)
    clock.now -= 500.0
    second = model.decide(CONTEXT)
    assert model.lookup(second.id).made == model.lookup(first.id).made
    clock.now += 509.0
    assert model.tick() == 0
    clock.now += 1.0
    assert model.tick() == 2 and model.verify() == []


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    address = request.getfixturevalue("postgres_address") if request.param == "postgres" else None
    opened: list[Any] = []

    def again() -> Any:
        while opened:
            opened.pop().close()
        opened.append(PostgresStore(address) if address else SQLiteStore(tmp_path / "d.db", durable=False))
        return opened[-1]

    request.addfinalizer(lambda: [each.close() for each in opened])
    return again


def play(model: Model, clock: Clock, n: int, seed: int) -> list[str]:
    rng, ids = np.random.default_rng(seed), []
    for _ in range(n):
        clock.now += float(rng.exponential(1.0))
        ids.append(model.decide({"x": float(rng.standard_normal()), "y": 1.0}, active=bool(rng.random() < 0.9)).id)
        name = ids[int(rng.integers(len(ids)))]
        draw = rng.random()
        if draw < 0.5:
            model.feedback(name, float(rng.integers(3)), event=str(rng.integers(2)), version=int(rng.integers(2)))
        elif draw < 0.6:
            model.cancel(name)
        elif draw < 0.7:
            model.activate(name)
    return ids


@pytest.mark.parametrize("silence", [{"kind": "unknown"}, {"kind": "mature", "seconds": 20.0}])
def test_a_restart_changes_nothing(
    reopen: Callable[[], Any], silence: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "SNAPSHOT_EVERY", 37)
    monkeypatch.setattr(folds, "CACHED", 20)  # most histories have to be read again
    clock, other = Clock(), Clock()
    whole = model_of(clock=other, silence=silence, forgetting={"decisions": 40})
    play(whole, other, 120, seed=1)
    model = model_of(store=reopen(), clock=clock, silence=silence, forgetting={"decisions": 40})
    play(model, clock, 120, seed=1)
    before = model.summary()
    model = Model("ads", None, reopen(), clock=clock)
    assert {k: v for k, v in model.summary().items() if k != "outcomes"} == {
        k: v for k, v in before.items() if k != "outcomes"
    }
    assert model.verify() == []
    assert model.store.snapshots("ads")
    if not model.store.shared:  # there the random numbers belong to the ids
        for name, weights in whole.weights().items():
            np.testing.assert_array_equal(model.weights()[name], weights)
    play(model, clock, 30, seed=2)
    assert model.verify() == []


def test_a_damaged_snapshot_is_passed_over(reopen: Callable[[], Any]) -> None:
    clock = Clock()
    model = model_of(store=reopen(), clock=clock)
    play(model, clock, 20, seed=3)
    model.snapshot()
    row = model.store.snapshots("ads")[0]
    model.store.save_snapshot(row._replace(seq=row.seq + 0, header=row.header.replace('"made": 20', '"made": 21')))
    again = Model("ads", None, reopen(), clock=clock)
    assert again.summary()["decisions"] == 20 and again.verify() == []
    fold = again._new_fold()
    with pytest.raises(DamagedFileError, match="cannot be used"):
        fold.restore(row._replace(arrays=row.arrays[:-8]))


def test_purging_keeps_what_was_learned(reopen: Callable[[], Any]) -> None:
    clock = Clock()
    model = model_of(store=reopen(), clock=clock, silence={"kind": "mature", "seconds": 20.0})
    ids = play(model, clock, 100, seed=4)
    weights, horizon = model.weights(), model.lookup(ids[50]).made
    gone = model.purge(horizon)
    assert 0 < gone <= 50
    model = Model("ads", None, reopen(), clock=clock)
    assert model.verify() == []
    for name, each in weights.items():
        np.testing.assert_array_equal(model.weights()[name], each)
    outcome = model.feedback(ids[0], 1.0)
    assert (outcome.status, outcome.forgotten) == (Status.UNKNOWN, True)
    with pytest.raises(ForgottenError, match="which was forgotten"):
        model.lookup(ids[0])
    with pytest.raises(UnknownNameError, match="which never was"):
        model.lookup(new_id(clock.now))
    assert model.lookup(ids[60]).id == ids[60]
    play(model, clock, 20, seed=5)
    assert model.verify() == []
    assert sum(model.summary()["states"].values()) == 120 - gone
    with pytest.raises(InvalidInputError):
        model.purge(clock.now + 100.0)


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
        with pytest.raises(InvalidInputError, match="must stay as it is while a model lives"):
            Model("ads", settings_of(**changes), model.store)
    assert Model("ads", None, model.store).settings_version == 2
    assert model.verify() == []
    with pytest.raises(UnknownNameError, match=r"\['ads'\], got 'adds'"):
        Model("adds", None, model.store)


def test_threads_do_not_get_in_each_others_way() -> None:
    model = model_of(clock=None)
    ids: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(150):
            choice = model.decide({"x": float(rng.standard_normal()), "y": 0.0})
            ids.append(choice.id)
            model.feedback(ids[int(rng.integers(len(ids)))], 1.0)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 600
    assert sorted(model.lookup(name).number for name in ids) == list(range(1, 601))
    assert model.verify() == []


def test_two_processes_on_one_server_agree(postgres_address: str) -> None:
    clock = Clock()
    stores = [PostgresStore(postgres_address) for _ in range(2)]
    one = model_of(store=stores[0], clock=clock, silence={"kind": "mature", "seconds": 5.0})
    two = Model("ads", None, stores[1], clock=clock)
    ids = []
    for i in range(40):
        clock.now += 1.0
        ids.append((one, two)[i % 2].decide(CONTEXT, key=f"k{i // 4}").id)
        assert (two, one)[i % 2].feedback(ids[-1], 1.0, event=f"e{i // 2}").status in (
            Status.ACCEPTED,
            Status.DUPLICATE,
        )
    assert len(set(ids)) == 10
    two.add_action("d")
    two.decide(CONTEXT, actions=["d"])
    for model in (one, two):
        model.catch_up()
        assert model.verify() == []
    assert one._fold.differences(two._fold) == [] and one.settings.names[-1] == "d"
    for store in stores:
        store.close()


WORKER = """
import sys
from belated.decisions import Model
from belated.decisions.store.postgres import PostgresStore
model = Model("ads", None, PostgresStore(sys.argv[1]))
for i in range(40):
    model.decide({"x": 0.1, "y": 1.0}, key=f"{i}")
    for name in sys.argv[2].split(","):
        model.feedback(name, 1.0, event=f"{i}")
assert model.verify() == []
"""


@pytest.mark.slow
def test_processes_that_do_the_same_count_it_once(postgres_address: str) -> None:
    store = PostgresStore(postgres_address)
    model = Model("ads", settings_of(), store)
    ids = [choice.id for choice in model.decide_many([CONTEXT] * 3)]
    arguments = [sys.executable, "-c", WORKER, postgres_address, ",".join(ids)]
    workers = [subprocess.Popen(arguments) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    model.catch_up()
    assert model.summary()["decisions"] >= 43 and len(list(model.log())) == 43
    assert [model.lookup(name).reward for name in ids] == [40.0] * 3
    assert model.verify() == []
    store.close()
