"""The addresses of the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from belated.decisions import Choice, ConflictError, ForgottenError, ModelSettings, Status, StoreError
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.service.bodies import (
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
from belated.service.openapi import specification
from belated.service.overview import overview
from belated.service.page import PAGE
from belated.service.service import Service
from belated.service.writer import FullError

LARGEST_BODY = 4 << 20
"""Bytes of a request."""
RETRY_AFTER = "1"
"""Seconds after which to try again what was refused for lack of room."""

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
_encode = msgspec.json.Encoder().encode

Handler = Callable[[Request], Awaitable[Response]]


class RefusedError(Exception):
    """A request that is refused before anything looks at it."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def answer(value: Any, code: int = 200, **headers: str) -> Response:
    """Return `value` as JSON."""
    return Response(_encode(value), code, headers=headers, media_type="application/json")


def code_of(error: Exception) -> int:
    """Return what an error is in HTTP."""
    kinds: tuple[tuple[type[Exception], int], ...] = (
        (ForgottenError, 410),
        (UnknownNameError, 404),
        (ConflictError, 409),
        (StoreError, 503),
        (FullError, 503),
        (InvalidInputError, 422),
        (BelatedError, 422),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), 500)


def refusal(error: Exception) -> Response:
    """Return an error as an answer: a sentence, and when to try again if that may help."""
    if isinstance(error, RefusedError):
        return answer(ErrorAnswer(str(error)), error.code)
    code = code_of(error)
    sentence = str(error) if code != 500 else "something went wrong inside; the log of the service says what"
    headers = {"Retry-After": RETRY_AFTER} if code == 503 else {}
    return answer(ErrorAnswer(sentence), code, **headers)


async def body(request: Request) -> bytes:
    """Return the body of a request, within limits."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, f"Content-Type must be application/json, got {kind!r}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(415, "Content-Encoding must be identity: bodies are not unpacked")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_BODY:
            raise RefusedError(413, f"a body must have at most {LARGEST_BODY} bytes")
    return bytes(content)


def endpoint(service: Service, scope: str, handler: Callable[[Service, Request], Awaitable[Response]]) -> Handler:
    """Return a handler that checks the key first, and says in a sentence what went wrong."""

    async def call(request: Request) -> Response:
        try:
            _admit(service, scope, request)
            response = await handler(service, request)
        except ClientDisconnect:
            raise
        except Exception as error:
            if code_of(error) == 500 and not isinstance(error, RefusedError):
                service.log.exception("%s %s failed", request.method, request.url.path)
            response = refusal(error)
        service.metrics.answered(response.status_code)
        return response

    return call


def _admit(service: Service, scope: str, request: Request) -> None:
    if not service.keys:
        return
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else None)
    allowed = service.keys.scopes(given)
    if allowed is None:
        raise RefusedError(401, "a key is needed, as the header X-API-Key or Authorization: Bearer")
    if scope not in allowed and "admin" not in allowed:
        raise RefusedError(403, f"this key does not have the scope {scope!r}")


async def decide(service: Service, request: Request) -> Response:
    """POST /v1/models/{model}/decide: one decision, or a list of them, stored before the answer."""
    model = service.model(request.path_params["model"])
    content = await body(request)
    many = content.lstrip()[:1] == b"["
    items = parse_list(content) if many else [content]
    results = await service.run(model, [parse(DecideBody, item).operation() for item in items])
    if not many:
        if isinstance(results[0], Exception):
            raise results[0]
        return answer(DecideAnswer.of(results[0]))
    return answer([DecideAnswer.of(one) if isinstance(one, Choice) else ErrorAnswer(str(one)) for one in results])


async def events(service: Service, request: Request, kind: type[Any]) -> Response:
    """Report one event, or a list of them with a status for each."""
    model = service.model(request.path_params["model"])
    content = await body(request)
    if content.lstrip()[:1] != b"[":
        try:
            given = parse(kind, content)
        except InvalidInputError:
            service.metrics.invalid(model.name)
            raise
        (outcome,) = await service.run(model, [given.operation()])
        return answer(EventAnswer.of(outcome), 410 if outcome.forgotten else CODES[outcome.status])
    parsed = [_parsed(kind, item) for item in parse_list(content)]
    good = [one.operation() for one in parsed if not isinstance(one, EventAnswer)]
    service.metrics.invalid(model.name, len(parsed) - len(good))
    outcomes = iter(await service.run(model, good) if good else [])
    return answer([one if isinstance(one, EventAnswer) else EventAnswer.of(next(outcomes)) for one in parsed])


def _parsed(kind: type[Any], item: bytes) -> Any:
    """Return an item of a list; one that cannot be read is answered as invalid, and does not stop the others."""
    try:
        return parse(kind, item)
    except InvalidInputError as error:
        return EventAnswer(id="", status=Status.INVALID.value, detail=str(error))


async def feedback(service: Service, request: Request) -> Response:
    """POST /v1/models/{model}/feedback."""
    return await events(service, request, FeedbackBody)


async def activate(service: Service, request: Request) -> Response:
    """POST /v1/models/{model}/activate."""
    return await events(service, request, ActivateBody)


async def cancel(service: Service, request: Request) -> Response:
    """POST /v1/models/{model}/cancel."""
    return await events(service, request, CancelBody)


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
    return answer(await run_in_threadpool(overview, service, model))


async def put_model(service: Service, request: Request) -> Response:
    """PUT /v1/models/{model}: make a model, or go on with other settings."""
    try:
        table = json.loads(await body(request))
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
    """GET /health/ready: decisions can be made and stored."""
    problem = service.writer.problem if service.writer.alive else "the writer has stopped"
    state = {"status": "not ready" if problem else "ready", "problem": problem, "queue": service.writer.depth}
    return answer(state, 503 if problem else 200)


async def figures(service: Service, request: Request) -> Response:
    """GET /metrics: figures for Prometheus."""
    text = await run_in_threadpool(service.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4")


async def openapi(service: Service, request: Request) -> Response:
    """GET /openapi.json: this interface, for programs."""
    return answer(specification())


async def page(service: Service, request: Request) -> Response:
    """GET /: a page for people; it asks for what it shows with the reader's own key."""
    return Response(PAGE, media_type="text/html; charset=utf-8")


