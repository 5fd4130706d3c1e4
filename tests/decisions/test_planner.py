"""Sets of plans are a function of a prefix of the log: whenever they are drawn, by whom, and whatever came between."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import Clock
from session_models import HERE, sessions_of

from belated.decisions import ForgottenError, Model, SQLiteStore, Status
from belated.decisions._planner import Planner
from belated.decisions._plans import encode_state
from belated.decisions._session_learner import SessionLearner
from belated.decisions._sessions import Session
from belated.decisions._store.postgres import PostgresStore

STARTS = [{"x": 0.0}, {"x": 1.0}, {"x": 2.0}]


def play(model: Model, clock: Clock, sessions: int, seed: int = 0) -> list[list[str]]:
    """Play sessions with rewards of steps and of sessions, ends of all kinds, corrections and cancellations."""
    rng, ids = np.random.default_rng(seed), []
    for i in range(sessions):
        name = f"{seed}/{i}"
        ids.append([model.decide(STARTS[t], session=name).id for t in range(1 + int(rng.integers(3)))])
        if rng.random() < 0.8:
            model.end(name, terminal=bool(rng.random() < 0.5))
        if rng.random() < 0.5:
            model.feedback("", float(rng.integers(2)), session=name, event="order")
        if rng.random() < 0.5:
            model.feedback(ids[-1][0], 0.5)
        if rng.random() < 0.2:
            model.feedback(ids[int(rng.integers(len(ids)))][0], 0.25, correction=True)
        if rng.random() < 0.1:
            model.cancel(session=f"{seed}/{rng.integers(i + 1)}")
        clock.now += 20.0
    return ids


def test_a_set_is_the_same_whenever_and_by_whomever_it_is_drawn() -> None:
    clock = Clock()
    model = sessions_of(clock=clock)
    for part in range(4):
        play(model, clock, 10, seed=part)
        place = model.plan()
    known = model._the_planner()
    known.catch_up(model.state.seq)
    other = Planner("shop", model.store, model._new_state)  # of another process, which reads the log at once
    other.catch_up(place)
    kept = model.store.plan("shop", place)
    assert kept is not None
    assert other.draw(model.settings, 1, kept.made) == kept
    other.catch_up(model.state.seq)
    for name, each in known.learner.memory().items():
        assert each.tobytes() == other.learner.memory()[name].tobytes(), name
    assert model.verify() == []


def test_what_is_learned_is_what_a_clerk_would_write_down() -> None:
    """Fed by hand from the look-up of every session, a learner knows the same."""
    clock = Clock()
    model = sessions_of(clock=clock, silence={"kind": "unknown"})
    play(model, clock, 60)
    planner = Planner("shop", model.store, model._new_state)
    planner.catch_up(model.state.seq)
    by_hand = SessionLearner(model.settings)
    for i in range(60):
        found = model.lookup_session(f"0/{i}")
        number = Session(found.session, None).number
        for entry in found.steps:
            assert entry.step is not None
            action = model.settings.action_numbers[entry.action]
            by_hand.step(number, entry.step, encode_state(model.settings, entry.context, entry.actions), action)
            if entry.learned is not None:
                by_hand.reward(number, entry.step, entry.learned)
        if found.status == "ended":
            by_hand.end(number, terminal=found.terminal)
        elif found.status == "cancelled":
            by_hand.cancel(number)
    ours, theirs = planner.learner.steps(joint=False), by_hand.steps(joint=False)
    for name, one in ours._asdict().items():
        two = getattr(theirs, name)
        pairs = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
        assert all(np.array_equal(a, b, equal_nan=a.dtype == np.float64) for a, b in pairs), name
    assert len(ours.rewards) > 60


def test_plans_are_published_with_what_they_have_seen() -> None:
    clock = Clock()
    model = sessions_of(clock=clock)
    assert model.plan_is_due()
    assert model.plan() == 0
    assert not model.plan_is_due()
    play(model, clock, 5)
    assert model.plan_is_due()
    assert model.summary()["sessions"]["unseen"] >= 3
    place = model.plan()
    assert place > 0
    assert model.plan() == place
    found = model.summary()["sessions"]
    assert (found["plan"], found["unseen"], found["behind"]) == (place, 0, False)
    version = model.state.version
    assert model.decide(HERE, session="new").model_version == version == 2
    assert model.verify() == []


def test_a_restart_goes_on_with_published_plans_and_draws_the_same(tmp_path: Path) -> None:
    clock = Clock()
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    model = sessions_of(store, clock)
    play(model, clock, 20)
    model.plan()
    first = model.decide(HERE, session="open")
    model.snapshot()
    play(model, clock, 5, seed=1)
    store.close()
    again = sessions_of(SQLiteStore(tmp_path / "store.db", durable=False), clock)
    assert again.lookup_session("open").steps[0].id == first.id
    again.plan()
    assert again.verify() == []
    again.store.close()


@pytest.mark.parametrize("keep_learned", [True, False])
@pytest.mark.parametrize("how", ["erase", "purge"])
def test_what_dropped_sessions_taught_stays_or_is_taken_back(how: str, keep_learned: bool, tmp_path: Path) -> None:
    if how == "purge" and not keep_learned:
        return
    clock = Clock()
    model = sessions_of(SQLiteStore(tmp_path / "store.db", durable=False), clock)
    play(model, clock, 12)
    clock.now += 200.0
    model.tick()
    whole = steps_of(model)
    if how == "purge":
        gone = {f"0/{i}" for i in range(12)}
        assert model.purge(clock.now) > 12
    else:
        gone = {"0/2", "0/3"}
        some = model.lookup_session("0/3").steps[0].id
        assert model.erase([some], sessions=["0/2"], keep_learned=keep_learned) >= 2
    numbers = {Session(name, None).number for name in gone}
    assert numbers & set(whole.episode.tolist())
    left = steps_of(model)
    if keep_learned:
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(whole[2:], left[2:], strict=True))
    else:
        assert not numbers & set(left.episode.tolist())
    for name in gone:
        with pytest.raises(ForgottenError):
            model.lookup_session(name)
        with pytest.raises(ForgottenError):
            model.decide(HERE, session=name)
        assert model.feedback("", 1.0, session=name).forgotten
        assert model.end(name).status is Status.UNKNOWN
    play(model, clock, 5, seed=1)
    model.plan()
    assert model.verify() == []
    model.store.close()
    again = sessions_of(SQLiteStore(tmp_path / "store.db", durable=False), clock)
    assert again.verify() == []
    again.store.close()


def steps_of(model: Model) -> Any:
    planner = Planner(model.name, model.store, model._new_state)
    planner.catch_up(model.state.seq)
    return planner.learner.steps(joint=False)


def test_an_open_session_is_not_purged() -> None:
    clock = Clock()
    model = sessions_of(clock=clock, silence={"kind": "unknown"}, idle=1e6)
    model.decide(HERE, session="open")
    clock.now += 10.0
    model.decide(HERE, session="ended")
    model.end("ended")
    clock.now += 10.0
    assert model.purge(clock.now) == 1
    assert model.decide(HERE, session="open").step == 1
    assert model.verify() == []


def test_a_step_that_was_not_shown_teaches_nothing_until_it_was() -> None:
    model = sessions_of(silence={"kind": "unknown"})
    for name in ("whole", "hidden"):
        ids = [
            model.decide(STARTS[t], session=name, active=name == "whole" or t != 1, chosen="abc"[t]).id
            for t in range(3)
        ]
    found = steps_of(model)
    number = Session("hidden", None).number
    assert sorted(found.step[found.episode == number].tolist()) == [0, 2]
    whole = found.episode == Session("whole", None).number
    first = found.after[whole][found.step[whole] == 0]
    assert found.after[found.episode == number][0] == first[0]  # where the step before led to is known all the same
    model.activate(ids[1])
    found = steps_of(model)
    rows = found.episode == number
    for name in ("step", "state", "action", "after"):
        column = getattr(found, name)
        assert column[rows].tolist() == column[~rows].tolist()
    model.plan()
    assert model.verify() == []


def test_settings_may_change_between_two_sets() -> None:
    clock = Clock()
    model = sessions_of(clock=clock)
    play(model, clock, 8)
    model.plan()
    model.decide(HERE, session="old")
    model.add_action("d")
    model.decide(HERE, session="old")  # its set does not know the new action
    model.change(model.settings.from_table({**model.settings.to_table(), "agent": "epsilon-greedy"}))
    play(model, clock, 4, seed=1)
    model.plan()
    model.decide(HERE, session="new")
    assert model.verify() == []


def test_one_process_plans_at_a_time(postgres_address: str) -> None:
    stores = [PostgresStore(postgres_address) for _ in range(2)]
    with stores[0].alone("plan shop") as first, stores[1].alone("plan shop") as second:
        assert (first, second) == (True, False)
    with stores[1].alone("plan shop") as again, stores[0].alone("plan other") as other:
        assert (again, other) == (True, True)
    models = [sessions_of(store) for store in stores]
    place = models[0].plan()
    assert not models[1].plan_is_due()  # it knows of the set by the log
    assert models[1].decide(HERE, session="s").session == "s"
    assert models[1].lookup_session("s").plan == place
    for model in models:
        assert model.verify() == []
        model.store.close()


def test_a_set_that_is_not_that_of_the_log_is_found(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    clock = Clock()
    model = sessions_of(store, clock)
    play(model, clock, 8)
    planner = Planner("shop", store, model._new_state)
    planner.catch_up(3)
    early = planner.draw(model.settings, 1, 0.0)
    planner.catch_up(model.state.seq)
    wrong = planner.draw(model.settings, 1, 0.0)._replace(content=early.content)
    assert model.publish(wrong._replace(digest=hashlib.sha256(early.content).digest()), 0)
    assert model.verify() == [f"the set of plans at position {wrong.place} of 'shop' differs from that of the log"]
    assert not model.publish(wrong, 0)  # there is one of this place
    store.close()
