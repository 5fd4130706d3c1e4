"""What stands around the core: errors after a commit, and a clock that was wrong."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, Clock, model_of, settings_of

from belated.decisions import (
    ClockError,
    Decide,
    DecisionLearner,
    DecisionState,
    MemoryStore,
    Model,
    PostgresStore,
    Reward,
    SQLiteStore,
    StateError,
    Status,
    StoreError,
    Unknown,
    replay,
)
from belated.decisions import _core as core
from belated.decisions import _engine as engines
from belated.decisions._ids import CheckedClock
from belated.decisions._posterior import Posterior
from belated.decisions._snapshot import differences, take

DAY = 86_400.0
ERRORS = [MemoryError("no memory"), OSError("input/output error"), KeyboardInterrupt()]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return MemoryStore()
    address = request.getfixturevalue("postgres_address") if request.param == "postgres" else None
    made = PostgresStore(address) if address else SQLiteStore(tmp_path / "d.db", durable=False)
    request.addfinalizer(made.close)
    return made


class Fails:
    """Calls a function, and raises an error instead at the n-th call from now."""

    def __init__(self, inner: Callable[..., Any], error: BaseException, at: int, *, after: bool = False) -> None:
        self.inner, self.error, self.left, self.after = inner, error, at, after

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left:
            return self.inner(*given, **named)
        if self.after:
            self.inner(*given, **named)
        raise self.error


def some(model: Model) -> list[Any]:
    ids = [model.decide(CONTEXT).id for _ in range(3)]
    return [Decide(CONTEXT, key="k"), *[Reward(name, 1.0) for name in ids], Decide(CONTEXT)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", [1, 2, 4, 5])
def test_an_error_while_a_commit_is_learned_changes_no_answer_and_no_state(
    store: Any, error: BaseException, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(store=store)
    operations = some(model)
    monkeypatch.setattr(engines, "apply", Fails(core.apply, error, place))
    if isinstance(error, Exception):
        answers = model.answer(operations)
        assert [type(each).__name__ for each in answers] == ["Decided", "Outcome", "Outcome", "Outcome", "Decided"]
    else:
        with pytest.raises(KeyboardInterrupt):
            model.answer(operations)
    assert type(error).__name__ in model.doubt
    model.snapshot()  # of the state as the log has it
    assert (model.doubt, model.rebuilt) == ("", 1)
    assert model.summary()["decisions"] == 5 and model.verify() == []
    assert differences(model.state, Model("ads", None, store, clock=Clock()).state) == []
    assert [each.status for each in model.feedback_many(operations[1:4])] == [Status.DUPLICATE] * 3
    (again,) = model.answer(operations[:1])
    assert getattr(again, "repeated", False) and model.summary()["decisions"] == 5


@pytest.mark.parametrize("halfway", [False, True])
def test_an_error_within_a_row_is_not_kept_either(halfway: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    made = model.decide(CONTEXT).id
    posterior = model.state.posterior.ages[0]
    learn = posterior.learn
    monkeypatch.setattr(posterior, "learn", Fails(learn, MemoryError(), 1, after=halfway))
    assert model.feedback(made, 1.0).status is Status.ACCEPTED
    assert model.doubt and model.lookup(made).learned == 1.0
    assert model.verify() == [] and model.feedback(made, 1.0).status is Status.DUPLICATE


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("looked_at", [True, False])
def test_rows_that_were_stored_although_the_store_failed_are_learned(
    store: Any, error: BaseException, looked_at: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(store=store)
    made = model.decide(CONTEXT).id
    monkeypatch.setattr(store, "append", Fails(store.append, error, 1, after=True))
    with pytest.raises(type(error)):
        model.feedback(made, 1.0)
    if looked_at:
        assert model.lookup(made).learned == 1.0
    assert model.feedback(made, 1.0).status is Status.DUPLICATE and model.verify() == []
    assert model.lookup(made).learned == 1.0


def test_a_snapshot_that_fails_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SNAPSHOT_EVERY", 2)
    model = model_of()
    monkeypatch.setattr(engines, "take", Fails(take, MemoryError(), 1))
    for _ in range(4):
        model.decide(CONTEXT)
    assert (model.doubt, model.summary()["decisions"], model.verify()) == ("", 4, [])
    assert len(model.store.snapshots("ads")) == 1  # the next one


def test_a_state_that_cannot_be_computed_again_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    made = model.decide(CONTEXT).id
    failing = Fails(core.apply, MemoryError("still"), 1)
    monkeypatch.setattr(engines, "apply", failing)
    assert model.feedback(made, 1.0).status is Status.ACCEPTED
    for _ in range(2):
        failing.left = 1
        with pytest.raises(StateError, match=r"'ads' must be rebuilt .*still"):
            model.decide(CONTEXT)
    assert model.decide(CONTEXT).id and model.lookup(made).learned == 1.0 and model.verify() == []


def test_a_learner_that_has_forgotten_does_not_go_on_from_half_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = DecisionLearner(2, silence=Unknown())
    table = [[1.0, 0.0], [0.0, 1.0]]
    first, second = learner.decide(table), learner.decide(table)
    learner.feedback(first.id, 1.0)
    assert learner.forget(2) == 1
    monkeypatch.setattr(engines, "apply", Fails(core.apply, MemoryError(), 1))
    assert learner.feedback(second.id, 1.0) is Status.ACCEPTED
    with pytest.raises(StateError, match="not in the log"):
        learner.decide(table)


class Broken:
    """A connection whose next commit reports an error of the disk."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.failures = inner, 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT" and self.failures:
            self.failures -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return self.inner.execute(statement, *values)


