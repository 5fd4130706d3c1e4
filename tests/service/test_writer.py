"""The threads that write."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from belated.decisions import (
    ClockError,
    ConflictError,
    Decide,
    MemoryStore,
    Model,
    ModelSettings,
    Outcome,
    Reward,
    Status,
    StoreError,
    StoreFullError,
)
from belated.decisions._rows import Row, SnapshotRow
from belated.decisions._snapshot import differences
from belated.service import _writer as module
from belated.service._writer import FullError, Request, Writer

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
CONTEXT = {"x": 0.5}


class Gate(MemoryStore):
    """A store whose commits wait for a gate, and fail as often as they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.entered, self.failures, self.commits = threading.Event(), threading.Event(), 0, 0
        self.open.set()

    def append(self, rows: Sequence[Row]) -> None:
        self.entered.set()
        assert self.open.wait(30)
        self.commits += 1
        if self.failures:
            self.failures -= 1
            raise StoreFullError("there is no space left")
        super().append(rows)

    def save_snapshot(self, row: SnapshotRow, keep: int = 2) -> None:
        if self.failures:
            raise StoreFullError("there is no space left")
        super().save_snapshot(row, keep)


class Waiting:
    """Whom to tell."""

    def __init__(self) -> None:
        self.told, self.answer = threading.Event(), None  # type: tuple[threading.Event, Any]

    def __call__(self, answer: Any) -> None:
        self.answer = answer
        self.told.set()

    def result(self) -> Any:
        assert self.told.wait(30)
        return self.answer


@pytest.fixture
def store() -> Gate:
    return Gate()


@pytest.fixture
def model(store: Gate) -> Model:
    return Model("ads", ModelSettings.from_table(TABLE), store, clock=lambda: 1_800_000_000.0)


@pytest.fixture
def writer(store: Gate, model: Model) -> Iterator[Writer]:
    made = Writer(lambda: [model])
    yield made
    store.open.set()
    made.close()


def send(writer: Writer, model: Model, *operations: Any) -> Waiting:
    waiting = Waiting()
    writer.submit(Request(model, operations, waiting))
    return waiting


def test_what_waits_during_a_commit_goes_together_into_the_next(writer: Writer, store: Gate, model: Model) -> None:
    store.open.clear()
    first = send(writer, model, Decide(CONTEXT))
    assert store.entered.wait(30)
    rest = [send(writer, model, Decide(CONTEXT)) for _ in range(20)]
    assert not first.told.is_set()  # nothing is answered before the commit
    store.open.set()
    ids = {each.result()[0].row.id for each in [first, *rest]}
    assert (len(ids), store.commits) == (21, 2)


def test_what_does_not_fit_is_refused_at_once(
    writer: Writer, store: Gate, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 3)
    store.open.clear()
    accepted = [send(writer, model, Decide(CONTEXT))]
    assert store.entered.wait(30)
    accepted += [send(writer, model, Decide(CONTEXT)) for _ in range(3)]
    with pytest.raises(FullError, match="3 requests are already waiting"):
        send(writer, model, Decide(CONTEXT))
    store.open.set()
    assert len({each.result()[0].row.id for each in accepted}) == 4


def test_a_full_store_refuses_loses_nothing_and_goes_on(writer: Writer, store: Gate, model: Model) -> None:
    kept = send(writer, model, Decide(CONTEXT)).result()[0].row.id
    before = model.weights()
    store.failures = 1_000
    refused = send(writer, model, Reward(kept, 1.0)).result()
    assert isinstance(refused, StoreFullError)
    assert "no space" in writer.problem
    assert model.lookup(kept).reward is None
    assert all((model.weights()[name] == before[name]).all() for name in before)
    store.failures = 0
    (again,) = send(writer, model, Reward(kept, 1.0)).result()
    assert again == Outcome(Status.ACCEPTED, kept, "", 1.0)
    assert (writer.problem, model.lookup(kept).reward, model.verify()) == ("", 1.0, [])


def test_it_finds_out_by_itself_that_there_is_space_again(writer: Writer, store: Gate, model: Model) -> None:
    store.failures = 1_000
    assert isinstance(send(writer, model, Decide(CONTEXT)).result(), StoreFullError)
    store.failures = 0
    for _ in range(1_000):  # nobody sends anything, since the service is not ready
        if not writer.problem:
            break
        threading.Event().wait(0.01)
    assert writer.problem == ""


