"""The HTTP interface: routes, size limits on bodies, and errors as sentences.

Writes (decide, feedback, signal, activate, cancel) are nearly all of the traffic, so each of these routes is an ASGI
application of its own, without the overhead of a framework; the rest goes through Starlette.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
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
    PosteriorError,
    Status,
    StoreError,
)
from belated.decisions._encoding import check_text
from belated.decisions._operations import Answer
from belated.errors import BelatedError, DamagedFileError, InvalidInputError, UnknownNameError
from belated.service._admission import LOCAL, Headers, RejectedError, admit, check_page, name_of
from belated.service._bodies import (
    ActivateBody,
    CancelBody,
    ConfiguredAnswer,
    DecideBody,
    DecisionAnswer,
    EndBody,
    ErasedAnswer,
    ErrorAnswer,
    EventAnswer,
    FeedbackBody,
    ModelsAnswer,
    SessionAnswer,
    SignalBody,
    decided,
    parse,
    parse_list,
)
from belated.service._config import check_model_name
from belated.service._openapi import specification
from belated.service._overview import overview
from belated.service._service import Service
from belated.service._writer import FullError

#: Maximum bytes of a body.
LARGEST_BODY = 4 << 20
#: Maximum bytes of all bodies that are being read or processed.
LARGEST_TOTAL = 64 * LARGEST_BODY
#: Value of Retry-After, in seconds, for requests rejected by backpressure.
RETRY_AFTER = "1"
#: The dashboard.
PAGE = (resources.files("belated.service") / "page.html").read_bytes()
#: Content security policy of the dashboard: inline scripts only, requests to this service only, no framing.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

#: HTTP status of an error, by the first matching type.
_ERRORS: tuple[tuple[type[Exception], int], ...] = (
    (ForgottenError, 410),
    (UnknownNameError, 404),
    (ConflictError, 409),
    (StoreError, 503),
    (DamagedFileError, 503),
    (PosteriorError, 503),
    (ClockError, 503),
    (FullError, 503),
    (BelatedError, 422),
)
#: HTTP status of a single event, by its outcome.
CODES = {
    Status.ACCEPTED: 200,
    Status.DUPLICATE: 200,
    Status.CONFLICT: 409,
    Status.LATE: 202,
    Status.PARKED: 202,
    Status.UNKNOWN: 404,
    Status.INVALID: 422,
}

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    content: bytes
    """JSON."""
    code: int = 200
    headers: Mapping[str, str] = {}


Work = Callable[[Service, Model, bytes], Awaitable[Reply]]
Reader = Callable[[Service, Request], Awaitable[Response]]


class GoneError(Exception):
    """The client has disconnected."""


def code_of(error: Exception) -> int:
    if isinstance(error, RejectedError):
        return error.code
    return next((code for kind, code in _ERRORS if isinstance(error, kind)), 500)


def rejection(error: Exception) -> Reply:
    """Return an error as a reply: a sentence, and Retry-After if a retry may help."""
    code = code_of(error)
    sentence = str(error) if code != 500 else "internal error; see the log of the service"
    return Reply(encode(ErrorAnswer(sentence)), code, {"Retry-After": RETRY_AFTER} if code == 503 else {})


class Bodies:
    """Reads request bodies, and limits the total size of the bodies that are not answered yet."""

    def __init__(self) -> None:
        self.held = 0

    def read(self, headers: Headers, receive: Receive) -> Body:
        """Return the body of a request, as a context manager; raise RejectedError unless it is JSON.

        A body without Content-Type is rejected, too: a cross-site page can make a browser send one.
        """
        kind = None
        for name, value in headers:
            if name == b"content-type":
                kind = value
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise RejectedError(415, "Content-Encoding must be identity: compressed bodies are not supported")
        if kind != b"application/json":
            named = "none" if kind is None else kind.decode("latin-1").partition(";")[0].strip().lower()
            if named != "application/json":
                raise RejectedError(415, f"Content-Type must be application/json, got {named or 'none'}")
        return Body(self, receive)


class Body:
    """The body of one request: read on entry, and counted until exit."""

    __slots__ = ("_content", "_of", "_receive")

    def __init__(self, of: Bodies, receive: Receive) -> None:
        self._of, self._receive, self._content = of, receive, bytearray()

    async def __aenter__(self) -> bytes:
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                part = message.get("body", b"")
                self._content += part
                self._of.held += len(part)
                if len(self._content) > LARGEST_BODY:
                    raise RejectedError(413, f"a body must have at most {LARGEST_BODY} bytes")
                if self._of.held > LARGEST_TOTAL:
                    raise RejectedError(503, f"bodies of {LARGEST_TOTAL} bytes are already being processed")
                if not message.get("more_body", False):
                    return bytes(self._content)
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *raised: object) -> None:
        self._of.held -= len(self._content)


async def reply(service: Service, send: Send, answer: Reply) -> None:
    content, code, more = answer
    service.metrics.answered(code)
    given = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    given += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    await send({"type": "http.response.start", "status": code, "headers": given})
    await send({"type": "http.response.body", "body": content})


class Write:
    """A route that writes: checks the key, reads the body, waits for the commit, replies."""

    def __init__(self, service: Service, bodies: Bodies, scope: str, work: Work) -> None:
        self._service, self._bodies, self._scope, self._work = service, bodies, scope, work

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; `path_params` in its scope has the name of the model."""
        service, headers = self._service, scope["headers"]
        try:
            admit(service, self._scope, headers)
            model = service.model(scope["path_params"]["model"])
            async with self._bodies.read(headers, receive) as content:
                answer = await self._work(service, model, content)
        except GoneError:
            return
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", scope["method"], scope["path"])
            answer = rejection(error)
        await reply(service, send, answer)


