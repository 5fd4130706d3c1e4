"""The clients, against the service itself and against a network that loses answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from belated import client as module
from belated.client import AsyncClient, Client, ServiceError
from belated.decisions import MemoryStore, ModelSettings
from belated.service.app import make_app
from belated.service.service import Service

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}


class LosesAnswers(httpx.AsyncBaseTransport):
    """Delivers every request, and loses the answer to every other one."""

    def __init__(self, app: Any) -> None:
        self.inner, self.count = httpx.ASGITransport(app=app), 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.inner.handle_async_request(request)
        self.count += 1
        if self.count % 2:
            raise httpx.ReadError("the answer was lost")
        return response


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(MemoryStore(), {"ads": ModelSettings.from_table(TABLE)}, clock=lambda: 1_800_000_000.0)
    yield made
    made.close()


def test_a_lost_answer_makes_no_second_decision_and_no_second_reward(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module._Base, "_pause", staticmethod(lambda attempt, response: 0.0))

    async def talk() -> tuple[str, str]:
        client = AsyncClient("http://service")
        client._http = httpx.AsyncClient(transport=LosesAnswers(make_app(service)), base_url="http://service")
        async with client:
            decided = await client.decide("ads", {"x": 1.0})
            reported = await client.feedback("ads", decided.id, 1.0, event="order")
            assert (await client.decision(decided.id))["reward"] == 1.0
            return decided.id, reported.status

    _, status = asyncio.run(talk())
    assert status == "duplicate"  # the first was stored, its answer lost
    assert service.model("ads").summary()["decisions"] == 1


def answers(*codes: int) -> tuple[Client, list[httpx.Request]]:
    """Return a client whose service answers with `codes` in turn, and the requests it got."""
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        code = codes[min(len(seen), len(codes)) - 1]
        good = {"id": "i", "action": "a", "probability": 1.0, "model_version": 0}
        return httpx.Response(code, json=good if code == 200 else {"error": "no"})

    client = Client("http://service", tries=3)
    client._http = httpx.Client(transport=httpx.MockTransport(handle), base_url="http://service")
    return client, seen


def test_the_same_key_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client, seen = answers(503, 503, 200)
    assert client.decide("ads", {"x": 1.0}).action == "a"
    assert len({request.read() for request in seen}) == 1
    assert len(seen) == 3


def test_after_the_last_try_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client, seen = answers(503)
    with pytest.raises(ServiceError, match="no") as caught:
        client.decide("ads", {})
    assert (caught.value.code, len(seen)) == (503, 3)


def test_a_refusal_is_not_tried_again() -> None:
    client, seen = answers(422)
    with pytest.raises(ServiceError):
        client.decide("ads", {})
    assert len(seen) == 1


def test_many_rewards_go_in_batches() -> None:
    calls = module._Base._batches("ads", [{"id": str(i), "reward": 0.0} for i in range(2500)])
    assert [len(call.body) for call in calls] == [1000, 1000, 500]
