"""Talk to the decision service: `Client`, and `AsyncClient` for asyncio.

What is sent has a key of its own, and is sent again with the same key if the answer was lost: a decision is made once
and a reward counts once, however often the network fails. Needs `pip install 'belated[client]'`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from belated._util.validate import integer, real
from belated.errors import BelatedError, InvalidInputError

try:
    import httpx2 as httpx
except ImportError:  # pragma: no cover - said in words
    raise ImportError("belated.client needs httpx2, which is not installed: pip install 'belated[client]'") from None

__all__ = ["AsyncClient", "Client", "Decided", "Reported", "ServiceError"]

AGAIN = frozenset({429, 502, 503, 504})
"""Answers after which the same request is sent again."""
MOST_ITEMS = 1_000
"""Decisions or rewards that go into one request."""


class ServiceError(BelatedError):
    """The service rejected a request or could not be reached; `code` is the HTTP status, 0 if there was no answer."""

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Decided:
    """A decision of the service."""

    id: str
    action: str
    probability: float | None
    model_version: int
    ranking: tuple[str, ...] = ()
    suggestion: str | None = None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Decided:
        """Return the decision that the service answered with."""
        return cls(**{**found, "ranking": tuple(found.get("ranking", ()))})


@dataclass(frozen=True)
class Reported:
    """What became of a reward, an activation or a cancellation."""

    id: str
    status: str
    detail: str = ""
    reward: float | None = None


@dataclass(frozen=True)
class Call:
    """One request, ready to be sent any number of times."""

    method: str
    path: str
    body: Any = None

    def options(self) -> dict[str, Any]:
        """Return the body and its headers."""
        if self.body is None:
            return {}
        try:
            content = json.dumps(self.body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"a request must be JSON: {error}") from None
        return {"content": content, "headers": {"Content-Type": "application/json"}}


class _Base:
    """Requests, answers and retries of both clients."""

    def __init__(self, address: str, *, key: str | None = None, tries: int = 5, timeout: float = 10.0) -> None:
        self._tries = integer("tries", tries, at_least=1)
        self._options: dict[str, Any] = {
            "base_url": address,
            "timeout": real("timeout", timeout, above=0),
            "headers": {} if key is None else {"X-API-Key": key},
        }

    @staticmethod
    def _decide(model: str, context: Mapping[str, Any], options: Mapping[str, Any]) -> Call:
        return Call("POST", _address(model, "decide"), _decision(context, options))

    @staticmethod
    def _decide_many(model: str, contexts: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[Call]:
        return _batches(model, "decide", [_decision(context, options) for context in contexts])

    @staticmethod
    def _decided(found: Mapping[str, Any]) -> Decided | ServiceError:
        return ServiceError(found["error"], 422) if "error" in found else Decided.of(found)

    @staticmethod
    def _feedback_many(model: str, rewards: Sequence[Mapping[str, Any]]) -> list[Call]:
        return _batches(model, "feedback", [dict(one) for one in rewards])

    @staticmethod
    def _event(model: str, what: str, body: Mapping[str, Any]) -> Call:
        return Call("POST", _address(model, what), [dict(body)])  # of a list every item has a status

    @staticmethod
    def _get(*path: str) -> Call:
        return Call("GET", "/".join(["/v1", *(quote(part, safe="") for part in path)]))

    def _read(self, response: httpx.Response) -> Any:
        try:
            found = response.json()
        except ValueError:
            found = {"error": response.text[:200]}
        if response.status_code >= 400:
            sentence = found.get("error") if isinstance(found, dict) else None
            raise ServiceError(sentence or f"the service answered {response.status_code}", response.status_code)
        return found

    @staticmethod
    def _pause(attempt: int, response: httpx.Response | None) -> float:
        """Return how long to wait: as long as the service asks for, or else exponential backoff with jitter."""
        asked = None if response is None else response.headers.get("retry-after")
        if asked is not None and asked.isdigit():
            return float(asked) * (1 + random.random())
        return float(0.1 * 2**attempt * (0.5 + random.random()))

    @staticmethod
    def _lost(error: Exception) -> ServiceError:
        return ServiceError(f"the service cannot be reached: {error}")


def _address(model: str, what: str) -> str:
    return f"/v1/models/{quote(model, safe='')}/{what}"


def _decision(context: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return {"context": dict(context), "key": uuid.uuid4().hex, **options}


def _batches(model: str, what: str, items: Sequence[Any]) -> list[Call]:
    parts = [items[i : i + MOST_ITEMS] for i in range(0, len(items), MOST_ITEMS)]
    return [Call("POST", _address(model, what), list(part)) for part in parts]


class Client(_Base):
    """A client that waits for each answer.

    >>> with Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     decided = client.decide("ads", {"x": 0.3, "y": 1.0})
    ...     client.feedback("ads", decided.id, 1.0, event="order-17")
    """

    def __init__(self, address: str, *, key: str | None = None, tries: int = 5, timeout: float = 10.0) -> None:
        super().__init__(address, key=key, tries=tries, timeout=timeout)
        self._http = httpx.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call) -> Any:
        options = call.options()
        for attempt in range(self._tries):
            last = attempt == self._tries - 1
            try:
                response = self._http.request(call.method, call.path, **options)
            except httpx.TransportError as error:
                if last:
                    raise self._lost(error) from error
                response = None
            if response is not None and (response.status_code not in AGAIN or last):
                return self._read(response)
            time.sleep(self._pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    def decide(self, model: str, context: Mapping[str, Any], **options: Any) -> Decided:
        """Ask for a decision; the options are those of the service (actions, key, active, size, chosen, …)."""
        return Decided.of(self._send(self._decide(model, context, options)))

    def decide_many(
        self, model: str, contexts: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Decided | ServiceError]:
        """Ask for many decisions; one that was rejected is returned as its error."""
        calls = self._decide_many(model, contexts, options)
        return [self._decided(one) for call in calls for one in self._send(call)]

    def feedback(self, model: str, id: str, reward: float, **options: Any) -> Reported:  # noqa: A002
        """Report a reward; give an `event` if a decision may have several."""
        return Reported(**self._send(self._event(model, "feedback", {"id": id, "reward": reward, **options}))[0])

    def feedback_many(self, model: str, rewards: Sequence[Mapping[str, Any]]) -> list[Reported]:
        """Report many rewards, each with `id` and `reward`; one status for each."""
        return [Reported(**one) for call in self._feedback_many(model, rewards) for one in self._send(call)]

    def activate(self, model: str, id: str) -> Reported:  # noqa: A002
        """Let a decision made with `active=False` count from now on."""
        return Reported(**self._send(self._event(model, "activate", {"id": id}))[0])

    def cancel(self, model: str, id: str) -> Reported:  # noqa: A002
        """Take a decision back, and unlearn it."""
        return Reported(**self._send(self._event(model, "cancel", {"id": id}))[0])

    def decision(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Return all that is known of a decision."""
        found: dict[str, Any] = self._send(self._get("decisions", id))
        return found

    def model(self, name: str) -> dict[str, Any]:
        """Return the settings, the figures and the alarms of a model."""
        found: dict[str, Any] = self._send(self._get("models", name))
        return found


