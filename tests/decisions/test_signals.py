"""Signals that announce a reward: what they say is learned and corrected exactly; what they do not say costs little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import by_age_oracle
import numpy as np
import pytest
from decision_learners import TWO, learner_of, wait
from decision_models import CONTEXT, Clock, model_of, settings_of

from belated.decisions import ByAge, DecisionLearner, MemoryStore, Model, ModelSettings, SQLiteStore, Status
from belated.decisions._aged import AgedPosterior
from belated.decisions._copying import migrate
from belated.decisions._snapshot import differences
from belated.decisions._transfer import export_log, import_log
from belated.errors import InvalidInputError

SILENCE = {"kind": "by_age", "seconds": 16, "ages": 4}  # ages end after 1, 4, 9 and 16 seconds


def lessons(model: Any, name: str) -> tuple[Any, Any]:
    engine = model._engine if isinstance(model, DecisionLearner) else model
    tracked = engine.state.find(name)
    assert tracked is not None
    assert tracked.tally is not None
    return tracked.tally.parts, tracked.tally.before


def test_what_is_learned_of_signals_by_hand() -> None:
    """A click after 2 seconds and a return after 5; the click is corrected after 10, and 3 are earned after 12."""
    learner = learner_of(silence=ByAge(16.0, ages=4), signals=["click", "return"])
    made = learner.decide(TWO)
    wait(learner, 2.0)
    learner.signal(made.id, "click")
    wait(learner, 3.0)
    learner.signal(made.id, "return", 0.5)
    wait(learner, 5.0)
    learner.signal(made.id, "click", 0.25, correction=True)
    wait(learner, 2.0)
    learner.feedback(made.id, 3.0)
    wait(learner, 10.0)
    learner.tick()
    parts, before = lessons(learner, made.id)
    # what came, and what click and return changed by; at the last age nothing follows
    assert parts == (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5, 3.0)
    assert before == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.5))
    entry = learner.lookup(made.id)
    assert (entry.reward, entry.learned, entry.parts) == (3.0, 3.0, (0.0, 0.0, 0.0, 3.0))
    assert [event.kind for event in entry.history] == ["signal"] * 3 + ["reward"]
    learner.cancel(made.id)
    fresh = learner_of(silence=ByAge(16.0, ages=4), signals=["click", "return"])
    sums = [each._engine.state.posterior.state() for each in (learner, fresh)]
    assert all(sums[0][name].tobytes() == sums[1][name].tobytes() for name in sums[0])


def test_a_signal_is_no_reward() -> None:
    model = model_of(silence=SILENCE, signals=["click"])
    choice = model.decide(CONTEXT)
    outcome = model.signal(choice.id, "click")
    assert (outcome.status, outcome.reward, model.lookup(choice.id).status) == (Status.ACCEPTED, None, "in flight")
    assert model.signal(choice.id, "click").status is Status.DUPLICATE
    assert model.signal(choice.id, "click", 2.0).status is Status.CONFLICT
    assert model.signal(choice.id, "click", 2.0, correction=True).status is Status.ACCEPTED
    assert model.signal(choice.id, "look").status is Status.INVALID
    assert "click, got 'look'" in model.signal(choice.id, "look").detail
    assert model.signal("nobody", "click").status is Status.UNKNOWN
    assert model.signal(choice.id, "click", float("nan"), version=5).status is Status.INVALID
    assert model.feedback(choice.id, 1.0, event="click").status is Status.ACCEPTED  # another kind, another name


@pytest.mark.parametrize(
    "changes",
    [
        {"signals": ["a"], "silence": {"kind": "mature", "seconds": 5}},
        {"signals": ["a"], "silence": {"kind": "by_age", "seconds": 5, "ages": 1}},
        {"signals": ["a", "a"]}, {"signals": "a"}, {"signals": [""]}, {"signals": [str(i) for i in range(9)]},
    ],
)  # fmt: skip
def test_signals_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="signals"):
        settings_of(**{"silence": SILENCE, **changes})


def history(model: Model, clock: Clock, n: int, seed: int) -> None:
    """Let all kinds of things happen; yeses follow clicks."""
    rng = np.random.default_rng(seed)
    ids: list[str] = []
    for i in range(n):
        clock.now += float(rng.exponential(2.0))
        choice = model.decide({"x": float(rng.standard_normal()), "y": 1.0})
        ids.append(choice.id)
        for name in rng.choice(ids[-12:], 2):
            what = rng.random()
            if what < 0.3:
                model.signal(name, "click", float(rng.integers(0, 3)), correction=bool(rng.random() < 0.5))
            elif what < 0.4:
                model.signal(name, "return")
            elif what < 0.7:
                model.feedback(name, float(rng.integers(-2, 5)), event=str(i % 3), correction=bool(rng.random() < 0.5))
            elif what < 0.75:
                model.cancel(name)
    clock.now += 5.0
    model.tick()


def test_the_weights_are_those_of_regressions_with_signals(tmp_path: Path) -> None:
    clock, store = Clock(), SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock, silence={**SILENCE, "seconds": 30}, signals=["click", "return"])
    history(model, clock, 200, seed=5)
    for name, weights in by_age_oracle.weights(model).items():
        np.testing.assert_allclose(model.weights()[name], weights, rtol=1e-7, atol=1e-9)
    assert model.verify() == []
    model.snapshot()
    again = Model("ads", None, store, clock=clock)
    assert differences(model.state, again.state) == []
    history(again, clock, 60, seed=6)
    again.erase([entry.id for entry in again.log()][:30], keep_learned=False)
    assert again.verify() == []
    for name, weights in by_age_oracle.weights(again).items():
        np.testing.assert_allclose(again.weights()[name], weights, rtol=1e-7, atol=1e-9)
    assert sum(again.beliefs()["a"].means) != 0.0
    store.close()


def test_with_all_windows_over_signals_change_nothing() -> None:
    """Projections compose: the mean is that of the rewards alone, but for the prior."""
    found = []
    for signals in ([], ["click", "return"]):
        clock = Clock()
        model = model_of(clock=clock, silence=SILENCE, signals=signals, ridge=1e-9, actions=["a"], features=["x", "y"])
        rng = np.random.default_rng(1)
        for _ in range(60):
            clock.now += 1.0
            name = model.decide({"x": float(rng.standard_normal()), "y": float(rng.standard_normal())}).id
            click, late = float(rng.random() < 0.5), rng.random()
            if signals:
                model.signal(name, "click", click)
                model.signal(name, "return", late)
            clock.now += 3.0
            model.feedback(name, click + late + float(rng.standard_normal()))
        clock.now += 50.0
        model.tick()
        found.append(model.weights()["a"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def announced(seed: int, n: int, silence: Any, signals: list[str], useless: bool = False) -> Model:
    """Half of the clicks become yeses, at the end of the window; the actions differ in clicks alone."""
    clock, rng = Clock(0.0), np.random.default_rng(seed)
    settings = ModelSettings(actions={"a": {}, "b": {}}, silence=silence, floor=1.0, signals=tuple(signals))
    model = Model("m", settings, MemoryStore(), clock=clock)
    late: list[tuple[float, str]] = []
    for _ in range(n):
        clock.now += 1.0
        while late and late[0][0] <= clock.now:
            model.feedback(late.pop(0)[1], 1.0)
        made = model.decide({})
        click = rng.random() < (0.5 if made.action == "a" else 0.2)
        told = rng.random() < 0.5 if useless else click
        if signals and told:
            model.signal(made.id, "click")
        if click and rng.random() < 0.5:
            late.append((clock.now + 900.0, made.id))
    model.tick()
    return model


@pytest.mark.slow
def test_a_signal_narrows_what_is_known_of_decisions_in_flight_and_says_what_it_is_worth() -> None:
    """With 2000 decisions and a window of 1000, of half it is known whether they are a yes, of all whether a click."""
    errors: dict[str, list[float]] = {"with": [], "without": []}
    worths, useless = [], []
    for seed in range(8):
        for name, signals in (("with", ["click"]), ("without", [])):
            model = announced(seed, 2000, ByAge(1000.0), signals)
            weights = model.weights()
            errors[name] += [float(weights["a"][0]) - 0.25, float(weights["b"][0]) - 0.10]
            worths.append(model.worth().get("click", 0.0))
        useless.append(announced(seed, 600, ByAge(200.0), ["click"], useless=True).worth()["click"])
    spread = {name: float(np.sqrt(np.mean(np.square(each)))) for name, each in errors.items()}
    assert abs(np.mean(errors["with"])) < 3 * spread["with"] / np.sqrt(16)  # no bias
    assert spread["with"] < spread["without"]
    # the variance of a yes given the action is .1875 and .09, of which a click decides .0625 and .04
    assert 0.25 < np.mean(worths[::2]) < 0.5
    assert np.mean(useless) < 0.02


def test_a_signal_is_worth_something_to_an_action_that_is_new() -> None:
    """What a click means is learned from all actions."""
    clock = Clock(0.0)
    settings = ModelSettings(actions={"a": {}, "new": {}}, silence=ByAge(100.0), signals=("click",))
    model = Model("m", settings, MemoryStore(), clock=clock)
    for i in range(300):
        clock.now += 1.0
        made = model.decide({}, actions=["a"])
        if i % 2:
            model.signal(made.id, "click")
            clock.now += 90.0
            model.feedback(made.id, 1.0)
    clock.now += 200.0
    for _ in range(20):
        model.signal(model.decide({}, actions=["new"]).id, "click")
    clock.now += 5.0  # the first age is over
    model.tick()
    assert model.weights()["new"][0] > 0.8


def test_signals_go_out_and_come_in_and_can_be_had_later(tmp_path: Path) -> None:
    clock, store = Clock(), SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock, silence=SILENCE, signals=["click", "return"])
    history(model, clock, 60, seed=2)
    export_log(model, tmp_path / "log.parquet")
    other = model_of(clock=clock, silence=SILENCE, signals=["click", "return"])
    import_log(other, tmp_path / "log.parquet")
    for one, two in zip(model.log(), other.log(), strict=True):
        assert lessons(model, one.id) == lessons(other, two.id)
    before = {name: each.copy() for name, each in model.weights().items()}
    few = {"ads": settings_of(silence=SILENCE, signals=["click"])}
    store.close()
    migrate(str(tmp_path / "d.db"), str(tmp_path / "few.db"), few)
    migrate(
        str(tmp_path / "few.db"),
        str(tmp_path / "again.db"),
        {"ads": settings_of(silence=SILENCE, signals=["click", "return"])},
    )
    last = SQLiteStore(tmp_path / "again.db")
    found = Model("ads", None, last, clock=clock)
    found.tick()
    for name, weights in before.items():
        np.testing.assert_allclose(found.weights()[name], weights, rtol=1e-9)
    assert found.verify() == []
    last.close()


def test_saved_and_loaded_it_knows_the_same(tmp_path: Path) -> None:
    learner = learner_of(silence=ByAge(50.0), noise="auto", signals=["click"])
    rng = np.random.default_rng(0)
    for i in range(80):
        wait(learner, 1.0)
        made = learner.decide(rng.standard_normal((3, 2)), key=str(i))
        if i % 3:
            learner.signal(made.id, "click")
        if i % 5 == 1:
            learner.feedback(made.id, 1.0)
    learner.save(tmp_path / "learner.npz")
    again = DecisionLearner.load(tmp_path / "learner.npz", clock=learner._engine._clock)
    np.testing.assert_array_equal(again.mean(), learner.mean())
    contexts = rng.standard_normal((3, 2))
    assert again.decide(contexts, key="next").probability == learner.decide(contexts, key="next").probability


def test_a_signal_that_is_never_sent_changes_nothing() -> None:
    posterior = AgedPosterior(3, 2, signals=2, scale=1.0, noise=None, ridge=1e-6, blocks=1)
    plain = AgedPosterior(3, 2, scale=1.0, noise=None, ridge=1e-6, blocks=1)
    rng = np.random.default_rng(3)
    for age in range(3):
        for _ in range(100 - 30 * age):
            x, y, before = rng.standard_normal(2), float(rng.standard_normal()), float(age and rng.standard_normal())
            plain.ages[age].learn(0, np.array([*x, before]), y)
            for output, value in enumerate((y, 0.0, 0.0) if age < 2 else (y,)):
                posterior.ages[3 * age + output].learn(0, np.array([*x, before, 0.0, 0.0]), value)
    rows = rng.standard_normal((4, 2))
    one, two = plain.distribution(rows), posterior.distribution(rows)
    np.testing.assert_allclose(two.mean, one.mean, rtol=1e-6)
    np.testing.assert_allclose(two.root @ two.root.T, one.root @ one.root.T, rtol=1e-6)
    assert posterior.worth().tolist() == [0.0, 0.0]