async def decide(service: Service, model: Model, content: bytes) -> Reply:
    """POST /v1/models/{model}/decide: one decision, stored before the reply."""
    (answer,) = await service.run(model, [parse(DecideBody, content).operation()])
    if isinstance(answer, Exception):
        raise answer
    return Reply(encode(_decided(answer)))


async def decide_batch(service: Service, model: Model, content: bytes) -> Reply:
    """POST /v1/models/{model}/decide/batch: a list of decisions; an invalid one is answered with its error."""
    return Reply(encode([_decided(one) for one in await _run_list(service, model, content, DecideBody)]))


def _decided(answer: Answer) -> msgspec.Struct:
    return decided(answer.row) if isinstance(answer, Decided) else ErrorAnswer(str(answer))


async def report(kind: type[Any], service: Service, model: Model, content: bytes) -> Reply:
    """POST /v1/models/{model}/feedback, activate, cancel: report one event."""
    try:
        given = parse(kind, content)
    except InvalidInputError:
        service.metrics.invalid(model.name)
        raise
    (outcome,) = await service.run(model, [given.operation()])
    assert isinstance(outcome, Outcome)
    return Reply(encode(_reported(outcome)), 410 if outcome.forgotten else CODES[outcome.status])


async def report_batch(kind: type[Any], service: Service, model: Model, content: bytes) -> Reply:
    """POST /v1/models/{model}/feedback/batch and so on: report a list of events, with a status for each."""
    found = await _run_list(service, model, content, kind)
    service.metrics.invalid(model.name, sum(isinstance(one, InvalidInputError) for one in found))
    return Reply(encode([_reported(one) for one in found]))


def _reported(answer: Answer) -> EventAnswer:
    if isinstance(answer, Outcome):
        return EventAnswer.of(answer)
    return EventAnswer(id="", status=Status.INVALID, detail=str(answer))


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


