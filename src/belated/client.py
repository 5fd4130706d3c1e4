"""Talk to the decision service: `Client`, and `AsyncClient` for asyncio.

They answer as a `Model` does: with a `Choice` or an `Outcome`.

Every request has an idempotency key and is retried with the same key if its answer was lost: a decision is made once
and a reward counts once, however often the network fails. Needs `pip install 'belated[client]'`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import quote

from belated._util.validate import integer, real
from belated.decisions._operations import Choice, Outcome, SessionState, Status
from belated.errors import BelatedError, InvalidInputError

try:
    import httpx2 as httpx
except ImportError:  # pragma: no cover - said in words
    raise ImportError("belated.client needs httpx2, which is not installed: pip install 'belated[client]'") from None

__all__ = ["AsyncClient", "AsyncSession", "Client", "ServiceError", "Session"]

AGAIN = frozenset({429, 502, 503, 504})
"""HTTP statuses after which the same request is retried."""
MOST_ITEMS = 1_000
"""Maximum number of decisions or rewards per request."""


T = TypeVar("T")
Contexts = Sequence[Mapping[str, Any]]
_Received = httpx.Response | httpx.TransportError | None


class ServiceError(BelatedError):
    """The service rejected a request or could not be reached; `code` is the HTTP status, 0 without a response."""

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Call:
    """One request, which can be sent repeatedly."""

    method: str
    path: str
    body: Any = None

    def options(self) -> dict[str, Any]:
        """Return the arguments of `httpx` for this request."""
        request: dict[str, Any] = {"method": self.method, "url": self.path}
        if self.body is None:
            return request
        try:
            content = json.dumps(self.body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"a request must be JSON: {error}") from None
        return {**request, "content": content, "headers": {"Content-Type": "application/json"}}


class Asked(NamedTuple, Generic[T]):
    """A call to the service: one or more requests, and how to parse their answers."""

    calls: Sequence[Call]
    read: Callable[[list[Any]], T]


class Done(NamedTuple, Generic[T]):
    answer: T


def _address(*path: str) -> str:
    return "/".join(["/v1", *(quote(part, safe="") for part in path)])


def _post(model: str, what: str, items: Sequence[Any], read: Callable[[Any], T]) -> Asked[list[T]]:
    """Return the requests for a list, split into batches; every item has an answer."""
    parts = [list(items[i : i + MOST_ITEMS]) for i in range(0, len(items), MOST_ITEMS)]
    calls = [Call("POST", _address("models", model, what, "batch"), part) for part in parts]
    return Asked(calls, lambda found: [read(one) for part in found for one in part])


def _get(*path: str) -> Asked[dict[str, Any]]:
    return Asked([Call("GET", _address(*path))], lambda found: dict(found[0]))


def _choice(found: Mapping[str, Any]) -> Choice:
    return Choice(**{**found, "ranking": tuple(found.get("ranking", (found["action"],)))})


def _outcome(found: Mapping[str, Any]) -> Outcome:
    session = found.get("session")
    state = None if session is None else SessionState(**session)
    return Outcome(**{**found, "status": Status(found["status"]), "session": state})


def _decision(context: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return {"context": dict(context), "key": uuid.uuid4().hex, **options}


def _decide(model: str, context: Mapping[str, Any], options: Mapping[str, Any]) -> Asked[Choice]:
    call = Call("POST", _address("models", model, "decide"), _decision(context, options))
    return Asked([call], lambda found: _choice(found[0]))


def _decide_many(model: str, contexts: Contexts, options: Mapping[str, Any]) -> Asked[list[Choice | ServiceError]]:
    def read(found: Mapping[str, Any]) -> Choice | ServiceError:
        return ServiceError(found["error"], 422) if "error" in found else _choice(found)

    return _post(model, "decide", [_decision(context, options) for context in contexts], read)


def _feedback_many(model: str, rewards: Sequence[Mapping[str, Any]]) -> Asked[list[Outcome]]:
    return _post(model, "feedback", [dict(one) for one in rewards], _outcome)


def _event(model: str, what: str, **body: Any) -> Asked[Outcome]:
    calls, read = _post(model, what, [body], _outcome)
    return Asked(calls, lambda found: read(found)[0])


def _end(model: str, session: str, terminal: bool, context: Mapping[str, Any] | None) -> Asked[Outcome]:
    body = {"session": session, "terminal": terminal, "context": None if context is None else dict(context)}
    return _event(model, "end", **body)


class _Base:
    """The part shared by both clients: retries, and parsing of answers."""

    def __init__(self, address: str, *, key: str | None = None, tries: int = 5, timeout: float = 10.0) -> None:
        self._tries = integer("tries", tries, at_least=1)
        headers = {} if key is None else {"X-API-Key": key}
        self._connect({"base_url": address, "timeout": real("timeout", timeout, above=0), "headers": headers})

    def _connect(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def _talk(self, asked: Asked[T]) -> Generator[dict[str, Any] | float | Done[T], _Received, None]:
        """Yield requests to send, whose responses are sent back in, seconds to wait, and finally the answer."""
        found = []
        for call in asked.calls:
            request = call.options()
            for attempt in range(self._tries):
                response, last = (yield request), attempt == self._tries - 1
                if isinstance(response, httpx.Response) and (response.status_code not in AGAIN or last):
                    found.append(_read(response))
                    break
                if isinstance(response, httpx.TransportError) and last:
                    raise ServiceError(f"the service cannot be reached: {response}") from response
                yield _pause(attempt, response)
        yield Done(asked.read(found))


def _read(response: httpx.Response) -> Any:
    try:
        found = response.json()
    except ValueError:
        found = {"error": response.text[:200]}
    if response.status_code >= 400:
        sentence = found.get("error") if isinstance(found, dict) else None
        raise ServiceError(sentence or f"the service answered {response.status_code}", response.status_code)
    return found


def _pause(attempt: int, response: _Received) -> float:
    """Return the seconds to wait: as requested by the service, or else exponential backoff with jitter."""
    asked = response.headers.get("retry-after") if isinstance(response, httpx.Response) else None
    if asked is not None and asked.isdigit():
        return float(asked) * (1 + random.random())
    return float(0.1 * 2**attempt * (0.5 + random.random()))


class Session:
    """One session of a client: see `Client.session`."""

    def __init__(self, client: Client, model: str, name: str | None) -> None:
        self._client, self.model = client, model
        self.name = uuid.uuid4().hex if name is None else name
        """The session's name, with which its rewards can be reported later, from anywhere."""
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None and not self._ended:
            self.end()

    def decide(self, context: Mapping[str, Any], **options: Any) -> Choice:
        """Request the next step; the options are those of the service (actions, key, active, chosen, …)."""
        return self._client.decide(self.model, context, session=self.name, **options)

    def reward(self, reward: float, **options: Any) -> Outcome:
        """Report a reward of the session, which counts at its last step; pass an `event` if there may be several."""
        return self._client.reward(self.model, self.name, reward, **options)

    def end(self, *, terminal: bool = False, context: Mapping[str, Any] | None = None) -> Outcome:
        """End the session: terminal, or cut (with its last `context`, if known)."""
        found = self._client.end(self.model, self.name, terminal=terminal, context=context)
        self._ended = True
        return found

    def cancel(self) -> Outcome:
        """Cancel the whole session, and unlearn it."""
        found = self._client.cancel(self.model, session=self.name)
        self._ended = True
        return found


