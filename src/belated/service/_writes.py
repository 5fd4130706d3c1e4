"""The addresses that write: decide, feedback, activate and cancel.

Nearly all requests go here, so each is an ASGI application of its own, without what a framework does for every request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from belated.decisions import Choice, Model, Status
from belated.errors import InvalidInputError
from belated.service._answers import Answer, RefusedError, code_of, encode, refusal
from belated.service._bodies import (
    ActivateBody,
    CancelBody,
    DecideAnswer,
    DecideBody,
    ErrorAnswer,
    EventAnswer,
    FeedbackBody,
    parse,
    parse_list,
)
from belated.service._service import Service

LARGEST_BODY = 4 << 20
"""Bytes of a request."""
SLOWEST_BODY = 30.0
"""Seconds in which all of it must have come."""

#: What a status of a single event is in HTTP.
CODES = {
    Status.ACCEPTED: 200,
    Status.DUPLICATE: 200,
    Status.CONFLICT: 409,
    Status.LATE: 202,
    Status.PARKED: 202,
    Status.UNKNOWN: 404,
    Status.INVALID: 422,
}

Headers = Iterable[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Work = Callable[[Service, Model, bytes], Awaitable[Answer]]


def admit(service: Service, scope: str, headers: Headers) -> None:
    """Refuse a request whose key does not allow it."""
    if not service.keys:
        return
    given: str | None = None
    for name, value in headers:
        if name == b"x-api-key" and value:
            given = value.decode("latin-1")
            break
        if name == b"authorization":
            scheme, _, bearer = value.decode("latin-1").partition(" ")
            given = bearer.strip() if scheme.lower() == "bearer" else given
    allowed = service.keys.scopes(given)
    if allowed is None:
        sentence = "a key is needed" if given is None else "this is none of the keys of this service: send another"
        raise RefusedError(401, f"{sentence}, as the header X-API-Key or Authorization: Bearer")
    if scope not in allowed and "admin" not in allowed:
        raise RefusedError(403, f"this key does not have the scope {scope!r}")


class GoneError(Exception):
    """The caller hung up."""


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """Return the body of a request, within limits."""
    for name, value in headers:
        if name == b"content-type" and value != b"application/json":
            kind = value.decode("latin-1").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(415, f"Content-Type must be application/json, got {kind!r}")
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise RefusedError(415, "Content-Encoding must be identity: bodies are not unpacked")
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            return await _receive_all(receive)
    except TimeoutError:
        raise RefusedError(408, f"a body must have come within {SLOWEST_BODY:g} seconds") from None


async def _receive_all(receive: Receive) -> bytes:
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        content += message.get("body", b"")
        if len(content) > LARGEST_BODY:
            raise RefusedError(413, f"a body must have at most {LARGEST_BODY} bytes")
        if not message.get("more_body", False):
            return bytes(content)


class Write:
    """One address that writes: admits, reads, has the work done, and answers; an error becomes a sentence."""

    def __init__(self, service: Service, scope: str, work: Work) -> None:
        self._service, self._scope, self._work = service, scope, work

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; `path_params` of its scope has the name of the model."""
        service, headers = self._service, scope["headers"]
        try:
            admit(service, self._scope, headers)
            model = service.model(scope["path_params"]["model"])
            answer = await self._work(service, model, await read_body(headers, receive))
        except GoneError:
            return
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", scope["method"], scope["path"])
            answer = refusal(error)
        content, code, more = answer
        service.metrics.answered(code)
        given = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        given += [(name.lower().encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": code, "headers": given})
        await send({"type": "http.response.body", "body": content})


async def decide(service: Service, model: Model, content: bytes) -> Answer:
    """POST /v1/models/{model}/decide: one decision, or a list of them, stored before the answer."""
    if not _is_list(content):
        (result,) = await service.run(model, [parse(DecideBody, content).operation()])
        if isinstance(result, Exception):
            raise result
        return Answer(encode(DecideAnswer.of(result)))
    parsed = [_parsed(DecideBody, item) for item in parse_list(content)]
    good = [one.operation() for one in parsed if not isinstance(one, InvalidInputError)]
    results = iter(await service.run(model, good) if good else [])
    found = [one if isinstance(one, InvalidInputError) else next(results) for one in parsed]
    return Answer(encode([DecideAnswer.of(one) if isinstance(one, Choice) else ErrorAnswer(str(one)) for one in found]))


async def _events(service: Service, model: Model, content: bytes, kind: type[Any]) -> Answer:
    """Report one event, or a list of them with a status for each."""
    if not _is_list(content):
        try:
            given = parse(kind, content)
        except InvalidInputError:
            service.metrics.invalid(model.name)
            raise
        (outcome,) = await service.run(model, [given.operation()])
        return Answer(encode(EventAnswer.of(outcome)), 410 if outcome.forgotten else CODES[outcome.status])
    parsed = [_parsed(kind, item) for item in parse_list(content)]
    good = [one.operation() for one in parsed if not isinstance(one, InvalidInputError)]
    service.metrics.invalid(model.name, len(parsed) - len(good))
    outcomes = iter(await service.run(model, good) if good else [])
    found = [_unread(one) if isinstance(one, InvalidInputError) else EventAnswer.of(next(outcomes)) for one in parsed]
    return Answer(encode(found))


def _is_list(content: bytes) -> bool:
    return content[:1] != b"{" and content.lstrip()[:1] == b"["


def _parsed(kind: type[Any], item: bytes) -> Any:
    """Return an item of a list; of one that cannot be read the error, which does not stop the others."""
    try:
        return parse(kind, item)
    except InvalidInputError as error:
        return error


def _unread(error: InvalidInputError) -> EventAnswer:
    return EventAnswer(id="", status=Status.INVALID.value, detail=str(error))


async def feedback(service: Service, model: Model, content: bytes) -> Answer:
    """POST /v1/models/{model}/feedback."""
    return await _events(service, model, content, FeedbackBody)


async def activate(service: Service, model: Model, content: bytes) -> Answer:
    """POST /v1/models/{model}/activate."""
    return await _events(service, model, content, ActivateBody)


async def cancel(service: Service, model: Model, content: bytes) -> Answer:
    """POST /v1/models/{model}/cancel."""
    return await _events(service, model, content, CancelBody)


#: The last part of an address, with the scope that it needs.
WRITES: dict[str, tuple[str, Work]] = {
    "decide": ("decide", decide),
    "feedback": ("feedback", feedback),
    "activate": ("decide", activate),
    "cancel": ("decide", cancel),
}