#: The last path segment of each route that writes, with the required scope.
WRITES: dict[str, tuple[str, Work]] = {
    "decide": ("decide", decide),
    "decide/batch": ("decide", decide_batch),
    "feedback": ("feedback", partial(report, FeedbackBody)),
    "feedback/batch": ("feedback", partial(report_batch, FeedbackBody)),
    "signal": ("feedback", partial(report, SignalBody)),
    "signal/batch": ("feedback", partial(report_batch, SignalBody)),
    "activate": ("decide", partial(report, ActivateBody)),
    "activate/batch": ("decide", partial(report_batch, ActivateBody)),
    "cancel": ("decide", partial(report, CancelBody)),
    "cancel/batch": ("decide", partial(report_batch, CancelBody)),
    "end": ("decide", partial(report, EndBody)),
    "end/batch": ("decide", partial(report_batch, EndBody)),
}


def answer(value: Any, code: int = 200) -> Response:
    return Response(encode(value), code, media_type="application/json")


def guarded(service: Service, scope: str | None, handler: Reader) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that checks the key first, if a scope is required, and turns errors into replies."""

    async def call(request: Request) -> Response:
        try:
            if scope is not None:
                admit(service, scope, request.headers.raw)
            response = await handler(service, request)
        except GoneError:
            return Response(status_code=499)  # the client is gone
        except Exception as error:
            if code_of(error) == 500:
                service.log.exception("%s %s failed", request.method, request.url.path)
            content, code, headers = rejection(error)
            response = Response(content, code, headers, "application/json")
        service.metrics.answered(response.status_code)
        return response

    return call


async def look_up(service: Service, request: Request) -> Response:
    """GET /v1/decisions/{id}: everything known about a decision."""
    wanted = check_text("id", request.path_params["id"])

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


async def look_up_session(service: Service, request: Request) -> Response:
    """GET /v1/models/{model}/sessions/{session}: everything known about a session."""
    model = service.model(request.path_params["model"])
    wanted = check_text("session", request.path_params["session"])
    return answer(await run_in_threadpool(lambda: SessionAnswer.of(model.name, model.lookup_session(wanted))))


async def models(service: Service, request: Request) -> Response:
    """GET /v1/models: the names of all models."""
    return answer(ModelsAnswer(list(service.models)))


async def show_model(service: Service, request: Request) -> Response:
    """GET /v1/models/{model}: settings, weights and figures."""
    model = service.model(request.path_params["model"])
    shown = await run_in_threadpool(service.show, model.name, lambda: overview(service, model))
    return answer(shown)


async def put_model(service: Service, request: Request) -> Response:
    """PUT /v1/models/{model}: create a model or change its settings."""
    name = check_model_name(request.path_params["model"])
    async with request.app.state.bodies.read(request.headers.raw, request.receive) as content:
        try:
            table = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"the body must be the settings of a model: {error}") from None
        try:
            version = await run_in_threadpool(lambda: service.configure(name, ModelSettings.from_table(table)))
        except UnknownNameError as error:  # an unknown setting, not an unknown model
            raise InvalidInputError(str(error)) from None
    return answer(ConfiguredAnswer(name, version))


async def erase(service: Service, request: Request) -> Response:
    """DELETE /v1/models/{model}/decisions: erase by id, key or session, or drop decisions made before a time."""
    model, query = service.model(request.path_params["model"]), request.query_params
    ids, keys, before = query.getlist("id"), query.getlist("key"), query.get("before")
    sessions = query.getlist("session")
    unknown = sorted(set(query) - {"id", "key", "session", "before", "keep_learned"})
    if unknown or bool(ids or keys or sessions) == (before is not None):
        raise InvalidInputError(f"give id, key or session (with keep_learned), or before, got {query}")
    if before is not None:
        gone = await run_in_threadpool(model.purge, _parsed("before", before))
    else:
        keep = _parsed("keep_learned", query.get("keep_learned"))
        gone = await run_in_threadpool(lambda: model.erase(ids, keys=keys, sessions=sessions, keep_learned=keep))
    return answer(ErasedAnswer(model.name, gone))


def _parsed(name: str, text: str | None) -> Any:
    """Parse a query parameter that is a number, true or false."""
    try:
        return json.loads(text or "")
    except ValueError:
        raise InvalidInputError(f"{name} must be a number, true or false, got {text!r}") from None


async def live(service: Service, request: Request) -> Response:
    """GET /health/live: the process responds."""
    return answer({"status": "alive"})


async def ready(service: Service, request: Request) -> Response:
    """GET /health/ready: at least one model can decide and store; `problems` lists those that cannot."""
    problem, problems, queue = service.writer.problem, service.writer.problems, service.writer.depth
    state = {"status": "not ready" if problem else "ready", "problem": problem, "problems": problems, "queue": queue}
    return answer(state, 503 if problem else 200)


async def figures(service: Service, request: Request) -> Response:
    """GET /metrics: metrics for Prometheus."""
    text = await run_in_threadpool(service.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4")


async def openapi(service: Service, request: Request) -> Response:
    """GET /openapi.json: the OpenAPI description."""
    return answer(specification())


async def page(service: Service, request: Request) -> Response:
    """GET /: the dashboard, which loads its data with the user's own key."""
    return Response(PAGE, headers={"Content-Security-Policy": POLICY}, media_type="text/html; charset=utf-8")


