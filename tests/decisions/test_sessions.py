"""Sessions: true probabilities, one member to the end, ends of every kind, and rewards that count from there on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import Clock, model_of
from session_models import HERE, publish, sessions_of, written

from belated.decisions import ConflictError, DecisionState, ForgottenError, MemoryStore, SQLiteStore, Status
from belated.decisions._operations import Cancel, Decide, Decided, End, Outcome, Reward
from belated.decisions._sessions import member_of
from belated.decisions._store.postgres import PostgresStore
from belated.errors import InvalidInputError, UnknownNameError

pytestmark = pytest.mark.usefixtures("written")
__all__ = ["written"]

Open = Callable[[], Any]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens the same store again and again, closing it before."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    opened: list[Any] = []
    address = request.getfixturevalue("postgres_address") if request.param == "postgres" else ""

    def again() -> Any:
        for each in opened:
            each.close()
        opened.append(PostgresStore(address) if address else SQLiteStore(tmp_path / "store.db", durable=False))
        return opened[-1]

    request.addfinalizer(lambda: [each.close() for each in opened])
    return again


def named(member: int, members: int, count: int = 1) -> list[str]:
    """Return names of sessions that act by a member."""
    names = (f"s{i}" for i in range(10_000))
    return [next(each for each in names if member_of("shop", 0, each, members) == member) for _ in range(count)]


def logged(model: Any, session: str, step: int) -> dict[str, float]:
    """Return the probabilities of a step, by action."""
    found = model.lookup_session(session).steps[step]
    assert found.probabilities is not None
    return dict(zip(found.actions, found.probabilities, strict=True))


def test_probabilities_are_those_worked_out_by_hand(open_store: Open) -> None:
    """Two members, floor 0.2: m = 0.1 + 0.8·π with two actions, and 0.2/3 + 0.8·π with three."""
    model = sessions_of(open_store())
    publish(model, ["aab", "bbb"])
    seen = set()
    for name in named(0, 2, 60):
        first = model.decide(HERE, session=name, actions=["a", "b"])
        assert logged(model, name, 0) == pytest.approx({"a": 0.5, "b": 0.5})  # ½·0.9 + ½·0.1
        assert first.probability == pytest.approx(0.5)
        weights = [0.9, 0.1] if first.action == "a" else [0.1, 0.9]  # ∝ [0.9, 0.1]·½ after a
        second = model.decide(HERE, session=name)
        floor = 0.2 / 3
        by_hand = {"a": weights[0] * (floor + 0.8) + weights[1] * floor, "c": floor}
        by_hand["b"] = weights[0] * floor + weights[1] * (floor + 0.8)
        assert logged(model, name, 1) == pytest.approx(by_hand)
        assert second.probability == pytest.approx(by_hand[second.action])
        likely = {"a": [floor + 0.8, floor], "b": [floor, floor + 0.8], "c": [floor, floor]}[second.action]
        after = np.array(weights) * likely / np.dot(weights, likely)
        model.decide(HERE, session=name, actions=["c", "b"])  # both members would take b
        assert logged(model, name, 2) == pytest.approx({"c": 0.1, "b": 0.9})
        seen.add((first.action, second.action))
        assert after.sum() == pytest.approx(1.0)
    assert len(seen) > 1
    assert model.verify() == []


def test_the_weights_of_the_third_step_follow_from_two(open_store: Open) -> None:
    model = sessions_of(open_store())
    publish(model, ["aaa", "abb"])
    m, floor = 0.8 + 0.2 / 3, 0.2 / 3
    for name in named(1, 2, 20):
        taken = [model.decide(HERE, session=name).action for _ in range(3)]
        w = np.array([0.5, 0.5])
        for step, action in enumerate(taken):
            table = [{"aaa"[step]: m}.get(action, floor), {"abb"[step]: m}.get(action, floor)]
            by_hand = float(w @ np.array(table))
            assert logged(model, name, step)[action] == pytest.approx(by_hand, rel=1e-12)
            w = w * table / by_hand


def test_without_a_set_any_action_is_as_likely_and_so_it_stays(open_store: Open) -> None:
    model = sessions_of(open_store())
    choice = model.decide(HERE, session="early")
    assert choice.probability == pytest.approx(1 / 3)
    assert (choice.step, choice.session) == (0, "early")
    publish(model, ["aaa", "aaa"])
    assert model.decide(HERE, session="early").probability == pytest.approx(1 / 3)
    assert model.lookup_session("early").plan is None
    later = model.decide(HERE, session="later")
    assert later.probability in (pytest.approx(0.8 + 0.2 / 3), pytest.approx(0.2 / 3))
    assert model.verify() == []


def test_a_session_keeps_its_set_and_member_over_a_restart(open_store: Open) -> None:
    model = sessions_of(open_store(), floor=0.0)
    publish(model, ["aaa", "bbb", "ccc"])
    names = {member: named(member, 3)[0] for member in range(3)}
    for member, name in names.items():
        assert model.decide(HERE, session=name).action == "abc"[member]
    publish(model, ["ccc", "ccc", "ccc"])
    model.snapshot()
    for member, name in names.items():
        assert model.decide(HERE, session=name).action == "abc"[member]
    again = sessions_of(open_store(), floor=0.0)
    for member, name in names.items():
        choice = again.decide(HERE, session=name)
        assert (choice.action, choice.step) == ("abc"[member], 2)
        assert choice.probability == pytest.approx(1.0)
        assert again.lookup_session(name).status == "ended"
    assert again.decide(HERE, session="new").action == "c"
    publish(again, ["aaa"])
    assert len(again.store.plans("shop")) == 2  # the set before is that of an open session, older ones are gone
    assert again.verify() == []


def test_actions_are_drawn_with_the_probabilities_that_are_logged() -> None:
    """χ² of the actions of 4 000 sessions, of the first steps, and of the second given each history."""
    model = sessions_of(floor=0.3)
    publish(model, ["aab", "bab", "abb", "..a"])
    first: Counter[str] = Counter()
    second: dict[str, Counter[str]] = {"a": Counter(), "b": Counter(), "c": Counter()}
    expected: dict[str, dict[str, float]] = {}
    for i in range(4_000):
        name = f"visit {i}"
        answers = model.answer([Decide(HERE, session=name)] * 2)
        one, two = (answer.row for answer in answers if isinstance(answer, Decided))
        assert one.probabilities is not None
        assert two.probabilities is not None
        first[one.ranking[0]] += 1
        second[one.ranking[0]][two.ranking[0]] += 1
        expected[""] = dict(zip("abc", np.frombuffer(one.probabilities), strict=True))
        expected[one.ranking[0]] = dict(zip("abc", np.frombuffer(two.probabilities), strict=True))
    for history, counts in (("", first), *second.items()):
        total = counts.total()
        chi = sum((counts[a] - total * p) ** 2 / (total * p) for a, p in expected[history].items())
        assert chi < 13.8  # of two degrees of freedom: exceeded once in a thousand
        assert sum(expected[history].values()) == pytest.approx(1.0)


def test_steps_of_one_session_in_one_batch_follow_one_another() -> None:
    model = sessions_of()
    publish(model, ["aaa", "bbb"])
    answers = model.answer([Decide(HERE, session="s"), Decide(HERE, session="t"), *[Decide(HERE, session="s")] * 3])
    steps = [(each.row.session, each.row.step) for each in answers if isinstance(each, Decided)]
    assert steps == [("s", 0), ("t", 0), ("s", 1), ("s", 2)]
    assert isinstance(answers[-1], ConflictError)
    one_by_one = sessions_of()
    publish(one_by_one, ["aaa", "bbb"])
    one_by_one.decide(HERE, session="s")
    one_by_one.decide(HERE, session="t")
    one_by_one.decide(HERE, session="s")
    found = one_by_one.lookup_session("s"), model.lookup_session("s")
    assert [each.probabilities for each in found[0].steps] == [each.probabilities for each in found[1].steps][:2]
    assert [each.action for each in found[0].steps] == [each.action for each in found[1].steps][:2]


def test_a_key_is_one_step(open_store: Open) -> None:
    model = sessions_of(open_store())
    one, two = (model.decide(HERE, session="s", key="k") for _ in range(2))
    assert one == two
    with pytest.raises(ConflictError, match="for a different request"):
        model.decide(HERE, session="t", key="k")
    model.end("s")
    assert model.decide(HERE, session="s", key="k") == one
    assert len(model.lookup_session("s").steps) == 1


def test_shadow_mode_leaves_the_weights_as_they_are(open_store: Open) -> None:
    model = sessions_of(open_store())
    publish(model, ["aaa", "bbb"])
    choice = model.decide(HERE, session="s", chosen="c", probability=0.25)
    assert (choice.action, choice.probability) == ("c", 0.25)
    assert choice.suggestion in ("a", "b", "c")
    uniform = {"a": 0.2 / 3 + 0.4, "b": 0.2 / 3 + 0.4, "c": 0.2 / 3}
    assert logged(model, "s", 0) == pytest.approx(uniform)
    model.decide(HERE, session="s")
    assert logged(model, "s", 1) == pytest.approx(uniform)  # what the caller did says nothing of the member
    assert model.verify() == []


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda m: m.decide(HERE), InvalidInputError, "session must be given: 'shop' has a horizon"),
        (lambda m: m.decide(HERE, session=""), InvalidInputError, "session must be a string of 1 to 256"),
        (lambda m: m.decide(HERE, session="a\x1fb"), InvalidInputError, "none of them a control character"),
        (lambda m: m.decide(HERE, session="new", size=2), InvalidInputError, "size must be 1 in a session"),
        (lambda m: m.decide({"y": 1.0}, session="new"), InvalidInputError, "x of context must be"),
        (lambda m: m.decide(HERE, session="new", actions=["z"]), InvalidInputError, "each of actions must be one of"),
        (
            lambda m: m.decide(HERE, session="ended"),
            ConflictError,
            "session 'ended' has ended: it cannot have another step",
        ),
        (lambda m: m.decide(HERE, session="full"), ConflictError, "has ended with its last step"),
        (lambda m: m.decide(HERE, session="idle"), ConflictError, "has ended by being idle"),
        (lambda m: m.decide(HERE, session="gone"), ConflictError, "session 'gone' was cancelled"),
        (
            lambda m: m.lookup_session("never"),
            UnknownNameError,
            "session must be the name of a session of 'shop', got 'never'",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(ask: Any, error: Any, words: str) -> None:
    clock = Clock()
    model = sessions_of(clock=clock)
    model.decide(HERE, session="idle")
    clock.now += 60.0
    for name, steps in (("ended", 1), ("full", 3), ("gone", 1)):
        for _ in range(steps):
            model.decide(HERE, session=name)
    model.end("ended")
    model.cancel(session="gone")
    before = model.state.seq
    with pytest.raises(error, match=words):
        ask(model)
    assert model.state.seq == before


def test_a_model_of_single_decisions_has_no_sessions() -> None:
    model = model_of()
    with pytest.raises(InvalidInputError, match="session must be left out: only models with a horizon have sessions"):
        model.decide({"x": 1.0, "y": 0.0}, session="s")
    for given in (End("s"), Cancel(session="s"), Reward("", 1.0, session="s")):
        (answer,) = model.answer([given])
        assert isinstance(answer, Outcome)
        assert answer.status is Status.INVALID
    with pytest.raises(InvalidInputError, match="the model must be a model of sessions"):
        model.plan()


def outcome(model: Any, given: Any) -> tuple[Status, str]:
    (answer,) = model.answer([given])
    assert isinstance(answer, Outcome)
    return answer.status, answer.detail


def test_a_session_ends_once(open_store: Open) -> None:
    model = sessions_of(open_store())
    for name in ("one", "two", "cut"):
        model.decide(HERE, session=name)
    assert outcome(model, End("one", terminal=True)) == (Status.ACCEPTED, "")
    assert outcome(model, End("one", terminal=True))[0] is Status.DUPLICATE
    assert outcome(model, End("one")) == (Status.CONFLICT, "the session has already ended as terminal")
    assert outcome(model, End("cut", context={"x": 2.0}))[0] is Status.ACCEPTED
    assert outcome(model, End("cut", terminal=True)) == (Status.CONFLICT, "the session has already ended as cut")
    assert outcome(model, End("other")) == (Status.UNKNOWN, "there is no such session")
    assert outcome(model, End("two", terminal=True, context=HERE))[0] is Status.INVALID
    assert outcome(model, End("two", context={"z": 1}))[0] is Status.INVALID
    assert outcome(model, End("two", terminal=1))[0] is Status.INVALID  # type: ignore[arg-type]
    one, two, cut = (model.lookup_session(each) for each in ("one", "two", "cut"))
    assert (one.status, one.terminal, one.ended, one.due) == ("ended", True, 1000.0, 1100.0)
    assert (two.status, two.terminal, two.ended, two.due) == ("open", False, None, None)
    assert (cut.terminal, cut.context) == (False, {"x": 2.0})
    assert model.verify() == []


@pytest.mark.parametrize("leaving", ["cut", "terminal"])
def test_idle_sessions_end_by_themselves(open_store: Open, leaving: str) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock, leaving=leaving)
    for name in ("one", "two"):
        model.decide(HERE, session=name)
    clock.now += 40.0
    model.decide(HERE, session="two")
    clock.now += 15.0
    model.tick()
    assert model.lookup_session("one").status == "ended"
    assert model.lookup_session("one").terminal is (leaving == "terminal")
    assert model.lookup_session("two").status == "open"
    again = sessions_of(open_store(), clock, leaving=leaving)
    clock.now += 40.0
    with pytest.raises(ConflictError, match="by being idle"):
        again.decide(HERE, session="two")
    assert again.state.sessions is not None
    again.tick()
    assert not again.state.sessions.open
    assert (again.state.sessions.opened, again.state.sessions.ended) == (2, 2)
    assert again.verify() == []


def test_a_session_of_as_many_steps_as_the_horizon_has_ended(open_store: Open) -> None:
    model = sessions_of(open_store())
    for _ in range(3):
        model.decide(HERE, session="s")
    assert (model.lookup_session("s").status, model.lookup_session("s").due) == ("ended", 1100.0)
    assert outcome(model, End("s"))[0] is Status.DUPLICATE
    assert outcome(model, End("s", terminal=True))[0] is Status.ACCEPTED  # now it is known where it has led to
    assert outcome(model, End("s", terminal=True))[0] is Status.DUPLICATE
    assert outcome(model, End("s"))[0] is Status.CONFLICT
    assert (model.lookup_session("s").terminal, model.lookup_session("s").due) == (True, 1100.0)
    assert model.state.sessions is not None
    assert model.state.sessions.ended == 1
    assert model.verify() == []


def statuses(model: Any, session: str) -> list[DecisionState]:
    return [each.status for each in model.lookup_session(session).steps]


def learned(model: Any, session: str) -> list[float | None]:
    return [each.learned for each in model.lookup_session(session).steps]


def test_steps_mature_from_the_end_of_their_session(open_store: Open) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock, idle=1e4)
    ids = []
    for _ in range(2):
        ids.append(model.decide(HERE, session="s").id)
        clock.now += 150.0
    model.feedback(ids[0], 0.5)
    assert learned(model, "s") == [None, None]  # a yes counts no earlier than a no
    assert statuses(model, "s") == [DecisionState.REWARDED, DecisionState.IN_FLIGHT]
    model.end("s", terminal=True)
    clock.now += 99.0
    model.tick()
    assert learned(model, "s") == [None, None]
    clock.now += 1.0
    assert model.tick() == 1
    assert learned(model, "s") == [0.5, 0.0]
    assert statuses(model, "s") == [DecisionState.REWARDED, DecisionState.DEFAULTED]
    model.feedback(ids[1], 1.0)  # what comes later still corrects it
    assert learned(model, "s") == [0.5, 1.0]
    assert sessions_of(open_store(), clock, idle=1e4).verify() == []


def test_with_unknown_silence_rewards_count_at_once_and_expire_after_the_end(open_store: Open) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock, silence={"kind": "unknown", "seconds": 10.0})
    ids = [model.decide(HERE, session="s").id for _ in range(2)]
    clock.now += 30.0  # longer than the window, but the session goes on
    assert model.feedback(ids[0], 1.0).status is Status.ACCEPTED
    assert learned(model, "s") == [1.0, None]
    model.end("s")
    clock.now += 10.5
    assert model.feedback(ids[1], 1.0).status is Status.LATE
    assert model.feedback("", 1.0, session="s").status is Status.LATE
    model.tick()
    assert statuses(model, "s") == [DecisionState.REWARDED, DecisionState.EXPIRED]
    assert model.verify() == []


def test_a_reward_of_the_session_counts_at_its_last_step(open_store: Open) -> None:
    model = sessions_of(open_store(), silence={"kind": "unknown"})
    first = model.decide(HERE, session="s")
    assert model.feedback("", 1.0, session="s", event="order").status is Status.ACCEPTED
    model.feedback(first.id, 0.25)
    assert learned(model, "s") == [
        1.25,
    ]
    model.decide(HERE, session="s")
    assert learned(model, "s") == [0.25, 1.0]
    again = sessions_of(open_store(), silence={"kind": "unknown"})
    second = again.decide(HERE, session="s")
    assert learned(again, "s") == [0.25, None, 1.0]
    assert again.feedback("", 1.0, session="s", event="order").status is Status.DUPLICATE
    assert again.feedback("", 2.0, session="s", event="order").status is Status.CONFLICT
    assert again.feedback(second.id, 0.5, event="order").status is Status.ACCEPTED  # another event of the same name
    assert learned(again, "s") == [0.25, None, 1.5]
    assert again.feedback("", 3.0, session="s", event="order", correction=True).reward == 3.0
    assert learned(again, "s") == [0.25, None, 3.5]
    assert again.state.learned == 2
    shown = again.lookup_session("s").steps[-1].history
    assert sorted((each.event, each.reward, each.counted) for each in shown if each.kind == "reward") == [
        ("order", 0.5, True), ("order", 1.0, False), ("order", 3.0, True),
    ]  # fmt: skip
    assert again.verify() == []


def test_a_reward_may_come_before_its_session(open_store: Open) -> None:
    model = sessions_of(open_store(), silence={"kind": "unknown"})
    assert model.feedback("", 1.0, session="s").status is Status.PARKED
    assert model.feedback("", 1.0, session="s").status is Status.DUPLICATE
    assert model.state.parked == 1
    model.decide(HERE, session="s")
    assert (learned(model, "s"), model.state.parked) == ([1.0], 0)
    assert sessions_of(open_store(), silence={"kind": "unknown"}).verify() == []


def test_cancelling_takes_a_reward_or_a_whole_session_back(open_store: Open) -> None:
    model = sessions_of(open_store(), silence={"kind": "unknown"})
    ids = [model.decide(HERE, session="s").id for _ in range(2)]
    for each in ids:
        model.feedback(each, 1.0)
    assert model.cancel(ids[0]).status is Status.ACCEPTED
    assert learned(model, "s") == [None, 1.0]
    assert model.cancel(session="s").status is Status.ACCEPTED
    assert model.cancel(session="s").status is Status.DUPLICATE
    assert (learned(model, "s"), model.state.learned) == ([None, None], 0)
    assert statuses(model, "s") == [DecisionState.CANCELLED] * 2
    assert model.lookup_session("s").status == "cancelled"
    assert model.feedback(ids[1], 2.0, version=1).detail == "the session was cancelled"
    assert model.feedback("", 2.0, session="s").status is Status.LATE
    assert outcome(model, End("s")) == (Status.CONFLICT, "the session was cancelled")
    assert model.cancel(session="t").status is Status.UNKNOWN
    assert model.cancel("x", session="s").status is Status.INVALID
    assert sessions_of(open_store(), silence={"kind": "unknown"}).verify() == []


def test_within_one_batch_rewards_and_ends_see_one_another() -> None:
    model = sessions_of(silence={"kind": "unknown"})
    first = model.decide(HERE, session="s")
    answers = model.answer(
        [
            Decide(HERE, session="t"), Reward("", 1.0, session="t"), Reward("", 1.0, session="t"), End("t"), End("t"),
            Cancel(session="s"), Reward(first.id, 1.0), Decide(HERE, session="s"), Reward("", 1.0, session="u"),
            Reward("", 1.0, session="u"), Decide(HERE, session="u"),
        ]
    )  # fmt: skip
    found = [each.status.value if isinstance(each, Outcome) else type(each).__name__ for each in answers]
    assert found == [
        "Decided", "accepted", "duplicate", "accepted", "duplicate", "accepted", "late", "ConflictError", "parked",
        "duplicate", "Decided",
    ]  # fmt: skip
    assert (learned(model, "t"), learned(model, "u")) == ([1.0], [1.0])
    assert model.verify() == []


def test_a_step_may_be_activated_later(open_store: Open) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock)
    shown = model.decide(HERE, session="s")
    hidden = model.decide(HERE, session="s", active=False)
    model.end("s")
    clock.now += 100.0
    model.tick()
    assert statuses(model, "s") == [DecisionState.DEFAULTED, DecisionState.INACTIVE]
    assert model.activate(shown.id).status is Status.DUPLICATE
    assert model.activate(hidden.id).status is Status.ACCEPTED
    assert statuses(model, "s") == [DecisionState.DEFAULTED] * 2
    assert sessions_of(open_store(), clock).verify() == []


def test_settings_go_on_without_losing_the_numbers_of_actions() -> None:
    model = sessions_of()
    model.change(model.settings.from_table({**model.settings.to_table(), "actions": ["d", "b", "a"]}))
    assert (list(model.settings.actions), model.settings.retired) == (["a", "b", "c", "d"], ("c",))
    assert model.settings.names == ("a", "b", "d")
    version = model.settings_version
    model.change(model.settings.from_table({**model.settings.to_table(), "actions": ["d", "b", "a"], "retired": []}))
    assert model.settings_version == version
    with pytest.raises(InvalidInputError, match="horizon is fixed for the life of a model and must be 3, got 4"):
        model.change(model.settings.from_table({**model.settings.to_table(), "horizon": 4}))


def test_sets_that_are_damaged_or_gone_leave_sessions_to_chance(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    model = sessions_of(store)
    publish(model, ["aaa"])
    assert model.decide(HERE, session="s").probability != pytest.approx(1 / 3)
    store._connection.execute("UPDATE plan SET content = zeroblob(8)")
    assert any("position 0" in each for each in model.verify())
    store.close()
    again = sessions_of(SQLiteStore(tmp_path / "store.db", durable=False))
    assert again.decide(HERE, session="s").probability == pytest.approx(1 / 3)
    assert "its sessions act at random" in caplog.text
    again.store.close()


def test_two_deciders_number_the_steps_of_one_session(postgres_address: str) -> None:
    stores = [PostgresStore(postgres_address) for _ in range(2)]
    models = [sessions_of(store) for store in stores]
    publish(models[0], ["aaa", "bbb"])
    for model in models:
        model.catch_up()
    batches = [model.prepare([Decide(HERE, session="s")]) for model in models]  # neither has seen the other
    from belated.decisions import commit

    commit(stores[0], [batches[0]])
    with pytest.raises(ConflictError):
        commit(stores[1], [batches[1]])
    assert models[1].decide(HERE, session="s").step == 1
    assert models[0].decide(HERE, session="s").step == 2
    late = models[1].prepare([Decide(HERE, session="t")])
    commit(stores[1], [late])
    step = models[0].prepare([Decide(HERE, session="t")])
    models[1].end("t", terminal=True)
    commit(stores[0], [step])  # it lands behind the end, and counts as if it stood before
    for model in models:
        assert [each.step for each in model.lookup_session("t").steps] == [0, 1]
        assert model.lookup_session("t").status == "ended"
        assert len({each.due for each in model.lookup_session("t").steps}) == 1
        assert model.verify() == []
    for store in stores:
        store.close()


def test_a_clock_that_was_ahead_is_set_right(open_store: Open) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock)
    model.decide(HERE, session="s")
    clock.now += 1e6
    model.decide(HERE, session="t")
    model.end("t")
    clock.now = 1_010.0
    assert model.repair_clock() > 0
    assert model.lookup_session("t").due == 1_110.0
    assert model.lookup_session("s").status == "ended"
    model.decide(HERE, session="u")
    clock.now += 60.0
    model.tick()
    assert model.lookup_session("u").status == "ended"
    clock.now += 110.0
    model.tick()
    assert statuses(model, "t") == [DecisionState.DEFAULTED]
    assert sessions_of(open_store(), clock).verify() == []


def test_the_oldest_in_flight_is_a_step_whose_window_is_open(open_store: Open) -> None:
    clock = Clock()
    model = sessions_of(open_store(), clock)
    model.decide(HERE, session="s")
    model.end("s")
    clock.now += 100.0
    model.tick()
    gone = model.decide(HERE, session="gone")
    model.cancel(session="gone")
    waiting = model.decide(HERE, session="t")
    oldest = model.oldest()
    assert oldest is not None
    assert (oldest.id, gone.id != waiting.id, model.in_flight) == (waiting.id, True, 1)


def test_members_are_as_likely_as_one_another() -> None:
    counts = Counter(member_of("shop", 3, f"visit {i}", 16) for i in range(16_000))
    chi = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert chi < 37.7  # of 15 degrees of freedom: exceeded once in a thousand
    assert not math.isnan(chi)


def test_an_erased_session_is_known_as_forgotten() -> None:
    assert issubclass(ForgottenError, UnknownNameError)
