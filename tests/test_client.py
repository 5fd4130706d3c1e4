"""The clients, against the service itself and against a network that loses answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from belated import client as module
from belated.client import AsyncClient, Client, ServiceError
from belated.decisions import Choice, MemoryStore, ModelSettings, SessionState, Status
from belated.errors import InvalidInputError
from belated.service._app import make_app
from belated.service._service import Service

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
    monkeypatch.setattr(module, "_pause", lambda attempt, response: 0.0)

    async def talk() -> tuple[str, str]:
        client = AsyncClient("http://localhost")
        client._http = httpx.AsyncClient(transport=LosesAnswers(make_app(service)), base_url="http://localhost")
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

    client = Client("http://localhost", tries=3)
    client._http = httpx.Client(transport=httpx.MockTransport(handle), base_url="http://localhost")
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


def test_many_go_in_batches_and_each_decision_has_a_key() -> None:
    rewards = module._feedback_many("ads", [{"id": str(i), "reward": 0.0} for i in range(2500)])
    decisions = module._decide_many("ads", [{"x": 1.0}] * 1500, {"active": False})
    assert [len(call.body) for call in (*rewards.calls, *decisions.calls)] == [1000, 1000, 500, 1000, 500]
    assert len({one["key"] for call in decisions.calls for one in call.body}) == 1500


async def use(client: AsyncClient) -> None:
    """Ask for everything once."""
    made = await client.decide_many("ads", [{"x": 1.0}, {"x": "one"}], size=2, active=False)
    assert isinstance(made[0], Choice)
    assert set(made[0].ranking) == {"a", "b"} and isinstance(made[0].ranking, tuple)
    assert isinstance(made[1], ServiceError) and "x of context" in str(made[1])
    first = made[0].id
    assert (await client.activate("ads", first)).status == "accepted"
    assert (await client.feedback("ads", first, 1.0, slot=1)).status == "accepted"
    assert (await client.signal("ads", first, "click")).status == "invalid"  # the model has none
    assert (await client.cancel("ads", first)).status == "accepted"
    rewards = [{"id": first, "reward": 2.0, "event": "e"}, {"id": "x", "reward": 1.0}]
    reports = await client.feedback_many("ads", rewards)
    assert [one.status for one in reports] == ["late", "unknown"]
    assert (await client.decision(first))["status"] == "cancelled"
    assert (await client.model("ads"))["decisions"] == 1
    with pytest.raises(InvalidInputError, match="a request must be JSON"):
        await client.decide("ads", {"x": float("nan")})
    with pytest.raises(ServiceError, match="got 'no where'"):
        await client.decide("no where", {"x": 1.0})


class AsIfAsync:
    """The client that waits, in the place of the one that does not."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **options: Any) -> Any:
            return getattr(self._client, name)(*given, **options)

        return call


@pytest.mark.parametrize("waits", [True, False])
def test_both_clients_can_ask_for_everything(service: Service, waits: bool) -> None:
    if waits:
        with TestClient(make_app(service), base_url="http://localhost") as inner:
            client = Client("http://localhost")
            client._http = inner
            asyncio.run(use(AsIfAsync(client)))  # type: ignore[arg-type]
        return

    async def talk() -> None:
        client = AsyncClient("http://localhost")
        transport = httpx.ASGITransport(app=make_app(service))
        client._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        async with client:
            await use(client)

    asyncio.run(talk())


SESSIONS = {**TABLE, "horizon": 3, "agent": "greedy"}


@pytest.fixture
def visits() -> Iterator[Service]:
    made = Service(MemoryStore(), {"shop": ModelSettings.from_table(SESSIONS)}, clock=lambda: 1_800_000_000.0)
    yield made
    made.close()


def test_a_block_is_a_session_that_is_cut_at_its_end_unless_it_was_ended(visits: Service) -> None:
    with Client("http://localhost") as client:
        client._http = TestClient(make_app(visits), base_url="http://localhost")
        with client.session("shop") as visit:
            steps = [visit.decide({"x": 1.0}) for _ in range(2)]
        assert [(each.session, each.step) for each in steps] == [(visit.name, 0), (visit.name, 1)]
        found = client.look_up("shop", visit.name)
        assert (found["status"], found["terminal"]) == ("ended", False)
        assert client.reward("shop", visit.name, 1.0, event="order").status == "accepted"
        with client.session("shop", "named") as visit:
            visit.decide({"x": 1.0})
            assert visit.reward(0.5).reward == 0.5
            ended = visit.end(terminal=True)
            assert ended.status is Status.ACCEPTED
            assert isinstance(ended.session, SessionState) and ended.session.terminal
        assert client.look_up("shop", "named")["terminal"]
        with client.session("shop", "taken back") as visit:
            visit.decide({"x": 1.0})
            assert visit.cancel().status == "accepted"
        assert client.look_up("shop", "taken back")["status"] == "cancelled"
        with pytest.raises(ServiceError, match="has ended") as refused, client.session("shop", "named") as visit:
            visit.decide({"x": 1.0})
        assert refused.value.code == 409


def test_after_an_error_in_its_block_a_session_stays_open(visits: Service) -> None:
    with Client("http://localhost") as client:
        client._http = TestClient(make_app(visits), base_url="http://localhost")
        with pytest.raises(KeyError), client.session("shop", "s") as visit:
            visit.decide({"x": 1.0})
            raise KeyError("the basket")
        assert client.look_up("shop", "s")["status"] == "open"
        with client.session("shop", "s") as visit:  # somebody goes on with it
            assert visit.decide({"x": 1.0}).step == 1


def test_sessions_count_once_when_answers_are_lost(visits: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_pause", lambda attempt, response: 0.0)

    async def talk() -> dict[str, Any]:
        client = AsyncClient("http://localhost")
        client._http = httpx.AsyncClient(transport=LosesAnswers(make_app(visits)), base_url="http://localhost")
        async with client:
            async with client.session("shop") as visit:
                await visit.decide({"x": 1.0})
                await visit.decide({"x": 2.0})
                await visit.reward(1.0, event="order")
            async with client.session("shop") as other:
                await other.decide({"x": 1.0})
                await other.cancel()
            found = await client.look_up("shop", visit.name)
            assert (await client.end("shop", visit.name)).status == "duplicate"
            return found

    found = asyncio.run(talk())
    assert [(each["step"], each["reward"]) for each in found["steps"]] == [(0, None), (1, 1.0)]
    assert visits.model("shop").summary()["decisions"] == 3