class App(Starlette):
    """The service as an ASGI application. Writes are dispatched directly; the rest goes through Starlette."""

    def __init__(self, service: Service, hosts: frozenset[str] | None, **options: Any) -> None:
        self._service, self._hosts, bodies = service, hosts, Bodies()
        self._writes = {name: Write(service, bodies, scope, work) for name, (scope, work) in WRITES.items()}
        routes = [Route("/v1/models/{model}/" + name, write, methods=["POST"]) for name, write in self._writes.items()]
        super().__init__(routes=[*routes, *_routes(service)], **options)
        self.state.service, self.state.bodies = service, bodies

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                check_page(scope["method"], scope["headers"], self._hosts)
            except RejectedError as error:
                await reply(self._service, send, rejection(error))
                return
            parts = scope["path"].split("/", 4)  # such as /v1/models/ads/decide
            if scope["method"] == "POST" and len(parts) == 5 and parts[1:3] == ["v1", "models"] and parts[3]:
                write = self._writes.get(parts[4])
                if write is not None:
                    scope["path_params"] = {"model": parts[3]}
                    await write(scope, receive, send)
                    return
        await super().__call__(scope, receive, send)


def make_app(service: Service, *, hosts: Collection[str] = ()) -> App:
    """Return the service as an ASGI application; when it stops, the service is closed.

    `hosts` are the host names it answers to, besides those of the loopback interface. With keys and without `hosts` it
    answers to any name: a page that uses DNS rebinding does not have a key. Limits on connections and slow clients are
    up to the ASGI server, as in `belated serve`.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        yield
        await run_in_threadpool(service.close)

    allowed = None if service.keys and not hosts else LOCAL.union(map(name_of, hosts))
    return App(service, allowed, lifespan=lifespan, exception_handlers={HTTPException: _nowhere})


def _routes(service: Service) -> list[Route]:
    """Return the routes that read, and those that change settings or erase."""
    listed: tuple[tuple[str, str, str | None, Reader], ...] = (
        ("GET", "/v1/models/{model}", "read", show_model),
        ("PUT", "/v1/models/{model}", "admin", put_model),
        ("DELETE", "/v1/models/{model}/decisions", "admin", erase),
        ("GET", "/v1/models/{model}/sessions/{session:path}", "read", look_up_session),
        ("GET", "/v1/models", "read", models),
        ("GET", "/v1/decisions/{id}", "read", look_up),
        ("GET", "/metrics", "read", figures),
        ("GET", "/health/live", None, live),
        ("GET", "/health/ready", None, ready),
        ("GET", "/openapi.json", None, openapi),
        ("GET", "/", None, page),
    )
    return [Route(path, guarded(service, scope, handler), methods=[verb]) for verb, path, scope, handler in listed]


async def _nowhere(request: Request, error: Exception) -> Response:
    """Reply to an unknown path or method with a sentence."""
    assert isinstance(error, HTTPException)
    sentence = f"{request.method} {request.url.path} does not exist; see /openapi.json for what does"
    headers = dict(error.headers or {})
    return Response(encode(ErrorAnswer(sentence)), error.status_code, headers, "application/json")
