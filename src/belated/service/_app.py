"""The HTTP interface: addresses, keys, bodies within limits, and errors as sentences.

What writes (decide, feedback, activate, cancel) is nearly all of the traffic, so each of these addresses is an ASGI
application of its own, without what a framework does for every request; the rest goes through Starlette.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from belated.decisions import (
    ClockError,
    ConflictError,
    Decided,
    ForgottenError,
    Model,
    ModelSettings,
    Outcome,
    Status,
    StoreError,
)
from belated.decisions._operations import Answer
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.service._bodies import (
    ActivateBody,
    CancelBody,
    DecideAnswer,
    DecideBody,
    DecisionAnswer,
    ErrorAnswer,
    EventAnswer,
    FeedbackBody,
    parse,
    parse_list,
)
from belated.service._openapi import specification
from belated.service._overview import overview
from belated.service._service import Service
from belated.service._writer import FullError

#: Maximum bytes of a body, and seconds within which all of it must arrive.
LARGEST_BODY, SLOWEST_BODY = 4 << 20, 30.0
#: Seconds after which to try again what was rejected for lack of room.
RETRY_AFTER = "1"
#: The page for people.
PAGE = (resources.files("belated.service") / "page.html").read_bytes()

#: HTTP status of an error, by the first kind that fits.
_ERRORS: tuple[tuple[type[Exception], int], ...] = (
    (ForgottenError, 410),
    (UnknownNameError, 404),
    (ConflictError, 409),
    (StoreError, 503),
    (ClockError, 503),
    (FullError, 503),
    (BelatedError, 422),
)
#: HTTP status of a single event, by what became of it.
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

encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """What is sent back."""

    content: bytes
    """JSON."""
    code: int = 200
    headers: Mapping[str, str] = {}


Work = Callable[[Service, Model, bytes], Awaitable[Reply]]
Reader = Callable[[Service, Request], Awaitable[Response]]


class RejectedError(Exception):
    """A request that is rejected before its body is parsed."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class GoneError(Exception):
    """The caller hung up."""


def code_of(error: Exception) -> int:
    if isinstance(error, RejectedError):
        return error.code
    return next((code for kind, code in _ERRORS if isinstance(error, kind)), 500)


def rejection(error: Exception) -> Reply:
    """Return an error as a reply: a sentence, and when to try again if that may help."""
    code = code_of(error)
    sentence = str(error) if code != 500 else "something went wrong inside; the log of the service says what"
    return Reply(encode(ErrorAnswer(sentence)), code, {"Retry-After": RETRY_AFTER} if code == 503 else {})


def admit(service: Service, scope: str, headers: Headers) -> None:
    """Raise RejectedError unless the key of a request allows it."""
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
        raise RejectedError(401, f"{sentence}, as the header X-API-Key or Authorization: Bearer")
    if scope not in allowed and "admin" not in allowed:
        raise RejectedError(403, f"this key does not have the scope {scope!r}")


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """Return the body of a request; raise RejectedError unless it is JSON, short and arrives in time."""
    for name, value in headers:
        if name == b"content-type" and value != b"application/json":
            kind = value.decode("latin-1").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RejectedError(415, f"Content-Type must be application/json, got {kind!r}")
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise RejectedError(415, "Content-Encoding must be identity: bodies are not unpacked")
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            return await _receive_all(receive)
    except TimeoutError:
        raise RejectedError(408, f"a body must have come within {SLOWEST_BODY:g} seconds") from None


async def _receive_all(receive: Receive) -> bytes:
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        content += message.get("body", b"")
        if len(content) > LARGEST_BODY:
            raise RejectedError(413, f"a body must have at most {LARGEST_BODY} bytes")
        if not message.get("more_body", False):
            return bytes(content)


