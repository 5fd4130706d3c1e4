"""The start of the service, and what it refuses."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import call, refused
from serving import CONTEXT, MODELS, Line, ask, free_port, start

from belated.decisions import SQLiteStore
from belated.service._serve import is_loopback


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


def test_a_second_process_is_refused_and_sigterm_answers_what_is_waiting(folder: Path) -> None:
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
        threading.Thread(target=lambda line=line: answers.append(line.ask("/v1/models/ads/decide", many)))
        for line in lines
    ]
    for thread in threads:
        thread.start()
    while not answers:  # all are sent, and some still wait
        threading.Event().wait(0.001)
    process.send_signal(signal.SIGTERM)
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
