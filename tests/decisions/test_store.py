"""One suite for all stores: rows come back as they went in, all of a batch or none, in order, after a restart, too."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from belated.decisions import ConflictError, MemoryStore, SQLiteStore, StoreError, StoreFullError
from belated.decisions._rows import (
    ACTIVATE,
    DROP,
    REWARD,
    TICK,
    DecisionRow,
    EventRow,
    SettingsRow,
    SnapshotRow,
)
from belated.decisions._store.chain import Head, link_decision, link_event
from belated.decisions._store.postgres import PostgresStore
from belated.errors import DamagedFileError, InvalidInputError

Open = Callable[[], Any]


def decision(name: str, **changes: Any) -> DecisionRow:
    given = {
        "seq": 0, "model": "m", "id": name, "number": 1, "made": 10.0, "key": None, "digest": None, "settings": 1,
        "version": 0, "context": '{"x":0.1}', "actions": '["a","ü"]', "ranking": ("ü",),
        "probabilities": b"\0\1\2" * 8, "probability": 0.1, "suggestion": None, "features": bytes(range(16)),
        "active": 1, "due": None,
    }  # fmt: skip
    return DecisionRow(**{**given, **changes})


def event(name: str, kind: str = REWARD, **changes: Any) -> EventRow:
    given = {
        "seq": 0, "model": "m", "id": name, "kind": kind, "event": "", "version": 0,
        "reward": 1.0 if kind == REWARD else None, "slot": None, "received": 11.0, "observed": None, "counted": 1,
        "due": None,
    }  # fmt: skip
    return EventRow(**{**given, **changes})


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


def test_rows_come_back_as_they_went_in(open_store: Open) -> None:
    rows: list[Any] = [
        decision("one", key="k", digest=b"d" * 16, probabilities=None, probability=None, suggestion="a"),
        event("one", reward=-0.1, event="e", version=2, slot=1, observed=3.5),
        decision("two", due=15.25, active=0),
        event("", TICK, due=15.5),
        event("two", ACTIVATE, due=20.0),
    ]
    open_store().append(rows[:3])
    open_store().append(rows[3:])
    store = open_store()
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    assert list(store.log("m")) == rows
    assert list(store.log("m", rows[0].seq, rows[3].seq)) == rows[1:4]
    assert list(store.log("other")) == []
    assert (store.last("m"), store.last("other")) == (rows[4].seq, 0)
    assert store.decision("one") == store.keyed("m", "k") == rows[0]
    assert store.decision("two", before=rows[2].seq) is None
    assert store.decision("three") is store.keyed("m", "l") is store.keyed("n", "k") is None
    assert store.events("two") == (rows[4],)
    assert store.events("one", before=rows[1].seq) == ()


def test_a_batch_is_kept_whole_or_not_at_all(open_store: Open) -> None:
    store = open_store()
    store.append([decision("one", key="k"), event("one", event="e")])
    for bad in (
        [decision("two"), decision("one")],
        [decision("two"), decision("three", key="k")],
        [decision("two"), event("one", event="e", reward=7.0)],
        [decision("two"), event("two"), event("two")],
        [decision("two", key="l"), decision("three", key="l")],
    ):
        with pytest.raises(ConflictError):
            store.append(bad)
        assert store.decision("two") is None
        assert len(list(store.log("m"))) == 2
    store.append([event("one", event="e", version=1), decision("two", model="n", key="k"), event("one", event="f")])
    assert len(open_store().events("one")) == 3


def test_every_column_is_in_the_digest() -> None:
    given = {"key": "k", "digest": b"d", "suggestion": "a", "due": 20.0, "session": "s", "step": 2, "plan": 3}
    rows = (
        decision("d1", seq=7, version=4, votes=b"v" * 8, **given),
        event("e1", seq=8, event="x", version=4, slot=1, observed=3.0, due=4.0),
    )
    for row in rows:
        values, link = list(attrgetter(*row.__slots__)(row)), link_event
        if isinstance(row, DecisionRow):
            values[values.index(row.ranking)], link = '["a"]', link_decision
        whole = link(b"before", values)
        assert link(b"after", values) != whole
        for place, field in enumerate(fields(row)[:-1]):
            for other in (type(values[place])(), *([None] if "None" in str(field.type) else [])):
                changed = [*values[:place], other, *values[place + 1 :]]
                assert link(b"before", changed) != whole, (field.name, other)


def test_windows_end_in_order(open_store: Open) -> None:
    store = open_store()
    rows = [decision(f"{i}", due=float(10 - i // 2)) for i in range(8)]
    store.append([*rows, decision("none"), decision("other", model="n", due=8.0)])
    store.append([event("none", ACTIVATE, due=8.5)])
    ends = [(float(7 + i // 2), f"{j}") for i, j in enumerate([6, 7, 4, 5, 2, 3, 0, 1])]
    ends.insert(4, (8.5, "none"))
    assert store.due("m", 0.0, 100.0, None, 100) == ends
    assert store.due("m", 7.0, 9.0, None, 100) == ends[2:7]
    assert store.due("m", 0.0, 100.0, None, 1) == ends[:2]  # both at the same moment
    assert store.due("m", 0.0, 100.0, rows[3].seq, 100) == [(9.0, "2"), (10.0, "0"), (10.0, "1")]
    assert (store.next_due("m", 0.0), store.next_due("m", 8.0), store.next_due("m", 10.0)) == (7.0, 8.5, None)


def test_settings_and_snapshots(open_store: Open) -> None:
    store = open_store()
    assert (store.settings("m"), store.models(), store.snapshots("m")) == ([], [], [])
    for version in (1, 2):
        store.add_settings(SettingsRow("m", version, 1.0, f"{{{version}}}"))
    with pytest.raises(ConflictError, match="version 2"):
        store.add_settings(SettingsRow("m", 2, 1.0, "x"))
    rows = [decision(f"{i}") for i in range(9)]
    store.append(rows)
    snapshots = [
        SnapshotRow("m", row.seq, 1.0, int(row.seq == 1), "{}", b"\0", b"\1", row.chain)
        for row in rows
        if row.seq in (1, 5, 7, 9)
    ]
    for each in snapshots:
        store.save_snapshot(each)
    store.save_snapshot(snapshots[-1])
    store = open_store()
    assert store.models() == ["m"]
    assert [row.text for row in store.settings("m")] == ["{1}", "{2}"]
    assert store.snapshots("m") == [snapshots[3], snapshots[2], snapshots[0]]  # the last two, and the base


def test_purging_drops_what_is_old_and_over(open_store: Open) -> None:
    store = open_store()
    store.append(
        [
            decision("old", made=1.0, key="k"), event("old"), decision("open", made=1.0, due=30.0),
            decision("shown", made=1.0, active=0), event("shown", ACTIVATE, due=30.0), decision("new", made=9.0),
            event("", TICK, due=5.0), decision("over", made=2.0, due=5.0), decision("else", model="n", made=1.0),
        ]
    )  # fmt: skip
    assert store.purged("m") == 0.0
    base = drop(store, ["old", "over"], before=5.0)
    store = open_store()
    assert [row.id for row in store.log("m") if isinstance(row, DecisionRow)] == ["open", "shown", "new"]
    assert [row.kind for row in store.log("m") if isinstance(row, EventRow)] == [ACTIVATE, DROP]  # no tick is left
    assert store.events("old") == () and store.keyed("m", "k") is None and store.decision("else") is not None
    assert store.snapshots("m") == [base]
    assert (store.purged("m"), store.purged("n")) == (5.0, 0.0)
    store.append([decision("later")])
    assert store.last("m") > base.seq  # a place is never given twice
    assert store.check("m") == store.check("n") == []


def drop(store: Any, ids: list[str], before: float | None = None) -> SnapshotRow:
    """Drop decisions, and return the base."""
    row, made = event("", DROP), list[SnapshotRow]()
    last = store.last("m")

    def base() -> SnapshotRow:
        made.append(SnapshotRow("m", row.seq, 9.0, 1, "{}", b"", b"", row.chain))
        return made[0]

    store.drop(ids, row, Head(last, store.chain("m", last)), base, before)
    return made[0]


def test_what_is_dropped_leaves_the_rest_of_the_log_whole(open_store: Open) -> None:
    store = open_store()
    for i in range(12):
        store.append([decision(f"{i}"), event(f"{i}"), decision(f"n{i}", model="n")])
    for gone in (["3"], ["4", "9"], ["0", "2", "11"]):
        drop(store, gone)
        store = open_store()
        assert store.check("m") == store.check("n") == []
        assert all(store.forgotten("m", name) and store.decision(name) is None for name in gone)
    assert not store.forgotten("m", "5") and store.purged("m") == 0.0
    assert [row.id for row in store.log("m") if isinstance(row, DecisionRow)] == ["1", "5", "6", "7", "8", "10"]
    places = [row.seq for row in store.log("m")]
    assert [row.seq for row in store.log("m", 12, 24)] == [each for each in places if 12 < each <= 24]


def test_nothing_is_dropped_if_the_log_has_grown(open_store: Open) -> None:
    store = open_store()
    store.append([decision("one")])
    if isinstance(store, MemoryStore):
        return  # nobody else writes to it
    with pytest.raises(ConflictError, match="has grown"):
        store.drop(["one"], event("", DROP), Head(0, b""), lambda: pytest.fail("no base is needed"), None)
    assert store.decision("one") is not None and store.check("m") == []


def test_sixteen_threads_report_the_same_event(open_store: Open) -> None:
    store = open_store()
    store.append([decision(f"{i}") for i in range(10)])
    outcomes: list[str] = []

    def report() -> None:
        for i in range(10):
            try:
                store.append([event(f"{i}")])
                outcomes.append("kept")
            except ConflictError:
                outcomes.append("known")

    threads = [threading.Thread(target=report) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("kept"), outcomes.count("known")) == (10, 150)
    rows = list(store.log("m"))
    assert len({row.seq for row in rows}) == len(rows) == 20


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db")
    with pytest.raises(StoreError, match="in use by another process"):
        SQLiteStore(tmp_path / "store.db")
    script = "import sys; from belated.decisions._store.sqlite import SQLiteStore; SQLiteStore(sys.argv[1])"
    other = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True)
    assert "in use by another process" in other.stderr
    reader = SQLiteStore(tmp_path / "store.db", read_only=True)  # export and the like may look on
    store.append([decision("one")])
    assert reader.decision("one") is not None
    with pytest.raises(StoreError):
        reader.append([decision("two")])
    reader.close()
    store.close()
    SQLiteStore(tmp_path / "store.db").close()


OPENED = "import sys; from belated.decisions._store.sqlite import SQLiteStore; SQLiteStore(sys.argv[1])"


@pytest.mark.parametrize("how", ["symlink", "symlinked folder", "hard link", "another spelling", "no lock beside it"])
def test_a_second_process_is_refused_by_whatever_name(how: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "store.db"
    store = SQLiteStore(path)
    store.append([decision("one")])
    other = tmp_path / "other.db"
    if how == "symlink":
        other.symlink_to(path)
    elif how == "symlinked folder":
        (tmp_path / "link").symlink_to(tmp_path / "folder")
        other = tmp_path / "link" / "store.db"
    elif how == "hard link":
        other.hardlink_to(path)
    elif how == "another spelling":
        other = tmp_path / "folder" / ".." / "folder" / "store.db"
    else:
        for each in path.parent.glob("*lock*"):
            each.unlink()
        other = path
    words = "in use by another process|several hard links"
    with pytest.raises(StoreError, match=words):
        SQLiteStore(other)
    second = subprocess.run([sys.executable, "-c", OPENED, str(other)], capture_output=True, text=True)
    assert second.returncode and ("in use by another process" in second.stderr or "several hard links" in second.stderr)
    store.append([decision("two")])  # and the first is not disturbed
    assert len(list(store.log("m"))) == 2 and store.check("m") == []
    store.close()
    if how == "hard link":  # the log that goes with the file has the name of the other
        with pytest.raises(StoreError, match="several hard links"):
            SQLiteStore(other)
        with pytest.raises(StoreError, match="several hard links"):
            SQLiteStore(other, read_only=True)
        other.unlink()
        other = path
    again = SQLiteStore(other)
    assert len(list(again.log("m"))) == 2
    again.close()


def test_a_refused_attempt_takes_no_lock_of_the_first(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db")
    for _ in range(3):
        with pytest.raises(StoreError):
            SQLiteStore(tmp_path / "store.db")
    store.append([decision("one")])
    reader = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM decision'); c.close()"
    subprocess.run([sys.executable, "-c", reader, str(store.path)], check=True)
    assert (tmp_path / "store.db-wal").exists()  # whoever closes the file last removes it: that was not us
    store.append([decision("two")])
    assert len(list(store.log("m"))) == 2
    store.close()


class Failing:
    """A connection whose commits fail as a disk does."""

    def __init__(self, connection: Any, code: int) -> None:
        self._connection, self._code = connection, code

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self._code
            raise error
        return self._connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        (sqlite3.SQLITE_IOERR | 4 << 8, True),  # SQLITE_IOERR_FSYNC
        (sqlite3.SQLITE_CORRUPT, True),
        (sqlite3.SQLITE_NOTADB, True),
        (sqlite3.SQLITE_BUSY, False),
        (sqlite3.SQLITE_FULL, False),
    ],
)
def test_after_an_error_of_the_disk_nothing_more_is_written(code: int, broken: bool, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    store.append([decision("one")])
    whole = store._connection
    store._connection = Failing(whole, code)  # type: ignore[assignment]
    with pytest.raises(StoreError):
        store.append([decision("two")])
    store._connection = whole
    if broken:
        calls: tuple[Callable[[], None], ...] = (
            lambda: store.append([decision("three")]),
            lambda: store.add_settings(SettingsRow("m", 1, 1.0, "{}")),
            lambda: store.save_snapshot(SnapshotRow("m", 0, 1.0, 0, "{}", b"", b"")),
        )
        for call in calls:
            with pytest.raises(StoreError, match="must be reopened: disk I/O error"):
                call()
    else:
        store.append([decision("three")])
    assert store.decision("one") is not None  # what is there can be read
    store.close()
    again = SQLiteStore(tmp_path / "store.db", durable=False)
    again.append([decision("four")])
    assert [row.id for row in again.log("m")] == ["one", *([] if broken else ["three"]), "four"]
    again.close()


def test_files_that_are_no_stores_are_refused(tmp_path: Path) -> None:
    text, foreign, newer = tmp_path / "a.txt", tmp_path / "b.db", tmp_path / "c.db"
    text.write_text("not a database, but long enough to be one" * 100)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    connection.close()
    SQLiteStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("UPDATE belated SET schema_version = 4")
    connection.close()
    for path, words in ((text, "cannot be read"), (foreign, "not a store"), (newer, "version 4 of the tables")):
        for _ in range(2):  # and nothing stays locked
            with pytest.raises(DamagedFileError, match=words):
                SQLiteStore(path)
    with pytest.raises(FileNotFoundError):
        SQLiteStore(tmp_path / "none.db", read_only=True)


def test_a_schema_that_is_no_text_any_more_is_damage_and_not_a_raw_error(tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "d.db").close()
    content = (tmp_path / "d.db").read_bytes()
    place = content.rindex(b"CREATE TABLE")
    (tmp_path / "d.db").write_bytes(content[:place] + b"CREATE \xe5ABLE" + content[place + 12 :])
    with pytest.raises(DamagedFileError, match="cannot be read as a store"):
        SQLiteStore(tmp_path / "d.db", read_only=True)


def test_a_full_disk_loses_nothing_and_passes(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    store.append([decision("kept")])
    pages = store._read("PRAGMA page_count")[0][0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreFullError, match="no space left"):
        for i in range(100):
            store.append([decision(f"{i}-{j}", features=bytes(2000)) for j in range(10)])
    kept = [row.id for row in store.log("m")]
    assert kept[0] == "kept" and len(kept) % 10 == 1
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.append([decision("after")])
    assert [row.id for row in store.log("m")] == [*kept, "after"]
    assert store.check("m") == []
    store.close()


def test_a_backup_is_a_store(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.db", durable=False)
    store.append([decision("one")])
    store.backup(tmp_path / "copy.db")
    with pytest.raises(InvalidInputError, match="does not exist yet"):
        store.backup(tmp_path / "copy.db")
    copy = SQLiteStore(tmp_path / "copy.db")
    assert copy.decision("one") == store.decision("one")
    copy.close()
    store.close()


def test_commits_wait_for_the_disk_unless_told_otherwise(tmp_path: Path) -> None:
    for name, durable, level in (("a", True, 2), ("b", False, 1)):
        store = SQLiteStore(tmp_path / name, durable=durable)
        assert store._read("PRAGMA synchronous") == [(level,)]
        assert store._read("PRAGMA journal_mode") == [("wal",)]
        store.close()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="cannot be read as a store"):
        SQLiteStore(tmp_path)


def test_a_search_for_decisions_in_flight_ends_where_it_is_told_to(open_store: Open) -> None:
    store = open_store()
    store.append([decision("one", active=0), decision("two", number=2)])
    found = store.silent("m", 0, 10, 0.0)
    assert found is not None and found[1] == "two"
    assert store.silent("m", 0, found[0] - 1, 0.0) is None
    assert store.silent("m", found[0], 10, 0.0) is None
    assert all(size > 0 for size in store.sizes().values())