class AsyncSession:
    """A session for asyncio: see `AsyncClient.session`."""

    def __init__(self, client: AsyncClient, model: str, name: str | None) -> None:
        self._client, self.model = client, model
        self.name = uuid.uuid4().hex if name is None else name
        self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None and not self._ended:
            await self.end()

    async def decide(self, context: Mapping[str, Any], **options: Any) -> Choice:
        return await self._client.decide(self.model, context, session=self.name, **options)

    async def reward(self, reward: float, **options: Any) -> Outcome:
        return await self._client.reward(self.model, self.name, reward, **options)

    async def end(self, *, terminal: bool = False, context: Mapping[str, Any] | None = None) -> Outcome:
        found = await self._client.end(self.model, self.name, terminal=terminal, context=context)
        self._ended = True
        return found

    async def cancel(self) -> Outcome:
        found = await self._client.cancel(self.model, session=self.name)
        self._ended = True
        return found


class Client(_Base):
    """A synchronous client.

    >>> with Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     decided = client.decide("ads", {"x": 0.3, "y": 1.0})
    ...     client.feedback("ads", decided.id, 1.0, event="order-17")
    """

    def _connect(self, options: dict[str, Any]) -> None:
        self._http = httpx.Client(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _do(self, asked: Asked[T]) -> T:
        talk = self._talk(asked)
        wanted = next(talk)
        while not isinstance(wanted, Done):
            wanted = talk.send(self._send(wanted))
        answer: T = wanted.answer
        return answer

    def _send(self, wanted: dict[str, Any] | float) -> _Received:
        if isinstance(wanted, float):
            time.sleep(wanted)
            return None
        try:
            return self._http.request(**wanted)
        except httpx.TransportError as error:
            return error

    def decide(self, model: str, context: Mapping[str, Any], **options: Any) -> Choice:
        """Request a decision; the options are those of the service (actions, key, active, size, chosen, …)."""
        return self._do(_decide(model, context, options))

    def decide_many(self, model: str, contexts: Contexts, **options: Any) -> list[Choice | ServiceError]:
        """Request many decisions; a rejected one is returned as its error."""
        return self._do(_decide_many(model, contexts, options))

    def feedback(self, model: str, id: str, reward: float, **options: Any) -> Outcome:  # noqa: A002
        """Report a reward; pass an `event` if a decision may have several."""
        return self._do(_event(model, "feedback", id=id, reward=reward, **options))

    def feedback_many(self, model: str, rewards: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Report many rewards, each with `id` and `reward`; return one outcome for each."""
        return self._do(_feedback_many(model, rewards))

    def signal(self, model: str, id: str, signal: str, value: float = 1.0, **options: Any) -> Outcome:  # noqa: A002
        """Report a signal, which may precede a reward."""
        return self._do(_event(model, "signal", id=id, signal=signal, value=value, **options))

    def activate(self, model: str, id: str) -> Outcome:  # noqa: A002
        """Activate a decision made with `active=False`: it counts from now on."""
        return self._do(_event(model, "activate", id=id))

    def cancel(self, model: str, id: str = "", *, session: str | None = None) -> Outcome:  # noqa: A002
        """Cancel a decision or a whole session, and unlearn it."""
        return self._do(_event(model, "cancel", id=id, session=session))

    def session(self, model: str, name: str | None = None) -> Session:
        """Return a session, new or by `name`, as a context manager for its steps.

        At the end of the block the session is cut, unless it has already ended. After an error in the block it stays
        open, since another process may continue it; the service ends idle sessions.

        >>> with Client("http://127.0.0.1:8080") as client, client.session("checkout") as visit:  # doctest: +SKIP
        ...     visit.decide({"page": "home"}).action
        ...     visit.decide({"page": "basket"}).action
        ...     visit.end(terminal=True)
        """
        return Session(self, model, name)

    def reward(self, model: str, session: str, reward: float, **options: Any) -> Outcome:
        """Report a reward of a session; pass an `event` if there may be several."""
        return self._do(_event(model, "feedback", session=session, reward=reward, **options))

    def end(
        self, model: str, session: str, *, terminal: bool = False, context: Mapping[str, Any] | None = None
    ) -> Outcome:
        """End a session: terminal, or cut (with its last `context`, if known)."""
        return self._do(_end(model, session, terminal, context))

    def look_up(self, model: str, session: str) -> dict[str, Any]:
        """Return everything known about a session."""
        return self._do(_get("models", model, "sessions", session))

    def decision(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Return everything known about a decision."""
        return self._do(_get("decisions", id))

    def model(self, name: str) -> dict[str, Any]:
        """Return the settings, statistics and alarms of a model."""
        return self._do(_get("models", name))


class AsyncClient(_Base):
    """A client for asyncio: every method of `Client`, to be awaited."""

    def _connect(self, options: dict[str, Any]) -> None:
        self._http = httpx.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def _do(self, asked: Asked[T]) -> T:
        talk = self._talk(asked)
        wanted = next(talk)
        while not isinstance(wanted, Done):
            wanted = talk.send(await self._send(wanted))
        answer: T = wanted.answer
        return answer

    async def _send(self, wanted: dict[str, Any] | float) -> _Received:
        if isinstance(wanted, float):
            await asyncio.sleep(wanted)
            return None
        try:
            return await self._http.request(**wanted)
        except httpx.TransportError as error:
            return error

    async def decide(self, model: str, context: Mapping[str, Any], **options: Any) -> Choice:
        return await self._do(_decide(model, context, options))

    async def decide_many(self, model: str, contexts: Contexts, **options: Any) -> list[Choice | ServiceError]:
        return await self._do(_decide_many(model, contexts, options))

    async def feedback(self, model: str, id: str, reward: float, **options: Any) -> Outcome:  # noqa: A002
        return await self._do(_event(model, "feedback", id=id, reward=reward, **options))

    async def feedback_many(self, model: str, rewards: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        return await self._do(_feedback_many(model, rewards))

    async def signal(self, model: str, id: str, signal: str, value: float = 1.0, **options: Any) -> Outcome:  # noqa: A002
        return await self._do(_event(model, "signal", id=id, signal=signal, value=value, **options))

    async def activate(self, model: str, id: str) -> Outcome:  # noqa: A002
        return await self._do(_event(model, "activate", id=id))

    async def cancel(self, model: str, id: str = "", *, session: str | None = None) -> Outcome:  # noqa: A002
        return await self._do(_event(model, "cancel", id=id, session=session))

    def session(self, model: str, name: str | None = None) -> AsyncSession:
        """Return a session as a context manager: `async with client.session("checkout") as visit`."""
        return AsyncSession(self, model, name)

    async def reward(self, model: str, session: str, reward: float, **options: Any) -> Outcome:
        return await self._do(_event(model, "feedback", session=session, reward=reward, **options))

    async def end(
        self, model: str, session: str, *, terminal: bool = False, context: Mapping[str, Any] | None = None
    ) -> Outcome:
        return await self._do(_end(model, session, terminal, context))

    async def look_up(self, model: str, session: str) -> dict[str, Any]:
        return await self._do(_get("models", model, "sessions", session))

    async def decision(self, id: str) -> dict[str, Any]:  # noqa: A002
        return await self._do(_get("decisions", id))

    async def model(self, name: str) -> dict[str, Any]:
        return await self._do(_get("models", name))
