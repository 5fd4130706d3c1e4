"""The start of the service, and what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import uvicorn
from commands import call, refused
from serving import CONTEXT, MODELS, Line, ask, free_port, start

from belated.decisions import MemoryStore, Model, SQLiteStore
from belated.errors import InvalidInputError
from belated.service import _serve
from belated.service._config import load_models
from belated.service._serve import is_loopback, listen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models.toml").write_text(MODELS)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("localhost.example.com", False), ("", False)],
)  # fmt: skip
def test_which_addresses_only_this_machine_can_reach(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here


def test_an_address_that_is_taken_is_refused_before_the_store_is_made(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        given = ["--store", folder / "d.db", "--config", folder / "models.toml", "--port", port]
        message = refused(call("serve", *given))
    assert f"127.0.0.1:{port}" in message
    assert not (folder / "d.db").exists()


def test_an_address_is_ours_before_anybody_is_let_in() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(InvalidInputError, match=f"must be a free address, got 127.0.0.1:{port}: Address"):
            listen("127.0.0.1", port)


def test_a_password_is_neither_shown_at_the_start_nor_in_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2"
    message = refused(call("serve", "--store", f"postgresql://me:{secret}@127.0.0.1:1/db", "--port", free_port()))
    assert "PostgreSQL store cannot be reached" in message
    assert secret not in message
    for odd in (f"{secret} x@host", f"a@{secret}@host", f"{secret}/x@host", f"a:{secret}@host", f"{secret}%zz@[::1"):
        message = refused(call("serve", "--store", f"postgresql://me:{odd}/db", "--port", free_port()))
        assert "percent-encoded" in message
        assert secret not in message
    told: list[str] = []
    monkeypatch.setattr(_serve, "open_store", lambda where: MemoryStore())
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr("gc.freeze", lambda: None)
    _serve.serve(f"postgresql://me:{secret}@host/db", None, host="127.0.0.1", port=free_port(), tell=told.append)
    assert "serving no model yet from postgresql://me:***@host/db at http://127.0.0.1:" in told[0]


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")
def test_the_files_of_a_store_are_its_owners_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        store = SQLiteStore(folder / "d.db")
        Model("ads", load_models(folder / "models.toml")["ads"], store)
        store.backup(folder / "copy.db")
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.db*")}
        store.close()
    finally:
        os.umask(before)
    assert found == dict.fromkeys(["d.db", "d.db-wal", "d.db-shm", "copy.db"], 0o600)


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_a_second_process_is_refused_and_a_signal_answers_what_is_waiting(folder: Path, told: signal.Signals) -> None:
    port = free_port()
    process = start(folder, port)
    second = [sys.executable, "-m", "belated._cli", "serve", "--store", "d.db", "--port", str(free_port())]
    ended = subprocess.run(second, cwd=folder, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "in use by another process" in ended.stderr
    assert "Traceback" not in ended.stderr

    many = [CONTEXT] * 300
    answers: list[tuple[int, list[dict[str, str]]]] = []
    lines = [Line(port) for _ in range(8)]
    for line in lines:
        assert line.ask("/v1/models")[0] == 200  # connected
    threads = [
        threading.Thread(target=lambda line=line: answers.append(line.ask("/v1/models/ads/decide/batch", many)))
        for line in lines
    ]
    for thread in threads:
        thread.start()
    while not answers:  # all are sent, and some still wait
        threading.Event().wait(0.001)
    process.send_signal(told)
    for thread in threads:
        thread.join(60)
    for line in lines:
        line.close()
    assert process.wait(60) == 0
    assert [code for code, _ in answers] == [200] * 8
    process = start(folder, port)
    try:
        for _, made in answers:
            assert ask(port, f"/v1/decisions/{made[-1]['id']}")["status"] == "in flight"
        assert ask(port, "/v1/models/ads")["decisions"] == 8 * 300
    finally:
        process.kill()
        process.wait()


def test_a_terminal_that_closes_ends_it_as_sigterm_does(folder: Path) -> None:
    port = free_port()
    process = start(folder, port)
    made = ask(port, "/v1/models/ads/decide", CONTEXT)["id"]
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    store = SQLiteStore(folder / "d.db")
    (snapshot,) = store.snapshots("ads")
    assert snapshot.seq == store.last("ads") == 1 and store.decision(made) is not None
    store.close()