def test_after_an_error_of_the_disk_nothing_is_written_until_the_store_is_opened_again(tmp_path: Path) -> None:
    store: Any = SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store)
    made = model.decide(CONTEXT).id
    store._connection = Broken(store._connection)
    with pytest.raises(StoreError, match="disk I/O error"):
        model.feedback(made, 1.0)
    for _ in range(2):
        with pytest.raises(StoreError, match="must be reopened"):
            model.feedback(made, 1.0)
    assert model.lookup(made).reward is None  # what is there can be read
    store.close()
    again = Model("ads", None, SQLiteStore(tmp_path / "d.db"), clock=Clock())
    assert again.feedback(made, 1.0).status is Status.ACCEPTED and again.verify() == []
    again.store.close()


MATURE = {"kind": "mature", "seconds": 10.0}


def played(model: Model, clock: Clock, wrong: float, *, ended: bool = False) -> None:
    """Decide 20 times, once more while the clock is `wrong` by so much, and let windows end in that future."""
    for i in range(20):
        clock.now += 0.1
        choice = model.decide({"x": i / 20, "y": 1.0}, chosen="abc"[i % 3])
        if i % 2:
            model.feedback(choice.id, i / 10)
    clock.now += wrong
    model.decide({"x": 0.7, "y": 1.0}, chosen="a")
    if ended:
        clock.now += 20.0
        model.tick()
        clock.now -= 20.0
    clock.now -= wrong


@pytest.mark.parametrize("wrong", [DAY, 30 * DAY, 3650 * DAY])
@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("more", [{}, {"forgetting": {"seconds": 3600.0}}], ids=["kept", "fading"])
def test_a_log_that_a_wrong_clock_has_carried_ahead_is_refused_and_can_be_repaired(
    store: Any, wrong: float, ended: bool, more: dict[str, Any]
) -> None:
    changes: dict[str, Any] = {"silence": MATURE, "noise": 1.0, **more}
    clock, other = Clock(2e9), Clock(2e9)
    model, right = model_of(store=store, clock=clock, **changes), model_of(clock=other, **changes)
    played(model, clock, wrong, ended=ended)
    played(right, other, 0.0)
    rows = store.last("ads")
    for refused in (lambda: model.decide(CONTEXT), model.tick):
        with pytest.raises(ClockError, match=r"'ads' is [0-9.]+ days ahead of the clock.*repair-clock"):
            refused()
    assert store.last("ads") == rows
    assert model.repair_clock() == 2  # the decision that was stamped, and the time of the log
    assert model.repair_clock() == 0
    assert model.in_flight == right.in_flight > 0
    for each, now in ((model, clock), (right, other)):
        now.now += 9.0
        each.tick()
        now.now += 1.5
        each.tick()
        assert (each.in_flight, each.verify()) == (0, [])
    assert model.summary()["states"] == right.summary()["states"]
    for name, weights in right.weights().items():
        np.testing.assert_allclose(model.weights()[name], weights, rtol=1e-9)
    assert model.oldest() is None
    again = Model("ads", None, store, clock=clock)
    assert differences(model.state, again.state) == []
    assert len(list(replay(model, model.settings))) == 21