class Elsewhere(Gate):
    """A shared store into which another process puts the same decision before every commit."""

    shared = True

    def append(self, rows: Sequence[Row]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConflictError("already in the store")
        super().append(rows)


def test_a_request_that_another_process_was_faster_with_is_looked_at_again() -> None:
    store = Elsewhere()
    model = Model("ads", ModelSettings.from_table(TABLE), store)
    writer = Writer(lambda: [model])
    try:
        store.failures = module.ATTEMPTS
        assert send(writer, model, Decide(CONTEXT, key="k")).result()[0].row.ranking[0] in "ab"
        store.failures = module.ATTEMPTS + 1
        assert isinstance(send(writer, model, Decide(CONTEXT, key="l")).result(), ConflictError)
    finally:
        writer.close()


def test_a_mistake_in_one_request_does_not_stop_the_others(
    writer: Writer, store: Gate, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    store.open.clear()
    first = send(writer, model, Decide(CONTEXT))
    assert store.entered.wait(30)
    bad: Any = object()
    good, wrong, last = send(writer, model, Decide(CONTEXT)), send(writer, model, bad), send(writer, model)
    store.open.set()
    assert first.result()[0].row.id != good.result()[0].row.id
    assert "each operation" in str(wrong.result())
    assert last.result() == []
    assert send(writer, model, Decide(CONTEXT)).result()[0].row.ranking[0] in "ab"


def test_sixteen_at_once_with_one_event_are_one_reward(writer: Writer, model: Model) -> None:
    made = send(writer, model, Decide(CONTEXT)).result()[0].row.id
    told: list[Waiting] = []

    def report() -> None:
        told.append(send(writer, model, Reward(made, 1.0, event="order")))

    threads = [threading.Thread(target=report) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sorted(each.result()[0].status.value for each in told)
    assert statuses == ["accepted"] + ["duplicate"] * 15
    assert model.lookup(made).reward == 1.0


def test_closing_answers_what_is_waiting_and_takes_no_more(writer: Writer, store: Gate, model: Model) -> None:
    store.open.clear()
    waiting = [send(writer, model, Decide(CONTEXT)) for _ in range(5)]
    closing = threading.Thread(target=writer.close)
    closing.start()
    while writer.alive:
        pass
    with pytest.raises(FullError, match="stopping"):
        send(writer, model, Decide(CONTEXT))
    store.open.set()
    closing.join()
    assert len({each.result()[0].row.id for each in waiting}) == 5


class Slow(Model):
    """A model that computes for as long as it is told to."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.goes_on, self.entered = threading.Event(), threading.Event()

    def prepare(self, *given: Any, **named: Any) -> Any:
        self.entered.set()
        assert self.goes_on.wait(30)
        return super().prepare(*given, **named)


def test_a_slow_model_keeps_no_other_waiting(store: Gate, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow("slow", ModelSettings.from_table(TABLE), store)
    writer = Writer(lambda: [model, slow])
    try:
        late = send(writer, slow, Decide(CONTEXT))
        assert slow.entered.wait(30)
        assert len({send(writer, model, Decide(CONTEXT)).result()[0].row.id for _ in range(5)}) == 5
        assert not late.told.is_set()
        monkeypatch.setattr(module, "STALLED", 0.0)
        assert "commit of 'slow' has been in progress" in writer.problems["slow"]
        assert writer.problem == ""  # the other goes on
        slow.goes_on.set()
        assert late.result()[0].row.ranking[0] in "ab"
    finally:
        slow.goes_on.set()
        writer.close()


def test_nobody_else_writes_for_a_model_from_its_answers_to_its_commit(
    writer: Writer, store: Gate, model: Model
) -> None:
    store.open.clear()
    first = send(writer, model, Decide(CONTEXT))
    assert store.entered.wait(30)
    free = []
    other = threading.Thread(target=lambda: free.append(model.lock.acquire(blocking=False)))
    other.start()
    other.join()
    store.open.set()
    assert free == [False] and first.result()


@pytest.mark.parametrize("error", [MemoryError("no memory"), OSError("input/output"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [False, True])
def test_an_error_of_a_commit_is_a_503_and_what_was_stored_is_learned(
    store: Gate, model: Model, error: BaseException, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Model("news", ModelSettings.from_table(TABLE), store)
    made = model.decide(CONTEXT).id
    monkeypatch.setattr(module, "PAUSE", 30.0)  # nothing is mended before it was looked at
    writer = Writer(lambda: [model, other])
    append = store.append

    def fails(rows: Sequence[Row]) -> None:
        if after:
            append(rows)
        raise error

    try:
        monkeypatch.setattr(store, "append", fails)
        told = send(writer, model, Reward(made, 1.0)).result()
        assert isinstance(told, StoreError) and "retry with the same" in str(told)
        assert type(error).__name__ in writer.problems["ads"] and writer.failures["ads", "error"] == 1
        assert (writer.problem, list(writer.problems)) == ("", ["ads"])  # the other goes on
        monkeypatch.setattr(store, "append", append)
        assert send(writer, other, Decide(CONTEXT)).result()[0].row.ranking[0] in "ab"
        (again,) = send(writer, model, Reward(made, 1.0)).result()
        assert again.status is (Status.DUPLICATE if after else Status.ACCEPTED)
        assert (writer.problems, model.lookup(made).learned, model.verify()) == ({}, 1.0, [])
    finally:
        writer.close()


@pytest.mark.parametrize("error", [MemoryError("no memory"), OSError("input/output"), KeyboardInterrupt()])
def test_an_error_after_a_commit_is_mended_before_anything_is_saved(
    store: Gate, model: Model, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = model.decide(CONTEXT).id
    monkeypatch.setattr(module, "PAUSE", 30.0)
    writer = Writer(lambda: [model])
    posterior = model.state.posterior.ages[0]
    learn = posterior.learn

    def fails(*given: Any) -> None:
        learn(*given)
        raise error

    try:
        monkeypatch.setattr(posterior, "learn", fails)
        told = send(writer, model, Reward(made, 1.0)).result()
        if isinstance(error, Exception):
            assert told[0].status is Status.ACCEPTED  # it is stored
        else:
            assert isinstance(told, StoreError)
        assert type(error).__name__ in writer.problem
        (again,) = send(writer, model, Reward(made, 1.0)).result()
        assert again.status is Status.DUPLICATE
        assert (writer.problem, model.rebuilt) == ("", 1)
    finally:
        writer.close()
    assert store.snapshots("ads")[0].seq == model.state.seq
    assert differences(model.state, Model("ads", None, store, clock=lambda: 1_800_000_000.0).state) == []


def test_a_mistake_of_ours_in_one_request_is_counted(
    writer: Writer, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(model.state.requests, "encode", fails)
    assert isinstance(send(writer, model, Decide(CONTEXT)).result(), RuntimeError)
    assert (writer.failures["ads", "error"], writer.problem) == (1, "")


def test_a_clock_that_is_wrong_is_a_problem_of_its_model_until_it_is_right() -> None:
    store, now = MemoryStore(), [1_800_000_000.0, 1_800_000_000.0]
    table = ModelSettings.from_table(TABLE)
    ads, news = (Model(name, table, store, clock=partial(now.__getitem__, i)) for i, name in enumerate(("ads", "news")))
    ads.decide(CONTEXT)
    now[0] -= 7200.0
    writer = Writer(lambda: [ads, news])
    try:
        told = send(writer, ads, Decide(CONTEXT)).result()
        assert isinstance(told, ClockError) and "7200 seconds ahead" in writer.problems["ads"]
        assert writer.failures["ads", "clock"] >= 1 and writer.problem == ""
        assert send(writer, news, Decide(CONTEXT)).result()[0].row.ranking[0] in "ab"
        now[0] += 7200.0
        for _ in range(1_000):
            if not writer.problems:
                break
            threading.Event().wait(0.01)
        assert writer.problems == {} and send(writer, ads, Decide(CONTEXT)).result()[0].row
    finally:
        writer.close()


def test_closing_does_not_wait_for_ever_for_a_store_that_hangs(
    store: Gate, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.05)
    monkeypatch.setattr(module, "STALLED", 0.0)
    writer = Writer(lambda: [model])
    store.open.clear()
    first = send(writer, model, Decide(CONTEXT))
    assert store.entered.wait(30)
    second = send(writer, model, Decide(CONTEXT))
    assert "in progress" in writer.problem
    assert writer.close() is False
    assert all("has not answered in time" in str(each.result()) for each in (first, second))
    store.open.set()


def test_a_model_that_comes_later_has_a_thread_of_its_own(store: Gate, model: Model, writer: Writer) -> None:
    clock = [1_800_000_000.0]
    table = {**TABLE, "silence": {"kind": "mature", "seconds": 1.0}}
    later = Model("later", ModelSettings.from_table(table), store, clock=lambda: clock[0])
    later.decide(CONTEXT)
    writer.watch_over(later)
    clock[0] += 2.0
    for _ in range(1_000):
        if not later.in_flight:
            break
        threading.Event().wait(0.01)
    assert later.in_flight == 0  # without a request
