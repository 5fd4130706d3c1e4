"""The addresses of the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from belated.decisions import ForgottenError, ModelSettings
from belated.errors import InvalidInputError, UnknownNameError
from belated.service._answers import code_of, encode, refusal
from belated.service._bodies import DecisionAnswer, ErrorAnswer
from belated.service._openapi import specification
from belated.service._overview import overview
from belated.service._page import PAGE
from belated.service._service import Service
from belated.service._writes import WRITES, GoneError, Write, admit, read_body

_MODEL = "/v1/models/{model}/"

Handler = Callable[[Request], Awaitable[Response]]


def answer(value: Any, code: int = 200) -> Response:
    """Return `value` as JSON."""
    return Response(encode(value), code, media_type="application/json")


def endpoint(service: Service, scope: str, handler: Callable[[Service, Request], Awaitable[Response]]) -> Handler:
    """Return a handler that checks the key first, and says in a sentence what went wrong."""

    async def call(request: Request) -> Response:
        try:
            admit(service, scope, request.headers.raw)
            response = await handler(service, request)
        except GoneError:
            return Response(status_code=499)  # nobody reads it
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", request.method, request.url.path)
            content, code, headers = refusal(error)
            response = Response(content, code, headers, "application/json")
        service.metrics.answered(response.status_code)
        return response

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
    return answer(await run_in_threadpool(overview, service, model))


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


class App(Starlette):
    """The service as an ASGI application. What writes has a way of its own; the rest goes through Starlette."""

    def __init__(self, service: Service, **options: Any) -> None:
        self._writes = {name: Write(service, scope, work) for name, (scope, work) in WRITES.items()}
        routes = [Route(_MODEL + name, write, methods=["POST"]) for name, write in self._writes.items()]
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
    table: Sequence[tuple[str, str, str, Callable[[Service, Request], Awaitable[Response]]]] = (
        ("GET", "/v1/models/{model}", "read", show_model),
        ("PUT", "/v1/models/{model}", "admin", put_model),
        ("GET", "/v1/models", "read", models),
        ("GET", "/v1/decisions/{id}", "read", look_up),
        ("GET", "/metrics", "read", figures),
    )
    routes = [Route(path, endpoint(service, scope, handler), methods=[verb]) for verb, path, scope, handler in table]
    for path, handler in (("/health/live", live), ("/health/ready", ready), ("/openapi.json", openapi), ("/", page)):
        routes.append(Route(path, _open(service, handler), methods=["GET"]))
    return routes


async def _nowhere(request: Request, error: Exception) -> Response:
    """Answer what has no address, or not with this method, as everything else is answered."""
    assert isinstance(error, HTTPException)
    sentence = f"{request.method} {request.url.path} is not part of this service; /openapi.json says what is"
    headers = dict(error.headers or {})
    return Response(encode(ErrorAnswer(sentence)), error.status_code, headers, "application/json")


def _open(service: Service, handler: Callable[[Service, Request], Awaitable[Response]]) -> Handler:
    """Return a handler that anybody may ask."""

    async def call(request: Request) -> Response:
        return await handler(service, request)

    return call
