"""Bodies and keys of requests that write, as they come over the wire; what the addresses do is in test_app.py."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from belated.decisions import Status
from belated.service import _app as writes
from belated.service._admission import RejectedError
from belated.service._app import CODES, LARGEST_BODY, WRITES, Bodies, GoneError

JSON = [(b"content-type", b"application/json")]


def read(headers: list[tuple[bytes, bytes]], *parts: bytes, hangs_up: bool = False) -> bytes:
    """Read a body that comes in `parts`, from a caller that may hang up after them."""
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": hangs_up or part is not parts[-1]} for part in parts
    ]
    messages.append({"type": "http.disconnect"})

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    async def whole() -> bytes:
        bodies = Bodies()
        try:
            async with bodies.read(headers, receive) as content:
                assert bodies.held == len(content)
                return content
        finally:
            assert bodies.held == 0

    return asyncio.run(whole())


def test_a_body_is_read_whole_however_it_is_cut() -> None:
    assert read(JSON, b'{"a"', b": 1}") == b'{"a": 1}'
    assert read([(b"content-type", b"Application/JSON; charset=utf-8")], b"{}") == b"{}"


def test_half_a_body_is_not_a_body() -> None:
    with pytest.raises(GoneError):
        read(JSON, b'{"a"', hangs_up=True)


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ([(b"content-type", b"text/plain")], b"{}", 415),
        ([], b"{}", 415),  # as a browser sends a Blob, an ArrayBuffer or a beacon
        ([*JSON, (b"content-encoding", b"gzip")], b"{}", 415),
        (JSON, b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_bodies_that_are_not_read(headers: list[tuple[bytes, bytes]], body: bytes, code: int) -> None:
    with pytest.raises(RejectedError) as refused:
        read(headers, body)
    assert refused.value.code == code


def test_all_bodies_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "LARGEST_TOTAL", 10)
    with pytest.raises(RejectedError, match="10 bytes are already being processed") as refused:
        read(JSON, b"12345", b"678901")
    assert refused.value.code == 503


def test_every_status_has_a_code_and_every_address_a_scope() -> None:
    assert set(CODES) == set(Status)
    assert {scope for scope, _ in WRITES.values()} == {"decide", "feedback"}
