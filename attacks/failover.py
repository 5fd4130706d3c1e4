"""A store that is restored to an older state under a live model: rejected, and neither read nor written."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from attacks.stores import TABLES, model_of, play
from attacks.tally import Tally
from belated.decisions import Model, SQLiteStore, StoreError


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Replace a file, and the files of a PostgreSQL server, by an older copy."""
    for number in range(tries):
        if tally.left():
            with tally.attempt(f"file {number}"):
                _replace_file(folder / str(number) / "d.db", rng, in_place=bool(number % 2))
    if _tool("initdb") is None:
        tally.notes.append("without PostgreSQL: initdb is not there")
        return
    with _server(folder / "server") as server:
        for number in range(max(1, tries // 10)):
            if tally.left():
                with tally.attempt(f"server {number}"):
                    _restore_server(server, rng)


def _replace_file(path: Path, rng: np.random.Generator, *, in_place: bool) -> None:
    store = SQLiteStore(path, durable=False)
    model = model_of(store, str(rng.choice(list(TABLES))))
    play(model, 5, rng)
    store.backup(path.with_name("older.db"))
    play(model, 5, rng)
    if in_place:
        path.write_bytes(path.with_name("older.db").read_bytes())
    else:
        path.with_name("older.db").rename(path)
    _check_refusals(model)
    store.close()


def _check_refusals(model: Model) -> None:
    for _ in range(30):
        session = None if model.settings.sessions is None else "another visit"
        for call in (lambda: model.decide({"x": 0.1, "y": 1.0}, session=session), model.snapshot):  # noqa: B023
            try:
                call()
            except StoreError:
                continue
            raise AssertionError("acknowledged, and not in the log that was learned from")


class _Server:
    """A PostgreSQL server whose files can be restored to an older state."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self._as: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            self._as = ["runuser", "-u", "postgres", "--"]
            shutil.chown(folder, "postgres")
            for each in (folder, *folder.parents[:-2]):
                each.chmod(0o755)
        self.address = f"postgresql://postgres@/postgres?host={folder}"
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "-N")

    def _run(self, name: str, *arguments: str) -> None:
        tool = _tool(name)
        assert tool is not None
        subprocess.run([*self._as, tool, *arguments], check=True, cwd="/", capture_output=True)

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "fast", "stop")


def _tool(name: str) -> str | None:
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return str(places[0]) if places else shutil.which(name)


@contextmanager
def _server(folder: Path) -> Iterator[_Server]:
    folder.mkdir(parents=True)
    server = _Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _restore_server(server: _Server, rng: np.random.Generator) -> None:
    from belated.decisions._store.postgres import PostgresStore

    name, kind = f"m{rng.integers(2**40)}", str(rng.choice(list(TABLES)))
    store: Any = PostgresStore(server.address)
    model = model_of(store, name, kind)
    play(model, 10, rng)
    server.stop()
    subprocess.run(["cp", "-a", server.data, server.folder / "older"], check=True)
    server.start()
    _again(lambda: play(model, 10, rng))
    server.stop()
    shutil.rmtree(server.data)
    (server.folder / "older").rename(server.data)
    server.start()
    _check_refusals(model)  # the log is shorter
    other: Any = PostgresStore(server.address)
    fresh = model_of(other, name, kind)
    assert fresh.summary()["decisions"] == 10
    play(fresh, 20, rng)
    _check_refusals(model)  # the log is another one
    fresh.snapshot()
    again = model_of(other, name, kind)
    assert fresh.verify() == again.verify() == [] and again.summary()["decisions"] == 30
    store.close()
    other.close()


def _again(call: Any) -> None:
    """Retry a call after a broken connection."""
    try:
        call()
    except StoreError:
        call()
