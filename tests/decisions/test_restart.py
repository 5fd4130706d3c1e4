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
    ConflictError,
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
from belated.decisions._rows import DecisionRow
from belated.decisions._snapshot import LAYOUT, _digest, differences, restore
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
    assert again.summary()["decisions"] == 20
    (sentence,) = again.verify()
    assert "snapshot at position" in sentence and "digest" in sentence
    with pytest.raises(DamagedFileError, match="cannot be used"):
        restore(again._new_state(), row._replace(arrays=row.arrays[:-8]))


def test_a_snapshot_of_another_layout_is_rejected() -> None:
    model = model_of()
    play(model, Clock(), 20, seed=3)
    model.snapshot()
    row = model.store.snapshots("ads")[0]
    header = row.header.replace(f'"layout": {LAYOUT}', '"layout": 1')
    with pytest.raises(DamagedFileError, match="its layout must be an integer"):
        restore(model._new_state(), row._replace(header=header, digest=_digest(header, row.arrays)))


def test_a_damaged_or_missing_base_is_never_passed_over(reopen: Callable[[], Any]) -> None:
    clock = Clock()
    model = model_of(store=reopen(), clock=clock)
    play(model, clock, 20, seed=3)
    model.purge(clock.now)
    play(model, clock, 20, seed=4)
    model.snapshot()
    later, base = model.store.snapshots("ads")
    assert (later.base, base.base) == (0, 1)
    store = model.store
    store.save_snapshot(later._replace(arrays=later.arrays[:-8]))
    store.save_snapshot(base._replace(header=base.header.replace('"made": 20', '"made": 21')))
    with pytest.raises(DamagedFileError, match="digest"):
        Model("ads", None, reopen(), clock=clock)
    store = reopen()
    if isinstance(store, MemoryStore):
        store._snapshots["ads"] = []
    else:
        with store._transaction():
            store._write("DELETE FROM snapshot WHERE model = ?", [("ads",)])
    with pytest.raises(DamagedFileError, match="the base snapshot of 'ads' is missing"):
        Model("ads", None, reopen(), clock=clock)


def test_a_missing_base_is_found_while_the_model_lives(reopen: Callable[[], Any]) -> None:
    clock = Clock()
    store = reopen()
    model = model_of(store=store, clock=clock)
    play(model, clock, 20, seed=3)
    model.purge(clock.now)
    assert model.verify() == []
    if isinstance(store, MemoryStore):
        store._snapshots["ads"] = []
    else:
        with store._transaction():
            store._write("DELETE FROM snapshot WHERE model = ?", [("ads",)])
    (sentence,) = model.verify()
    assert "the base snapshot of 'ads' is missing" in sentence


CHANGES = {
    "a feature": "UPDATE decision SET features = zeroblob(24) WHERE seq = 1",
    "a context": "UPDATE decision SET context = '{}' WHERE seq = 1",
    "a probability": "UPDATE decision SET probability = probability / 2 WHERE seq = 1",
    "an action": "UPDATE decision SET ranking = '[]' WHERE seq = 1",
    "no action": "UPDATE decision SET ranking = '[' WHERE seq = 1",
    "a reward": "UPDATE event SET reward = reward + 1 WHERE kind = 'reward'",
    "a lost row": "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)",
    "a lost decision": "DELETE FROM decision WHERE seq = 1",
    "two rows": "UPDATE decision SET seq = 1000 - seq WHERE seq > 1",
    "the end": "UPDATE head SET chain = zeroblob(16)",
    "settings": "UPDATE settings SET text = replace(text, '0.002', '0.003')",
    "a time of purging": "UPDATE purged SET before = before + 1",
    "a gap": "UPDATE gap SET last = last + 1",
    "a place": "UPDATE snapshot SET seq = seq - 1",
    "a base": "UPDATE snapshot SET base = 1 - base",
}


@pytest.mark.parametrize("what", list(CHANGES))
def test_a_changed_row_is_found_without_any_snapshot(what: str, tmp_path: Path) -> None:
    clock = Clock()
    store = SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock)
    if what in ("a time of purging", "a gap", "a place", "a base"):
        play(model, clock, 10, seed=5)
        model.purge(clock.now)
    play(model, clock, 20, seed=6)
    assert model.verify() == []
    assert store._connection.execute(CHANGES[what]).rowcount > 0
    store.close()
    store = SQLiteStore(tmp_path / "d.db", read_only=True)
    assert store.check("ads") != []
    store.close()