class AsyncClient(_Base):
    """The same for asyncio."""

    def __init__(self, address: str, *, key: str | None = None, tries: int = 5, timeout: float = 10.0) -> None:
        super().__init__(address, key=key, tries=tries, timeout=timeout)
        self._http = httpx.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call) -> Any:
        options = call.options()
        for attempt in range(self._tries):
            last = attempt == self._tries - 1
            try:
                response = await self._http.request(call.method, call.path, **options)
            except httpx.TransportError as error:
                if last:
                    raise self._lost(error) from error
                response = None
            if response is not None and (response.status_code not in AGAIN or last):
                return self._read(response)
            await asyncio.sleep(self._pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    async def decide(self, model: str, context: Mapping[str, Any], **options: Any) -> Decided:
        """Ask for a decision; see `Client.decide`."""
        return Decided.of(await self._send(self._decide(model, context, options)))

    async def decide_many(
        self, model: str, contexts: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Decided | ServiceError]:
        """Ask for many decisions; see `Client.decide_many`."""
        calls = self._decide_many(model, contexts, options)
        return [self._decided(one) for call in calls for one in await self._send(call)]

    async def feedback(self, model: str, id: str, reward: float, **options: Any) -> Reported:  # noqa: A002
        """Report a reward; see `Client.feedback`."""
        call = self._event(model, "feedback", {"id": id, "reward": reward, **options})
        return Reported(**(await self._send(call))[0])

    async def feedback_many(self, model: str, rewards: Sequence[Mapping[str, Any]]) -> list[Reported]:
        """Report many rewards; see `Client.feedback_many`."""
        return [Reported(**one) for call in self._feedback_many(model, rewards) for one in await self._send(call)]

    async def activate(self, model: str, id: str) -> Reported:  # noqa: A002
        """Let a decision made with `active=False` count from now on."""
        return Reported(**(await self._send(self._event(model, "activate", {"id": id})))[0])

    async def cancel(self, model: str, id: str) -> Reported:  # noqa: A002
        """Take a decision back, and unlearn it."""
        return Reported(**(await self._send(self._event(model, "cancel", {"id": id})))[0])

    async def decision(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Return all that is known of a decision."""
        found: dict[str, Any] = await self._send(self._get("decisions", id))
        return found

    async def model(self, name: str) -> dict[str, Any]:
        """Return the settings, the figures and the alarms of a model."""
        found: dict[str, Any] = await self._send(self._get("models", name))
        return found
