"""A model that stops and goes on: refusals of the store, windows, restarts, purging, threads, processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, Clock, model_of, settings_of

from belated.decisions import (
    Decide,
    Decided,
    ForgottenError,
    MemoryStore,
    Model,
    SQLiteStore,
    Status,
    StoreError,
    commit,
)
from belated.decisions import _core as core
from belated.decisions import _engine as engines
from belated.decisions._ids import new_id
from belated.decisions._snapshot import _digest, differences, restore
from belated.decisions._store.postgres import PostgresStore
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError


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
    assert [len(batch.answers) for batch in batches] == [3, 2]
    assert (one.summary()["decisions"], two.summary()["decisions"]) == (3, 2)
    assert one.verify() == two.verify() == []
    (made, *_) = batches[0].answers
    assert isinstance(made, Decided) and two.feedback(made.row.id, 1.0).status is Status.UNKNOWN


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


def test_a_clock_that_is_set_back_a_little_does_no_harm() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "mature", "seconds": 10.0})
    first = model.decide(CONTEXT)
    clock.now -= 200.0
    second = model.decide(CONTEXT)
    assert model.lookup(second.id).made == model.lookup(first.id).made
    clock.now += 209.0
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
    monkeypatch.setattr(core, "CACHED", 20)  # most histories have to be read again
    clock, other = Clock(), Clock()
    whole = model_of(clock=other, silence=silence, forgetting={"decisions": 40})
    play(whole, other, 120, seed=1)
    model = model_of(store=reopen(), clock=clock, silence=silence, forgetting={"decisions": 40})
    play(model, clock, 120, seed=1)
    before = model.summary()
    model = Model("ads", None, reopen(), clock=clock)
    after = model.summary()
    # the sums are the same to the bit; the noise is made of what was computed from them row by row, or now at once
    assert after.pop("noise") == pytest.approx(before.pop("noise"), rel=1e-12)
    assert {k: v for k, v in after.items() if k != "outcomes"} == {k: v for k, v in before.items() if k != "outcomes"}
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
    with pytest.raises(DamagedFileError, match="cannot be used"):
        restore(again._new_state(), row._replace(arrays=row.arrays[:-8]))


def test_a_snapshot_of_another_layout_is_rejected() -> None:
    model = model_of()
    play(model, Clock(), 20, seed=3)
    model.snapshot()
    row = model.store.snapshots("ads")[0]
    header = row.header.replace('"layout": 2', '"layout": 1')
    with pytest.raises(DamagedFileError, match="its layout must be an integer"):
        restore(model._new_state(), row._replace(header=header, digest=_digest(header, row.arrays)))


def test_purging_keeps_what_was_learned(reopen: Callable[[], Any]) -> None:
    clock = Clock()
    model = model_of(store=reopen(), clock=clock, silence={"kind": "mature", "seconds": 20.0})
    ids = play(model, clock, 100, seed=4)
    weights, horizon = model.weights(), model.lookup(ids[50]).made
    gone = model.purge(horizon)
    assert 0 < gone <= 50
    model.snapshot()  # as a service does when it stops: what was purged must still be in a base
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
    assert differences(one.state, two.state) == [] and one.settings.names[-1] == "d"
    for store in stores:
        store.close()


WORKER = """
import sys
from belated.decisions import Model
from belated.decisions._store.postgres import PostgresStore
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
