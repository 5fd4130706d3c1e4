"""Bodies and keys of requests that write, as they come over the wire; what the addresses do is in test_app.py."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any

import pytest

from belated.decisions import Status
from belated.service import _app as writes
from belated.service._app import CODES, LARGEST_BODY, WRITES, GoneError, RejectedError, admit, read_body
from belated.service._keys import Key, Keyring, digest

JSON = [(b"content-type", b"application/json")]


def read(headers: list[tuple[bytes, bytes]], *parts: bytes, hangs_up: bool = False) -> bytes:
    """Read a body that comes in `parts`, from a caller that may hang up after them."""
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": hangs_up or part is not parts[-1]} for part in parts
    ]
    messages.append({"type": "http.disconnect"})

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    return asyncio.run(read_body(headers, receive))


def test_a_body_is_read_whole_however_it_is_cut() -> None:
    assert read(JSON, b'{"a"', b": 1}") == b'{"a": 1}'
    assert read([(b"content-type", b"Application/JSON; charset=utf-8")], b"{}") == b"{}"


def test_half_a_body_is_not_a_body() -> None:
    with pytest.raises(GoneError):
        read(JSON, b'{"a"', hangs_up=True)


def test_a_body_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "SLOWEST_BODY", 0.01)

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(3600)
        return {}

    with pytest.raises(RejectedError, match=r"within 0\.01 seconds") as refused:
        asyncio.run(read_body(JSON, receive))
    assert refused.value.code == 408


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ([(b"content-type", b"text/plain")], b"{}", 415),
        ([*JSON, (b"content-encoding", b"gzip")], b"{}", 415),
        (JSON, b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_bodies_that_are_not_read(headers: list[tuple[bytes, bytes]], body: bytes, code: int) -> None:
    with pytest.raises(RejectedError) as refused:
        read(headers, body)
    assert refused.value.code == code


def test_a_key_opens_what_it_is_for() -> None:
    service: Any = SimpleNamespace(keys=Keyring([Key("shop", digest("s3cret"), frozenset({"decide"}))]))
    for headers in ([(b"x-api-key", b"s3cret")], [(b"authorization", b"bearer s3cret")]):
        admit(service, "decide", headers)
        with pytest.raises(RejectedError) as refused:
            admit(service, "feedback", headers)
        assert refused.value.code == 403
    needed, wrong = "a key is needed", "none of the keys"
    tried = [([], needed), ([(b"x-api-key", b"wrong")], wrong), ([(b"authorization", b"Basic s3cret")], needed)]
    for headers, sentence in tried:
        with pytest.raises(RejectedError, match=sentence) as refused:
            admit(service, "decide", headers)
        assert refused.value.code == 401


def test_every_status_has_a_code_and_every_address_a_scope() -> None:
    assert set(CODES) == set(Status)
    assert {scope for scope, _ in WRITES.values()} == {"decide", "feedback"}