def restored_later(address: str) -> Callable[[], None]:
    """Return a function that brings all tables back to what they hold now, as a restore from a backup does."""
    import psycopg

    names = ("decision", "event", "head", "gap", "settings", "snapshot", "purged", "erased", "belated")
    with psycopg.connect(address, autocommit=True) as connection:
        kept = {name: connection.execute(f"SELECT * FROM belated.{name}").fetchall() for name in names}

    def restore() -> None:
        with psycopg.connect(address) as connection:
            for name, rows in kept.items():
                connection.execute(f"TRUNCATE belated.{name}")
                for row in rows:
                    connection.execute(f"INSERT INTO belated.{name} VALUES ({', '.join(['%s'] * len(row))})", row)

    return restore


def test_a_server_that_is_restored_to_an_older_state_is_refused(postgres_address: str) -> None:
    clock = Clock()
    store, other = PostgresStore(postgres_address), PostgresStore(postgres_address)
    model = model_of(store=store, clock=clock)
    ids = play(model, clock, 20, seed=7)
    restore_tables = restored_later(postgres_address)
    ids += play(model, clock, 10, seed=8)
    restore_tables()

    def refused() -> None:
        for call in (
            lambda: model.decide(CONTEXT),
            lambda: model.feedback(ids[0], 1.0, event="new"),
            lambda: model.feedback(ids[-1], 1.0, event="new"),
            lambda: model.lookup(ids[-1]),
            lambda: model.tick(),
            lambda: model.snapshot(),
            lambda: model.purge(clock.now),
        ):
            with pytest.raises(StoreError, match="is not the one that was learned"):
                call()

    refused()  # the log is shorter
    fresh = Model("ads", None, other, clock=clock)
    assert fresh.verify() == [] and fresh.summary()["decisions"] == 20
    play(fresh, clock, 30, seed=9)
    refused()  # the log has other rows at these places
    fresh.snapshot()
    assert fresh.verify() == []
    again = Model("ads", None, other, clock=clock)
    assert again.summary()["decisions"] == 50 and again.verify() == []
    store.close()
    other.close()


def test_a_batch_is_refused_if_the_server_was_restored_after_it_was_prepared(postgres_address: str) -> None:
    store = PostgresStore(postgres_address)
    model = model_of(store=store)
    model.decide(CONTEXT)
    restore_tables = restored_later(postgres_address)
    model.decide(CONTEXT)
    batch = model.prepare([Decide(context=CONTEXT)])
    restore_tables()
    with pytest.raises(StoreError, match="is not the one that was learned"):
        commit(store, [batch])
    assert store.last("ads") == 1
    store.close()


def test_another_store_at_the_same_address_is_refused(postgres_address: str) -> None:
    import psycopg

    store = PostgresStore(postgres_address)
    model = model_of(store=store)
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA belated CASCADE")
    PostgresStore(postgres_address).close()
    store._connection.close()
    with pytest.raises(StoreError, match="replaced by another one"):
        model.decide(CONTEXT)
    store.close()


def test_a_snapshot_of_another_log_is_passed_over(tmp_path: Path) -> None:
    clock = Clock()
    one, two = (SQLiteStore(tmp_path / name, durable=False) for name in ("one.db", "two.db"))
    foreign = model_of(store=one, clock=clock)
    play(foreign, clock, 20, seed=1)
    foreign.snapshot()
    model = model_of(store=two, clock=clock)
    play(model, clock, 20, seed=2)
    (row,) = one.snapshots("ads")
    with pytest.raises(StoreError, match="is not the one that was learned"):
        two.save_snapshot(row)
    with two._transaction():
        two._insert_snapshot(row)
    again = Model("ads", None, two, clock=clock)
    assert differences(again.state, model.state) == []
    one.close()
    two.close()


@pytest.mark.parametrize("how", ["replaced", "overwritten", "deleted"])
def test_a_file_that_is_replaced_underneath_is_refused(how: str, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store)
    model.decide(CONTEXT)
    store.backup(tmp_path / "copy.db")
    model.decide(CONTEXT)
    if how == "replaced":
        (tmp_path / "copy.db").rename(tmp_path / "d.db")
    elif how == "overwritten":
        (tmp_path / "d.db").write_bytes((tmp_path / "copy.db").read_bytes())
    else:
        (tmp_path / "d.db").unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="must be reopened: its file was replaced"):
            model.decide(CONTEXT)
    with pytest.raises(StoreError, match="must be reopened"):
        model.snapshot()
    store.close()


