"""The description is that of the service, and nothing that is sent makes it fail inside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from belated.decisions import MemoryStore, ModelSettings
from belated.decisions._ids import new_id
from belated.service._app import make_app
from belated.service._openapi import specification
from belated.service._service import Service

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "mature", "seconds": 9.0, "default": 0.0}}
FIELDS = sorted(
    {
        "context", "actions", "key", "active", "size", "chosen", "probability", "id", "reward", "event", "version",
        "correction", "observed_at", "slot", "silence", "features", "x", "a", "kind",
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    service = Service(MemoryStore(), {"ads": ModelSettings.from_table(TABLE)}, clock=lambda: 1_800_000_000.0)
    with TestClient(make_app(service), base_url="http://localhost", raise_server_exceptions=False) as made:
        ids = [made.post("/v1/models/ads/decide", json={"context": {"x": 1.0}}).json()["id"] for _ in range(20)]
        made.ids = [*ids, new_id(1_800_000_000.0), "nobody"]  # type: ignore[attr-defined]
        yield made


def test_every_address_of_the_service_is_described(client: TestClient) -> None:
    served = {
        (route.path, method.lower())
        for route in client.app.routes  # type: ignore[attr-defined]
        for method in route.methods - {"HEAD"}
    }
    described = {(path, method) for path, methods in specification()["paths"].items() for method in methods}
    assert served - described == {("/", "get"), ("/metrics", "get"), ("/openapi.json", "get")}
    assert described <= served


def test_answers_are_as_described(client: TestClient) -> None:
    whole = specification()

    def check(answer: Any, path: str, method: str) -> None:
        described = whole["paths"][path][method]["responses"][str(answer.status_code)]
        schema = described["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": whole["components"]})

    decide, feedback = "/v1/models/{model}/decide", "/v1/models/{model}/feedback"
    made = client.post("/v1/models/ads/decide", json={"context": {"x": 1.0}})
    check(made, decide, "post")
    check(client.post("/v1/models/ads/decide", json=[{"context": {"x": 1.0}}] * 2), decide, "post")
    check(client.post("/v1/models/ads/decide", json={"context": {}}), decide, "post")
    check(client.post("/v1/models/no/decide", json={"context": {"x": 1.0}}), decide, "post")
    for event in ({"id": made.json()["id"], "reward": 1}, {"id": "nobody", "reward": 1}, {"id": 1}):
        check(client.post("/v1/models/ads/feedback", json=event), feedback, "post")
    check(client.get(f"/v1/decisions/{made.json()['id']}"), "/v1/decisions/{id}", "get")


def anything(ids: list[str]) -> st.SearchStrategy[Any]:
    """Return values such as callers send: often with the right names, seldom right."""
    plain = (
        st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
        | st.sampled_from([*ids, "a", "b", "unknown", "mature", 0.5, 1e308, -1e12])
    )  # fmt: skip
    nested = st.recursive(
        plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    )

    def likely(**values: Any) -> dict[str, st.SearchStrategy[Any]]:
        return {name: st.sampled_from(given) | nested for name, given in values.items()}

    choices = likely(actions=[["a"]], key=["k", "l"], active=[False], size=[1, 2], chosen=["b"], probability=[0.5])
    rewards = likely(event=["e", "f"], version=[0, 1, 2], correction=[True], observed_at=[1.8e9], slot=[0, 1])
    decide = st.fixed_dictionaries(likely(context=[{"x": 1.0}, {"x": 2.0}]), optional=choices)
    event = st.fixed_dictionaries(likely(id=ids), optional={**likely(reward=[0.0, 1.0]), **rewards})
    plain_event = st.fixed_dictionaries({"id": st.sampled_from(ids)}, optional={"reward": st.sampled_from([0.0, 1.0])})
    table = st.fixed_dictionaries({}, optional={**{k: st.just(v) | nested for k, v in TABLE.items()}, "floor": nested})
    return nested | decide | event | plain_event | table | st.lists(decide | event | plain_event, max_size=3)


def fuzz(client: TestClient, count: int) -> Counter[int]:
    """Send so many requests, and return how often they were answered with which code."""
    codes: Counter[int] = Counter()
    ids: list[str] = client.ids  # type: ignore[attr-defined]
    posts = [("POST", f"/v1/models/{name}/{what}") for name in ("ads", "ads", "ads", "é%00") for what in
             ("decide", "feedback", "activate", "cancel")]  # fmt: skip
    others = [("PUT", "/v1/models/ads"), ("PUT", "/v1/models/fuzzed")]

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(posts * 3 + others), anything(ids))
    def send(where: tuple[str, str], value: Any) -> None:
        content = json.dumps(value).encode()
        answer = client.request(*where, content=content, headers={"content-type": "application/json"})
        assert answer.status_code in {200, 202, 404, 409, 410, 422}, (where, content, answer.text)
        codes[answer.status_code] += 1
        found = answer.json()
        if answer.status_code >= 400:
            assert found.get("error") or found.get("detail") or found.get("status"), found

    send()
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    assert service.model("ads").verify() == []
    return codes


def test_nothing_that_is_sent_makes_it_fail_inside(client: TestClient) -> None:
    assert {200, 404, 422} <= set(fuzz(client, 200))


@pytest.mark.slow
def test_nothing_of_ten_thousand_requests_makes_it_fail_inside(client: TestClient) -> None:
    codes = fuzz(client, 10_000)
    print(f"\n{codes.total()} requests, answered with", dict(sorted(codes.items())))
    assert set(codes) == {200, 202, 404, 409, 422}