def test_a_decision_that_is_activated_after_the_repair_counts_from_then() -> None:
    weights = []
    for wrong in (0.0, DAY):
        clock = Clock(2e9)
        model = model_of(clock=clock, silence=MATURE, noise=1.0, forgetting={"seconds": 3600.0})
        clock.now += wrong
        made = model.decide(CONTEXT, active=False, chosen="a").id
        clock.now -= wrong
        assert model.repair_clock() == bool(wrong)
        assert model.lookup(made).status is DecisionState.INACTIVE
        assert model.activate(made).status is Status.ACCEPTED
        assert model.lookup(made).due == clock.now + 10.0
        model.feedback(made, 1.0)
        clock.now += 10.0
        assert model.tick() == 1 and model.lookup(made).learned == 1.0 and model.verify() == []
        weights.append(model.state.posterior.ages[0].sums.total_weight)
    assert weights[0] == weights[1]


def test_readers_go_on_while_the_clock_is_wrong() -> None:
    clock = Clock(2e9)
    model = model_of(clock=clock)
    model.decide(CONTEXT)
    clock.now -= DAY
    assert model.now() == 2e9
    assert model.weights() and model.summary()["decisions"] == 1 and model.snapshot() == 1
    assert model.probabilities(CONTEXT).sum() == pytest.approx(1.0)


class Elsewhere(MemoryStore):
    """A store with a clock of its own."""

    shared = True
    now = 2e9

    def time(self) -> float:
        return self.now


def test_the_clock_of_a_shared_store_counts_once_it_agrees_with_that_of_this_machine() -> None:
    store = Elsewhere()
    model = Model("ads", settings_of(), store)
    with pytest.raises(ClockError, match=r"the clock of the database, seen from this machine, is .* days"):
        model.decide(CONTEXT)
    store.now = time.time() + 200.0
    assert model.lookup(model.decide(CONTEXT).id).made == store.now
    with pytest.raises(ClockError, match=r"the clock of the database, seen from this machine, is 1000\.0 days behind"):
        CheckedClock(store.time, far=True, own=lambda: store.now + 1000 * DAY)()


def test_a_jump_of_this_machines_clock_is_an_error_in_a_process_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    store, ahead = MemoryStore(), 0.0
    monkeypatch.setattr(store, "time", lambda: time.monotonic() + 2e9 + ahead)
    model = Model("ads", settings_of(silence=MATURE), store)
    made = model.decide(CONTEXT).id
    ahead = 10 * 365 * DAY
    for refused in (lambda: model.decide(CONTEXT), lambda: model.feedback(made, 1.0), model.tick, model.repair_clock):
        with pytest.raises(ClockError, match=r"the clock is 3650\.0 days ahead of the expected time"):
            refused()
    ahead = 20.0
    assert model.tick() == 1 and store.last("ads") == 2


@pytest.mark.parametrize(("late", "status"), [(0.0, Status.ACCEPTED), (1e-3, Status.LATE)])
@pytest.mark.parametrize("ended", [False, True])
def test_a_reward_at_the_very_end_of_a_window_is_in_time(late: float, status: Status, ended: bool) -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "unknown", "seconds": 10.0})
    made = model.decide(CONTEXT)
    clock.now += 10.0 + late
    if ended:
        assert model.tick() == 1
    assert model.feedback(made.id, 1.0).status is status
    assert model.lookup(made.id).learned == (1.0 if status is Status.ACCEPTED else None) and model.verify() == []


def test_weights_are_computed_once_for_a_version_and_nobody_waits_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    model, free, mean = model_of(), list[bool](), Posterior.mean
    made = [model.decide(CONTEXT, chosen=each).id for each in "abc"]

    def watched(self: Posterior, *given: Any) -> Any:
        other = threading.Thread(target=lambda: free.append(_free(model)))
        other.start()
        other.join()
        return mean(self, *given)

    monkeypatch.setattr(Posterior, "mean", watched)
    first, again = model.weights(), model.weights()
    assert free == [True, True, True]  # of three actions; not asked for again
    first["a"][:] = 7.0
    assert not model.weights()["a"].any() and not again["a"].any()
    model.feedback(made[0], 1.0)
    assert model.weights()["a"].any() and len(free) == 6
    live = model.state.posterior
    monkeypatch.undo()
    np.testing.assert_array_equal(model.weights()["a"], live.mean(model.state.blocks["a"]))


def _free(model: Model) -> bool:
    """Whether another thread may write."""
    free = model.lock.acquire(blocking=False)
    if free:
        model.lock.release()
    return free