@pytest.mark.parametrize("keep_learned", [True, False])
def test_what_is_erased_is_gone_and_what_it_taught_as_wanted(reopen: Callable[[], Any], keep_learned: bool) -> None:
    clock = Clock()
    model = model_of(store=reopen(), clock=clock, silence={"kind": "mature", "seconds": 20.0})
    ids = play(model, clock, 60, seed=4)
    keyed = model.decide(CONTEXT, key="a person")
    clock.now += 100.0
    model.tick()
    model.feedback(keyed.id, 1.0)
    before = model.weights()
    assert model.erase([ids[5], ids[40], ids[5]], keys=["a person"], keep_learned=keep_learned) == 3
    assert model.verify() == []
    same = all(np.array_equal(model.weights()[name], each) for name, each in before.items())
    assert same == keep_learned
    for gone in (ids[5], ids[40], keyed.id):
        with pytest.raises(ForgottenError):
            model.lookup(gone)
        assert model.feedback(gone, 1.0).forgotten
        with pytest.raises(ForgottenError):
            model.erase([gone], keep_learned=True)
    with pytest.raises(UnknownNameError, match="a person"):
        model.erase(keys=["a person"], keep_learned=True)
    with pytest.raises(InvalidInputError, match="keep_learned"):
        model.erase([ids[0]], keep_learned=1)  # type: ignore[arg-type]
    assert sum(model.summary()["states"].values()) == 58
    weights = model.weights()
    play(model, clock, 5, seed=5)
    model = Model("ads", None, reopen(), clock=clock)
    assert model.verify() == [] and sum(model.summary()["states"].values()) == 63
    assert model.decide(CONTEXT, key="a person").id != keyed.id  # nobody knows the key any more
    assert set(weights) == set(model.weights())


@pytest.mark.parametrize("how", ["erased", "purged"])
def test_no_byte_of_what_is_dropped_is_left_in_the_files(how: str, tmp_path: Path) -> None:
    clock, rng = Clock(), np.random.default_rng(0)
    store = SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock)
    for _ in range(300):  # keys in no order, so that pages of the index are split
        clock.now += 1.0
        model.decide({"x": float(rng.random()), "y": 1.0}, key=f"{rng.integers(2**62)} of a person")
    rows = [row for row in store.log("ads") if isinstance(row, DecisionRow)]
    gone = rows[:150] if how == "purged" else [rows[int(i)] for i in rng.choice(300, 20, replace=False)]
    if how == "purged":
        assert model.purge(gone[-1].made + 0.5) == 150
    else:
        model.erase([row.id for row in gone], keep_learned=True)
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for row in gone:
        assert row.key is not None
        for trace in (row.id.encode(), row.key.encode(), row.context.encode(), row.features):
            assert trace not in content
    left = next(row for row in rows if row not in gone)
    assert left.context.encode() in content and left.features in content  # so that the search can fail
    assert model.verify() == []
    store.close()


def test_what_is_erased_is_unlearned_as_if_it_had_been_cancelled() -> None:
    clocks = Clock(), Clock()
    one, two = (model_of(clock=clock) for clock in clocks)
    ids = [play(model, clock, 40, seed=6) for model, clock in zip((one, two), clocks, strict=True)]
    rewarded = [i for i, name in enumerate(ids[0]) if one.lookup(name).learned is not None][:3]
    one.erase([ids[0][i] for i in rewarded], keep_learned=False)
    for i in rewarded:
        two.cancel(ids[1][i])
    for name, weights in two.weights().items():
        np.testing.assert_array_equal(one.weights()[name], weights)


def test_what_one_process_drops_others_drop(postgres_address: str) -> None:
    clock = Clock()
    stores = [PostgresStore(postgres_address) for _ in range(2)]
    one = model_of(store=stores[0], clock=clock)
    two = Model("ads", None, stores[1], clock=clock)
    ids = play(one, clock, 40, seed=1)
    two.catch_up()
    one.erase([ids[-1], ids[3]], keep_learned=False)
    for step in (lambda: two.decide(CONTEXT), lambda: one.purge(clock.now - 20.0), lambda: two.decide(CONTEXT)):
        clock.now += 1.0
        step()
        for model in (one, two):
            model.catch_up()
            assert model.verify() == []
        assert differences(one.state, two.state) == []
    late = two.prepare([Decide(context=CONTEXT)])
    clock.now += 1.0
    one.purge(clock.now)  # with the last row that the other has seen
    with pytest.raises(ConflictError):
        commit(stores[1], [late])
    assert two.decide(CONTEXT).id and two.verify() == []
    for store in stores:
        store.close()


def test_two_processes_that_start_on_an_empty_server_agree(postgres_address: str) -> None:
    class Slow(PostgresStore):
        """Looks before the other has written."""

        def settings(self, model: str) -> Any:
            found = super().settings(model)
            if not found and meanwhile:
                Model("ads", settings_of(), meanwhile.pop())
            return found

    meanwhile = [PostgresStore(postgres_address)]
    others = list(meanwhile)
    store = Slow(postgres_address)
    model = Model("ads", settings_of(floor=0.5), store)
    assert not meanwhile and (model.settings_version, model.settings.floor) == (2, 0.5)
    two = Model("ads", settings_of(floor=0.5), others[0])
    assert two.settings_version == 2 and two.decide(CONTEXT).id
    for each in (store, *others):
        each.close()


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
    with pytest.raises(UnknownNameError, match="which never existed"):
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
