"""What a connection may cost, on real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn

from belated.decisions import MemoryStore, ModelSettings
from belated.service import _connection as module
from belated.service._app import make_app
from belated.service._connection import LARGEST_HEAD, MOST_AHEAD, MOST_HEADERS, Connection
from belated.service._serve import listen
from belated.service._service import Service

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/models/ads/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PATIENCE = 30.0

Talk = Callable[[int, uvicorn.Server], Awaitable[None]]


def talk(conversation: Talk) -> None:
    """Have a conversation with a service on a port of its own."""

    async def whole() -> None:
        service = Service(MemoryStore(), {"ads": ModelSettings.from_table(TABLE)}, clock=lambda: 1_800_000_000.0)
        server = uvicorn.Server(
            uvicorn.Config(make_app(service), http=Connection, log_config=None, loop="asyncio", ws="none")
        )
        with listen("127.0.0.1", 0) as address:
            address.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            serving = asyncio.create_task(server._serve([address]))
            try:
                await asyncio.wait_for(conversation(address.getsockname()[1], server), PATIENCE)
            finally:
                server.should_exit = True
                await serving

    asyncio.run(whole())


async def send(port: int, *parts: bytes) -> tuple[int, Any]:
    """Send bytes, and return the code and the body of the answer once the other side hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        got = await reader.read()
    except ConnectionError:
        got = b""
    finally:
        writer.close()
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, json.loads(body) if body else None


END = b"Connection: close\r\n\r\n"
MANY = b"".join(b"A%d: b\r\n" % i for i in range(MOST_HEADERS))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (GET + END, 200),
        (GET + b"X: " + b"x" * (LARGEST_HEAD // 2) + b"\r\n" + END, 200),
        (GET + b"X: " + b"x" * LARGEST_HEAD + b"\r\n" + END, 431),
        (GET + b"".join(b"A%d: b\r\n" % i for i in range(MOST_HEADERS - 2)) + END, 200),
        (GET + MANY + END, 431),
        (b"GET /" + b"a" * LARGEST_HEAD + b" HTTP/1.1\r\nHost: localhost\r\n" + END, 431),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + MANY + END, 431),  # trailers
        (b"\r\n" * LARGEST_HEAD, 431),
        (b"\x16\x03\x01 this is not HTTP\r\n\r\n", 400),
        (GET + b"\r\n" + (GET + b"\r\n") * (MOST_AHEAD + 5), 400),
    ],
    ids=["plain", "half", "one-long", "all-there-may-be", "too-many", "address", "trailers", "empty", "other", "ahead"],
)
def test_a_head_has_limits_and_beyond_them_there_is_a_sentence(request_: bytes, code: int) -> None:
    async def conversation(port: int, server: uvicorn.Server) -> None:
        found, said = await send(port, request_)
        assert found == code
        assert code == 200 or said["error"]

    talk(conversation)