def make_app(service: Service) -> Starlette:
    """Return the service as an ASGI application; when it stops, the service is closed."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        yield
        await run_in_threadpool(service.close)

    table: Sequence[tuple[str, str, str, Callable[[Service, Request], Awaitable[Response]]]] = (
        ("POST", "/v1/models/{model}/decide", "decide", decide),
        ("POST", "/v1/models/{model}/feedback", "feedback", feedback),
        ("POST", "/v1/models/{model}/activate", "decide", activate),
        ("POST", "/v1/models/{model}/cancel", "decide", cancel),
        ("GET", "/v1/models/{model}", "read", show_model),
        ("PUT", "/v1/models/{model}", "admin", put_model),
        ("GET", "/v1/models", "read", models),
        ("GET", "/v1/decisions/{id}", "read", look_up),
        ("GET", "/metrics", "read", figures),
    )
    routes = [Route(path, endpoint(service, scope, handler), methods=[verb]) for verb, path, scope, handler in table]
    for path, handler in (("/health/live", live), ("/health/ready", ready), ("/openapi.json", openapi), ("/", page)):
        routes.append(Route(path, _open(service, handler), methods=["GET"]))
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _nowhere})
    app.state.service = service
    return app


async def _nowhere(request: Request, error: Exception) -> Response:
    """Answer what has no address, or not with this method, as everything else is answered."""
    assert isinstance(error, HTTPException)
    sentence = f"{request.method} {request.url.path} is not part of this service; /openapi.json says what is"
    return answer(ErrorAnswer(sentence), error.status_code, **dict(error.headers or {}))


def _open(service: Service, handler: Callable[[Service, Request], Awaitable[Response]]) -> Handler:
    """Return a handler that anybody may ask."""

    async def call(request: Request) -> Response:
        return await handler(service, request)

    return call
