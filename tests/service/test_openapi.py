"""The description is that of the service, and nothing that is sent makes it fail inside."""

from __future__ import annotations

import dataclasses
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
from belated.decisions._encoding import Encoding
from belated.decisions._ids import new_id
from belated.decisions._session_settings import SessionSettings
from belated.errors import BelatedError
from belated.service._app import WRITES, make_app
from belated.service._openapi import SETTINGS, specification
from belated.service._service import Service

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "mature", "seconds": 9.0, "default": 0.0}}
FIELDS = sorted(
    {
        "context", "actions", "key", "active", "size", "chosen", "probability", "id", "reward", "event", "version",
        "correction", "observed_at", "slot", "silence", "features", "x", "a", "kind", "session", "terminal", "horizon",
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    tables: dict[str, dict[str, Any]] = {"ads": TABLE, "visits": {**TABLE, "horizon": 3, "agent": "greedy"}}
    settings = {name: ModelSettings.from_table(table) for name, table in tables.items()}
    service = Service(MemoryStore(), settings, clock=lambda: 1_800_000_000.0)
    with TestClient(make_app(service), base_url="http://localhost", raise_server_exceptions=False) as made:
        ids = [made.post("/v1/models/ads/decide", json={"context": {"x": 1.0}}).json()["id"] for _ in range(20)]
        step = {"context": {"x": 1.0}, "session": "s"}
        ids.append(made.post("/v1/models/visits/decide", json=step).json()["id"])
        made.ids = [*ids, new_id(1_800_000_000.0), "nobody"]  # type: ignore[attr-defined]
        yield made


def test_every_address_of_the_service_is_described(client: TestClient) -> None:
    served = {
        (route.path.replace(":path", ""), method.lower())
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
    both = [{"context": {"x": 1.0}}, {"context": {}}]
    check(client.post("/v1/models/ads/decide/batch", json=both), f"{decide}/batch", "post")
    check(client.post("/v1/models/ads/decide", json={"context": {}}), decide, "post")
    check(client.post("/v1/models/no/decide", json={"context": {"x": 1.0}}), decide, "post")
    for event in ({"id": made.json()["id"], "reward": 1}, {"id": "nobody", "reward": 1}, {"id": 1}):
        check(client.post("/v1/models/ads/feedback", json=event), feedback, "post")
        check(client.post("/v1/models/ads/feedback/batch", json=[event]), f"{feedback}/batch", "post")
    check(client.get("/v1/models"), "/v1/models", "get")
    check(client.put("/v1/models/ads", json=TABLE), "/v1/models/{model}", "put")
    check(client.get("/v1/models/ads"), "/v1/models/{model}", "get")
    check(client.get("/health/ready"), "/health/ready", "get")
    check(client.get(f"/v1/decisions/{made.json()['id']}"), "/v1/decisions/{id}", "get")


def test_every_operation_has_a_name_and_every_object_says_what_it_holds() -> None:
    whole = specification()
    operations = [one for methods in whole["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)

    def objects(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield from [value] if value.get("type") == "object" else []
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from objects(inner)

    vague = [one for one in objects(whole) if "properties" not in one and "additionalProperties" not in one]
    assert vague == []


def test_the_settings_are_described_as_they_are_checked() -> None:
    kinds = (ModelSettings, SessionSettings, Encoding)
    known = {each.name for kind in kinds for each in dataclasses.fields(kind)}
    assert set(SETTINGS) == known - {"sessions"}
    described = {**specification()["components"]["schemas"]["ModelSettings"], "components": {}}
    plain: dict[str, Any] = {"silence": {"kind": "unknown"}}
    lists = {"categories": ["k"], "hashed": 8}
    sessions = {"actions": ["a"], "horizon": 8}
    basis = {"features": "fourier", "low": [0.0], "high": [1.0]}
    for table in (
        plain,
        {**plain, **sessions, "agent": {"agent": "psvi"}, "reward_range": [0, 1], "features": ["x"], "basis": basis},
        ModelSettings.from_table({**plain, **sessions}).to_table(),
        {**plain, **lists},
        ModelSettings.from_table({**plain, "forgetting": {"seconds": 1}}).to_table(),
    ):
        jsonschema.validate(table, described)
        ModelSettings.from_table(table)
    for name, schema in SETTINGS.items():
        for number in [one for one in (schema, *schema.get("anyOf", ())) if "minimum" in one]:
            least, most = number["minimum"], number["maximum"]
            inside = (1, most - 1) if name == "hashed" else (least, most)  # there is a constant, too
            outside = (
                least - 1 if least == int(least) else 0.99 * least,
                1.01 * most if isinstance(most, float) else most + 1,
            )
            rest = {**plain, **(lists if name == "hashed" else sessions if name == "horizon" else {})}
            for value in inside:
                jsonschema.validate({**rest, name: value}, described)
                ModelSettings.from_table({**rest, name: value})
            for value in outside:
                with pytest.raises(jsonschema.ValidationError):
                    jsonschema.validate({**rest, name: value}, described)
                with pytest.raises(BelatedError):
                    ModelSettings.from_table({**rest, name: value})


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
    names = ["s", "t", "u", "v", "s/t"]
    choices |= likely(session=names)
    rewards = likely(event=["e", "f"], version=[0, 1, 2], correction=[True], observed_at=[1.8e9], slot=[0, 1])
    decide = st.fixed_dictionaries(likely(context=[{"x": 1.0}, {"x": 2.0}]), optional=choices)
    event = st.fixed_dictionaries(likely(id=ids), optional={**likely(reward=[0.0, 1.0]), **rewards})
    of_session = st.fixed_dictionaries(
        likely(session=names), optional={**likely(reward=[0.0, 1.0], terminal=[True], context=[{"x": 1.0}]), **rewards}
    )
    event = event | of_session
    plain_event = st.fixed_dictionaries({"id": st.sampled_from(ids)}, optional={"reward": st.sampled_from([0.0, 1.0])})
    table = st.fixed_dictionaries({}, optional={**{k: st.just(v) | nested for k, v in TABLE.items()}, "floor": nested})
    return nested | decide | event | plain_event | table | st.lists(decide | event | plain_event, max_size=3)


def fuzz(client: TestClient, count: int) -> Counter[int]:
    """Send so many requests, and return how often they were answered with which code."""
    codes: Counter[int] = Counter()
    ids: list[str] = client.ids  # type: ignore[attr-defined]
    posts = [("POST", f"/v1/models/{name}/{what}") for name in ("ads", "ads", "visits", "visits", "é%00") for what in
             WRITES]  # fmt: skip
    others = [("PUT", "/v1/models/ads"), ("PUT", "/v1/models/fuzzed"), ("PUT", "/v1/models/a%0D%0Ab"),
              ("GET", "/v1/decisions/%00"), ("GET", "/v1/models/%1B"), ("GET", "/v1/models/visits/sessions/s%2Ft"),
              ("GET", "/v1/models/visits/sessions/%00"), ("PUT", "/v1/models/visits")]  # fmt: skip

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
    for name in ("ads", "visits"):
        assert service.model(name).verify() == []
    return codes


def test_nothing_that_is_sent_makes_it_fail_inside(client: TestClient) -> None:
    assert {200, 404, 422} <= set(fuzz(client, 200))


@pytest.mark.slow
def test_nothing_of_ten_thousand_requests_makes_it_fail_inside(client: TestClient) -> None:
    codes = fuzz(client, 10_000)
    print(f"\n{codes.total()} requests, answered with", dict(sorted(codes.items())))
    assert set(codes) == {200, 202, 404, 409, 422}