class Write:
    """One address that writes: checks the key, reads the body, waits for the commit, replies."""

    def __init__(self, service: Service, scope: str, work: Work) -> None:
        self._service, self._scope, self._work = service, scope, work

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; `path_params` of its scope has the name of the model."""
        service, headers = self._service, scope["headers"]
        try:
            admit(service, self._scope, headers)
            model = service.model(scope["path_params"]["model"])
            reply = await self._work(service, model, await read_body(headers, receive))
        except GoneError:
            return
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", scope["method"], scope["path"])
            reply = rejection(error)
        content, code, more = reply
        service.metrics.answered(code)
        given = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        given += [(name.lower().encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": code, "headers": given})
        await send({"type": "http.response.body", "body": content})


async def decide(service: Service, model: Model, content: bytes) -> Reply:
    """POST /v1/models/{model}/decide: one decision, or a list of them, stored before the reply."""
    if _is_list(content):
        found = await _run_list(service, model, content, DecideBody)
        return Reply(encode([_decided(one) for one in found]))
    (answer,) = await service.run(model, [parse(DecideBody, content).operation()])
    if isinstance(answer, Exception):
        raise answer
    return Reply(encode(_decided(answer)))


def _decided(answer: Answer) -> DecideAnswer | ErrorAnswer:
    return DecideAnswer.of(answer.row) if isinstance(answer, Decided) else ErrorAnswer(str(answer))


async def _events(service: Service, model: Model, content: bytes, kind: type[Any]) -> Reply:
    """Report one event, or a list of them with a status for each."""
    if _is_list(content):
        found = await _run_list(service, model, content, kind)
        service.metrics.invalid(model.name, sum(isinstance(one, InvalidInputError) for one in found))
        return Reply(encode([_reported(one) for one in found]))
    try:
        given = parse(kind, content)
    except InvalidInputError:
        service.metrics.invalid(model.name)
        raise
    (outcome,) = await service.run(model, [given.operation()])
    assert isinstance(outcome, Outcome)
    return Reply(encode(_reported(outcome)), 410 if outcome.forgotten else CODES[outcome.status])


def _reported(answer: Answer) -> EventAnswer:
    if isinstance(answer, Outcome):
        return EventAnswer.of(answer)
    return EventAnswer(id="", status=Status.INVALID.value, detail=str(answer))


async def _run_list(service: Service, model: Model, content: bytes, kind: type[Any]) -> list[Answer]:
    """Return the answers to the items of a list; an item that cannot be parsed is answered with its error."""
    items: list[Any] = []
    for item in parse_list(content):
        try:
            items.append(parse(kind, item).operation())
        except InvalidInputError as error:
            items.append(error)
    good = [item for item in items if not isinstance(item, InvalidInputError)]
    answers = iter(await service.run(model, good) if good else [])
    return [item if isinstance(item, InvalidInputError) else next(answers) for item in items]


def _is_list(content: bytes) -> bool:
    return content[:1] != b"{" and content.lstrip()[:1] == b"["


async def feedback(service: Service, model: Model, content: bytes) -> Reply:
    return await _events(service, model, content, FeedbackBody)


async def activate(service: Service, model: Model, content: bytes) -> Reply:
    return await _events(service, model, content, ActivateBody)


async def cancel(service: Service, model: Model, content: bytes) -> Reply:
    return await _events(service, model, content, CancelBody)


#: The last part of an address that writes, with the scope that it needs.
WRITES: dict[str, tuple[str, Work]] = {
    "decide": ("decide", decide),
    "feedback": ("feedback", feedback),
    "activate": ("decide", activate),
    "cancel": ("decide", cancel),
}


def answer(value: Any, code: int = 200) -> Response:
    return Response(encode(value), code, media_type="application/json")


def guarded(service: Service, scope: str, handler: Reader) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that checks the key first, and turns errors into replies."""

    async def call(request: Request) -> Response:
        try:
            admit(service, scope, request.headers.raw)
            response = await handler(service, request)
        except GoneError:
            return Response(status_code=499)  # nobody reads it
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", request.method, request.url.path)
            content, code, headers = rejection(error)
            response = Response(content, code, headers, "application/json")
        service.metrics.answered(response.status_code)
        return response

    return call


