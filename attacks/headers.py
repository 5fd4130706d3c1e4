"""Clients without a key that send too much, too slowly or too often: memory is bounded, and others are answered."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attacks.serving import Server, is_linux, memory_of, served
from attacks.tally import NotBuiltError, Tally

HEAD = b"POST /v1/models/ads/decide HTTP/1.1\r\nHost: localhost\r\n"
CHUNKS = HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
#: Maximum bytes sent to fill the memory, and maximum growth of the memory in bytes.
SENT, ROOM = 100 << 20, 64 << 20
#: Half-open connections, and the seconds after which none of them may be left.
HALF_OPEN, GONE = 300, 40.0

FLOODS = {
    "small headers": (HEAD, b"a: b\r\n" * 10_000),
    "one long header": (HEAD + b"a: ", b"b" * 65536),
    "a long name": (HEAD, b"a" * 65536),
    "a long address": (b"GET /", b"a" * 65536),
    "small trailers": (CHUNKS + b"0\r\n", b"a: b\r\n" * 10_000),
    "one long trailer": (CHUNKS + b"0\r\na: ", b"b" * 65536),
    "a chunk's extension": (CHUNKS + b"1;", b"b" * 65536),
    "empty lines": (b"", b"\r\n" * 32768),
    "requests ahead": (b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2_000),
}
SLOW = {
    "nothing": b"",
    "half a line": HEAD[:10],
    "half of the headers": HEAD,
    "half a header": HEAD + b"a: ",
    "line": b"\r\n",
}


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Flood a service with headers, then hold connections half open; so many rounds of each kind."""
    if not is_linux():
        raise NotBuiltError("the memory of a process is read from /proc")
    key = "site"
    (folder / "service").mkdir()
    (folder / "service" / "keys.toml").write_text(
        f'[keys.{key}]\nsha256 = "{"0" * 64}"\nscopes = ["decide"]\n', encoding="utf-8"
    )
    with served(folder / "service", "--keys", "keys.toml") as server:
        before = memory_of(server.process.pid)
        for _ in range(tries):
            for name in rng.permutation(list(FLOODS)):
                if not tally.left():
                    return
                with tally.attempt(f"{name}, without an end"):
                    sent = _flood(server, *FLOODS[name])
                    grown = memory_of(server.process.pid) - before
                    assert grown < ROOM, f"{sent >> 20} MB made {grown >> 20} MB"
                    assert server.ask("GET", "/health/live").code == 200
        with tally.attempt("the log after all that"):
            assert len(server.log()) < 4096, server.log()[-300:]
        _hold(server, rng, tally)


def _flood(server: Server, start: bytes, part: bytes) -> int:
    """Send until the server closes the connection; return the number of bytes sent."""
    sent = 0
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(start)
        while sent < SENT:
            line.sendall(part)
            sent += len(part)
    return sent


def _hold(server: Server, rng: np.random.Generator, tally: Tally) -> None:
    kinds = list(SLOW)
    with contextlib.ExitStack() as held:
        lines = [held.enter_context(line) for line in _lines(server, HALF_OPEN)]
        for line in lines:
            line.sendall(SLOW[kinds[rng.integers(len(kinds))]])
        with tally.attempt(f"a request beside {HALF_OPEN} half-open connections"):
            assert server.ask("GET", "/health/live").code == 200
        began = time.monotonic()
        left = list(lines)
        while left and time.monotonic() - began < GONE:
            left = [line for line in left if not _is_over(line)]
            time.sleep(0.5)
        for _ in lines[: len(lines) - len(left)]:
            tally.held += 1
        for _ in left:
            tally.breaks(f"a half-open connection is held for {GONE:.0f} s")
    with contextlib.ExitStack() as held:
        many = [held.enter_context(line) for line in _lines(server, 1_000)]  # more than there is room for
        with tally.attempt(f"a request beside {len(many)} connections that say nothing"):
            assert server.ask("GET", "/health/live").code == 200


def _lines(server: Server, count: int) -> Iterator[socket.socket]:
    for _ in range(count):
        try:
            yield socket.create_connection(("127.0.0.1", server.port), timeout=30)
        except OSError:  # this process may not open as many files
            return


def _is_over(line: socket.socket) -> bool:
    """Keep sending slowly, and return whether the server has closed the connection."""
    line.setblocking(False)
    try:
        line.send(b"a")
        return not line.recv(4096) or _is_over(line)
    except BlockingIOError:
        return False
    except OSError:
        return True