def test_a_header_without_an_end_is_not_gathered() -> None:
    async def conversation(port: int, server: uvicorn.Server) -> None:
        for start in (GET + b"X: ", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: "):
            code, _ = await send(port, start, *[b"x" * 8192] * 100)
            assert code in (0, 431)  # 0: it was ended while we were still sending

    talk(conversation)


@pytest.mark.parametrize(
    ("start", "code"), [(b"", 0), (b"\r\n", 0), (b"G", 408), (GET, 408), (GET + b"X-Slow: ", 408), (GET + b"\r\n", 200)]
)
def test_who_does_not_come_to_the_point_has_to_go(start: bytes, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.1)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        assert (await send(port, start))[0] == code

    talk(conversation)


async def answer_to(port: int, head: bytes, body: bytes) -> bytes:
    """Send a head, and somewhat later a body; return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head + b"Connection: close\r\nContent-Length: 23\r\n\r\n")
    await asyncio.sleep(0.3)
    writer.write(body)
    got = await reader.read()
    writer.close()
    return got


@pytest.mark.parametrize(("seconds", "code"), [(30.0, b"200"), (0.1, b"408")])
def test_a_body_has_its_own_time(seconds: float, code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.1)
    monkeypatch.setattr(module, "SLOWEST_BODY", seconds)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        got = await answer_to(port, POST, b'{"context": {"x": 1.0}}')
        assert got.startswith(b"HTTP/1.1 " + code)
        assert (b"within 0.1 seconds" in got) is (code == b"408")

    talk(conversation)


def test_who_is_answered_before_the_body_is_gone_once_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.5)
    head = POST.replace(b"application/json", b"text/plain")

    async def conversation(port: int, server: uvicorn.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"Content-Length: 2\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 415")
        writer.write(b"{}")
        await reader.read()  # it ends
        writer.close()

    talk(conversation)


def test_a_body_behind_another_request_has_its_time_once_that_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.1)
    monkeypatch.setattr(module, "SLOWEST_BODY", 0.1)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        got = await answer_to(port, GET + b"\r\n" + POST, b'{"context": {"x": 1.0}}')
        assert got.count(b"HTTP/1.1 200") == 1  # of the first
        assert got.count(b"HTTP/1.1 408") == 1

    talk(conversation)


def test_a_request_waits_for_the_one_before_it_however_long_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.1)
    monkeypatch.setattr(module, "SLOWEST_BODY", 0.1)
    run, body = Service.run, b'{"context": {"x": 1.0}}'

    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(0.5)
        return await run(*given)

    monkeypatch.setattr(Service, "run", slowly)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = POST + b"Content-Length: %d\r\n" % len(body)
        writer.write(head + b"\r\n" + body + head + b"Connection: close\r\n\r\n" + body[:5])
        assert await reader.readuntil(b"model_version")  # the first is answered
        writer.write(body[5:])
        assert (await reader.read()).count(b"HTTP/1.1 200") == 1
        writer.close()

    talk(conversation)


def test_nothing_is_done_for_a_head_that_is_too_large() -> None:
    body = b'{"context": {"x": 1.0}}'

    async def conversation(port: int, server: uvicorn.Server) -> None:
        assert (await send(port, POST + MANY + b"Content-Length: %d\r\n\r\n" % len(body) + body))[0] == 431
        code, said = await send(port, b"GET /v1/models/ads HTTP/1.1\r\nHost: localhost\r\n" + END)
        assert (code, said["decisions"]) == (200, 0)

    talk(conversation)


def test_when_there_are_too_many_the_longest_idle_goes_and_not_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        idle = []
        for _ in range(3):
            idle.append(await asyncio.open_connection("127.0.0.1", port))
            idle[-1][1].write(GET + b"\r\n")
            await idle[-1][0].readuntil(b"alive")  # each has been taken, one after the other
        assert (await send(port, GET + END))[0] == 200
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await idle[0][0].readexactly(100)
        idle[1][1].write(GET + b"\r\n")
        assert await idle[1][0].readuntil(b"alive")
        for _, writer in idle:
            writer.close()

    talk(conversation)


def test_when_all_are_at_work_a_new_one_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 1)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        await asyncio.sleep(0.1)
        code, said = await send(port)
        assert (code, "already open" in said["error"]) == (503, True)
        writer.close()

    talk(conversation)


def test_an_answer_that_nobody_reads_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST_ANSWER", 0.1)
    monkeypatch.setattr(module, "SLOWEST_HEAD", 0.1)

    async def conversation(port: int, server: uvicorn.Server) -> None:
        body = b"[" + b",".join([b'{"context": {"x": 1.0}}'] * 10_000) + b"]"
        path = POST.replace(b"/decide ", b"/decide/batch ")
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            deaf.setblocking(False)
            await loop.sock_sendall(deaf, path + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while not any(each.flow.write_paused for each in server.server_state.connections):  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
            while server.server_state.connections:
                await asyncio.sleep(0.01)

    talk(conversation)