def unguarded(service: Service, handler: Reader) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that needs no key."""

    async def call(request: Request) -> Response:
        return await handler(service, request)

    return call


async def look_up(service: Service, request: Request) -> Response:
    """GET /v1/decisions/{id}: all that is known of a decision."""
    wanted = request.path_params["id"]

    def find() -> DecisionAnswer:
        row = service.store.decision(wanted)
        models = [service.model(row.model)] if row is not None else service.all()
        missing: Exception = UnknownNameError(f"there is no decision {wanted!r}")
        for model in models:
            try:
                return DecisionAnswer.of(model.name, model.lookup(wanted))
            except ForgottenError as error:
                missing = error
            except UnknownNameError:
                continue
        raise missing

    return answer(await run_in_threadpool(find))


async def models(service: Service, request: Request) -> Response:
    """GET /v1/models: the names of all models."""
    return answer({"models": list(service.models)})


async def show_model(service: Service, request: Request) -> Response:
    """GET /v1/models/{model}: settings, weights and figures."""
    model = service.model(request.path_params["model"])
    shown = await run_in_threadpool(service.show, model.name, lambda: overview(service, model))
    return answer(shown)


async def put_model(service: Service, request: Request) -> Response:
    """PUT /v1/models/{model}: make a model, or go on with other settings."""
    try:
        table = json.loads(await read_body(request.headers.raw, request.receive))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the body must be the settings of a model: {error}") from None
    try:
        settings = ModelSettings.from_table(table)
    except UnknownNameError as error:  # of a setting, not of a model
        raise InvalidInputError(str(error)) from None
    version = await run_in_threadpool(service.configure, request.path_params["model"], settings)
    return answer({"model": request.path_params["model"], "settings_version": version})


async def live(service: Service, request: Request) -> Response:
    """GET /health/live: the process answers."""
    return answer({"status": "alive"})


async def ready(service: Service, request: Request) -> Response:
    """GET /health/ready: decisions can be made and stored, of one model at least; `problems` has the others."""
    problem, problems, queue = service.writer.problem, service.writer.problems, service.writer.depth
    state = {"status": "not ready" if problem else "ready", "problem": problem, "problems": problems, "queue": queue}
    return answer(state, 503 if problem else 200)


async def figures(service: Service, request: Request) -> Response:
    """GET /metrics: figures for Prometheus."""
    text = await run_in_threadpool(service.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4")


async def openapi(service: Service, request: Request) -> Response:
    """GET /openapi.json: this interface, for programs."""
    return answer(specification())


async def page(service: Service, request: Request) -> Response:
    """GET /: the dashboard; it asks for its figures with the reader's own key."""
    return Response(PAGE, media_type="text/html; charset=utf-8")


class App(Starlette):
    """The service as an ASGI application. Writes are dispatched directly; the rest goes through Starlette."""

    def __init__(self, service: Service, **options: Any) -> None:
        self._writes = {name: Write(service, scope, work) for name, (scope, work) in WRITES.items()}
        routes = [Route("/v1/models/{model}/" + name, write, methods=["POST"]) for name, write in self._writes.items()]
        super().__init__(routes=[*routes, *_routes(service)], **options)
        self.state.service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")  # as of /v1/models/ads/decide
            if len(parts) == 5 and parts[1] == "v1" and parts[2] == "models" and parts[3] and parts[4] in self._writes:
                scope["path_params"] = {"model": parts[3]}
                await self._writes[parts[4]](scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def make_app(service: Service) -> App:
    """Return the service as an ASGI application; when it stops, the service is closed."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        yield
        await run_in_threadpool(service.close)

    return App(service, lifespan=lifespan, exception_handlers={HTTPException: _nowhere})


def _routes(service: Service) -> list[Route]:
    """Return the addresses that only read, and the one for settings."""
    with_key = (
        ("GET", "/v1/models/{model}", "read", show_model),
        ("PUT", "/v1/models/{model}", "admin", put_model),
        ("GET", "/v1/models", "read", models),
        ("GET", "/v1/decisions/{id}", "read", look_up),
        ("GET", "/metrics", "read", figures),
    )
    without = (("/health/live", live), ("/health/ready", ready), ("/openapi.json", openapi), ("/", page))
    return [
        *(Route(path, guarded(service, scope, handler), methods=[verb]) for verb, path, scope, handler in with_key),
        *(Route(path, unguarded(service, handler), methods=["GET"]) for path, handler in without),
    ]


async def _nowhere(request: Request, error: Exception) -> Response:
    """Reply to an unknown address or method with a sentence, as everywhere."""
    assert isinstance(error, HTTPException)
    sentence = f"{request.method} {request.url.path} is not part of this service; /openapi.json says what is"
    headers = dict(error.headers or {})
    return Response(encode(ErrorAnswer(sentence)), error.status_code, headers, "application/json")
